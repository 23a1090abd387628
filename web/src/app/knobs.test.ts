import { expect, test } from "vitest";
import { knobs, parsed, stepsOf, written } from "./knobs";

test("a line of settings becomes knobs and a line again", () => {
  for (const line of [
    "",
    "expandable_segments:True",
    "max_split_size_mb:128,garbage_collection_threshold:0.8",
    "roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True",
  ])
    expect(written(parsed(line))).toBe(line);
  expect(parsed("roundup_power2_divisions:[256:1,512:2]").get("roundup_power2_divisions")).toBe(
    "[256:1,512:2]",
  );
});

test("a value that is not a step has its place among them", () => {
  const split = knobs.find((k) => k.name === "max_split_size_mb")!;
  expect(stepsOf(split, "100")).toEqual([
    "",
    "20",
    "32",
    "64",
    "100",
    "128",
    "256",
    "512",
    "1024",
    "2048",
  ]);
  expect(stepsOf(split, "64")).toBe(split.steps);
});
