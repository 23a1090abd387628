import { expect, test } from "vitest";
import type { Rank } from "../api";
import { compared } from "./ranks";

const rank = (n: number, more: Partial<Rank>): Rank => ({
  process: n + 1,
  rank: n,
  steps: 10,
  device_label: "measured",
  ...more,
});

test("measures that two ranks have, on scales that belong together", () => {
  const found = compared({
    ranks: [
      rank(0, { peak_rss_bytes: 10, loading_bytes: 20, work_ns: 5 }),
      rank(1, { peak_rss_bytes: 8, loading_bytes: 4, growth_bytes_per_step: 0 }),
      rank(2, { peak_rss_bytes: 9, growth_bytes_per_step: 0 }),
    ],
    suspects: [{ process: 1, rank: 0, aspect: "host", title: "", text: "" }],
  });
  expect(found.map((c) => [c.measure.key, c.top, c.middle, c.most, c.suspect])).toEqual([
    ["peak_rss_bytes", 20, 9, 0, 0],
    ["loading_bytes", 20, 4, 0, null],
    ["growth_bytes_per_step", 1, 0, 1, null],
  ]);
  expect(found[1]!.values).toEqual([20, 4, null]);
});
test("what nobody used is left out", () => {
  expect(
    compared({
      ranks: [rank(0, { peak_device_bytes: 0 }), rank(1, { peak_device_bytes: 0 })],
      suspects: [],
    }),
  ).toEqual([]);
});
