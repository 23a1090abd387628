import { describe, expect, test } from "vitest";
import { align, compare, highest, line, rate, shape, sorted, valueAt } from "./columns";

describe("columns", () => {
  test("align keeps every point and fills nothing in", () => {
    expect(
      align([
        { x: [1, 3], y: [10, 30] },
        { x: [2, 3], y: [0, 5] },
      ]),
    ).toEqual({
      x: [1, 2, 3],
      ys: [
        [10, null, 30],
        [null, 0, 5],
      ],
    });
    expect(align([{ x: [9, 100], y: [1, 2] }]).x).toEqual([9, 100]); // as numbers, not as texts
    expect(align([])).toEqual({ x: [], ys: [] });
  });
  test("valueAt holds the last reading and knows nothing before the first", () => {
    const c = { x: [10, 20, 30], y: [1, 2, 3] };
    expect([9, 10, 19, 20, 99].map((t) => valueAt(c, t))).toEqual([null, 1, 1, 2, 3]);
    expect(valueAt({ x: [], y: [] }, 5)).toBeNull();
  });
  test("highest is the first of equals", () => {
    expect(highest({ x: [1, 2, 3], y: [4, 9, 9] })).toEqual({ x: 2, y: 9 });
    expect(highest({ x: [], y: [] })).toBeNull();
  });
  test("rate of a counter that starts again is never negative", () => {
    expect(rate({ x: [0, 1e9, 3e9, 3e9, 4e9], y: [0, 5, 15, 15, 2] })).toEqual({
      x: [1e9, 3e9, 4e9],
      y: [5, 5, 0],
    });
  });
  test("shape keeps the peak", () => {
    const y = Array.from({ length: 1000 }, (_, i) => (i === 613 ? 99 : 1)),
      small = shape({ x: y.map((_, i) => i), y }, 20);
    expect(small.x.length).toBeLessThanOrEqual(20);
    expect(Math.max(...small.y)).toBe(99);
    expect(shape({ x: [], y: [] }, 5)).toEqual({ x: [], y: [] });
    // no width, no division by it
    expect(shape({ x: [7, 7, 7], y: [1, 2, 3] }, 2)).toEqual({ x: [7], y: [3] });
  });
  test("line finds a slope after the warm-up", () => {
    const points = Array.from({ length: 50 }, (_, i): [number, number] => [
      i,
      i < 10 ? 1e6 : 100 + 7 * i,
    ]);
    expect(line(points)?.slope).toBeCloseTo(7);
    expect(line(points)?.from).toBe(10);
    expect(line([[1, 1]])).toBeNull();
    expect(
      line([
        [1, 1],
        [1, 2],
        [1, 3],
        [1, 4],
        [1, 5],
      ]),
    ).toBeNull();
  });
  test("order: numbers in texts by size, absent last either way", () => {
    expect(["a10", "a9"].sort(compare)).toEqual(["a9", "a10"]);
    expect(sorted([[3], [null], [1]], 0, true)).toEqual([[3], [1], [null]]);
    expect(sorted([[3], [null], [1]], 0, false)).toEqual([[1], [3], [null]]);
  });
});
