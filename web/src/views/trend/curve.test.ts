import { expect, test } from "vitest";
import type { Commit } from "../../api";
import { extent, short, ticks } from "./curve";

const commit = (mean: number, more: Partial<Commit> = {}): Commit => ({
  commit: "0123456789abcdef",
  first_run: "a",
  last_run: "b",
  runs: 2,
  mean_bytes: mean,
  lowest_bytes: mean - 5,
  highest_bytes: mean + 5,
  ...more,
});

test("a curve has room for each band of noise around the commit before, and for all runs", () => {
  const [low, high] = extent([commit(1000), commit(1100, { noise_bytes: 300 }), commit(900)]);
  expect(low).toBeLessThan(700);
  expect(high).toBeGreaterThan(1300);
  expect(extent([commit(5)])[0]).toBe(0);
});

test("ticks are round and within", () => {
  expect(ticks(900, 3000)).toEqual([1024, 2048]);
  expect(ticks(5, 5)).toEqual([5]);
  for (const v of ticks(123456789, 223456789)) {
    expect(v).toBeGreaterThanOrEqual(123456789);
    expect(v).toBeLessThanOrEqual(223456789);
  }
});

test("a commit is short, and says whether files differed", () => {
  expect(short(commit(1))).toBe("0123456789");
  expect(short(commit(1, { dirty: true }))).toBe("0123456789+");
});
