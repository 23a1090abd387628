import type { Blocks } from "../../../api";
import { expect, test } from "vitest";
import { hit, moved, offsetAt, shapes, zoomed } from "./tile";
import { stackAt, stepped } from "./walk";

const tile: Blocks = {
  from: 100,
  to: 140,
  step: 4,
  low: 1000,
  high: 2000,
  unit: 10,
  allocated: [],
  reserved: [],
  at: [],
  inside: 2,
  labels: { sites: [], categories: [], modules: [], streams: [] },
  blocks: {
    n: [7, 9],
    begin: [3, 106],
    end: [-1, 121],
    bytes: [200, 50],
    site: [0, 1],
    category: [0, 0],
    module: [0, 0],
    stream: [0, 0],
    first: [1],
    steps: [1, 0, 5, 2, 2, 25, 3, -20],
  },
};

test("steps are columns and offsets, as differences", () => {
  const [low, high] = shapes(tile);
  expect(low).toMatchObject({ n: 7, point: [100, 140], offset: [1050], found: false });
  expect(high).toMatchObject({ n: 9, point: [108, 120, 124], offset: [1250, 1050], found: true });
});

test("a shape is hit where it lies", () => {
  const all = shapes(tile),
    high = all[1]!;
  expect([107, 108, 119, 120, 124].map((p) => offsetAt(high, p))).toEqual([
    null,
    1250,
    1250,
    1050,
    null,
  ]);
  expect(hit(all, 110, 1249)?.n).toBe(7);
  expect(hit(all, 110, 1250)?.n).toBe(9);
  expect(hit(all, 110, 1300)).toBeUndefined();
});

test("a zoom keeps its place and stays inside", () => {
  expect(zoomed([0, 100], 25, 0.5, [0, 100], 4)).toEqual([12.5, 62.5]);
  expect(zoomed([10, 20], 15, 100, [0, 100], 4)).toEqual([0, 100]);
  expect(zoomed([10, 20], 10, 0.01, [0, 100], 4)).toEqual([10, 14]);
  expect(moved([10, 20], 500, [0, 100])).toEqual([90, 100]);
});

test("keys go from block to block of a moment, and stop at both ends", () => {
  const all = shapes(tile),
    stack = stackAt(all, 110, [0, 2000]),
    place = (n: number, offset: number) => ({ shape: { ...all[0]!, n }, offset });
  expect(stack.map((p) => p.shape.n)).toEqual([7, 9]);
  expect(stackAt(all, 110, [1250, 2000]).map((p) => p.shape.n)).toEqual([9]);
  expect([1, -1, -Infinity, Infinity].map((by) => stepped(stack, null, by))).toEqual([0, 1, 0, 1]);
  expect([1, -1, 10, Infinity].map((by) => stepped(stack, stack[0]!, by))).toEqual([1, 0, 1, 1]);
  // one that lay between them, and is gone
  expect([1, -1].map((by) => stepped(stack, place(4, 1100), by))).toEqual([1, 0]);
  expect([1, -1].map((by) => stepped([], place(4, 1100), by))).toEqual([-1, -1]);
});
