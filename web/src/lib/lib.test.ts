import { describe, expect, test } from "vitest";
import { align, compare, line } from "./columns";
import { bytes, count, duration, place, quantity } from "./format";

describe("format", () => {
  test.each([[0, "0 B"], [1023, "1023 B"], [1024, "1.00 KiB"], [1536, "1.50 KiB"], [-3 * 2 ** 20, "−3.00 MiB"],
    [10.5 * 2 ** 30, "10.5 GiB"], [1023.9 * 2 ** 20, "1.00 GiB"], [5 * 2 ** 40, "5.00 TiB"]])("bytes %d", (v, want) => expect(bytes(v)).toBe(want));
  test.each([[0, "0 ns"], [1500, "1.50 µs"], [12_345_678, "12.3 ms"], [4.214e9, "4.21 s"], [125e9, "2 min 05 s"],
    [3720e9, "1 h 02 min"]])("duration %d", (v, want) => expect(duration(v)).toBe(want));
  test("absent is not zero", () => {
    expect(quantity(null, "bytes")).toBe("–");
    expect(quantity(0, "bytes")).toBe("0 B");
  });
  test("count", () => expect(count(1234567)).toBe("1\u202f234\u202f567"));
  test("place", () => { expect(place("/a/b/train.py", 61)).toBe("train.py:61"); expect(place("libc.so.6")).toBe("libc.so.6"); });
});

describe("columns", () => {
  test("align keeps every point and fills nothing in", () => {
    expect(align([{ x: [1, 3], y: [10, 30] }, { x: [2, 3], y: [0, 5] }])).toEqual({ x: [1, 2, 3], ys: [[10, null, 30], [null, 0, 5]] });
    expect(align([])).toEqual({ x: [], ys: [] });
  });
  test("line finds a slope after the warm-up", () => {
    const points = Array.from({ length: 50 }, (_, i): [number, number] => [i, i < 10 ? 1e6 : 100 + 7 * i]);
    expect(line(points)?.slope).toBeCloseTo(7);
    expect(line([[1, 1]])).toBeNull();
    expect(line([[1, 1], [1, 2], [1, 3], [1, 4], [1, 5]])).toBeNull();
  });
  test("compare puts absent last and numbers in texts in order", () => {
    expect([3, null, 1].sort(compare)).toEqual([1, 3, null]);
    expect(["a10", "a9"].sort(compare)).toEqual(["a9", "a10"]);
  });
});
