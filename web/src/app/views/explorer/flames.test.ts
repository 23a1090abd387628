import { expect, test } from "vitest";
import { parsed, written } from "./flames";

test("what a graph shows stands in the address and comes back", () => {
  for (const text of [
    "",
    "peak",
    "freed.inverted",
    "since-1200.flame.calls.native",
    "held.sandwich.of:/a/model.py:Net.forward",
  ])
    expect(written(parsed(text))).toBe(text);
  expect(parsed("since-1200.native")).toEqual({
    what: "since",
    since: 1200,
    how: { view: "icicle", order: "largest", native: true, of: "" },
  });
  expect(written(parsed("nonsense.since-x"))).toBe("");
});
