import { expect, test } from "vitest";
import { filled } from "./segments";

test("what lies between the parts of a segment is free, and all add up to it", () => {
  const blocks = filled({
    size: 100,
    parts: [
      [10, 20, 4, 0],
      [30, 5, -3, -1],
      [90, 10, 6, 1],
    ],
  });
  expect(blocks).toEqual([
    [10, 0, -1],
    [20, 1, 4, 0],
    [5, 1, -3, -1],
    [55, 0, -1],
    [10, 1, 6, 1],
  ]);
  expect(filled({ size: 8, parts: [] })).toEqual([[8, 0, -1]]);
});
