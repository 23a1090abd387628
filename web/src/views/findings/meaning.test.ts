import { expect, test } from "vitest";
import { meaningOf } from "./meaning";

test("a kind is explained in paragraphs, with a report as an example", () => {
  const said = meaningOf("leak");
  expect(said[0]).toEqual({
    lead: "",
    text: expect.stringMatching(/^Memory that grows with the steps/),
    quoted: false,
  });
  expect(said.map((p) => p.lead).filter(Boolean)).toEqual([
    "How it is found: ",
    "What it does not mean: ",
    "What to do: ",
  ]);
  expect(said.filter((p) => p.quoted)).toHaveLength(1);
  expect(said.every((p) => !/[>\n]/.test(p.text))).toBe(true);
});

test("of a kind that is not known nothing is said", () => {
  expect(meaningOf("ranks")).not.toEqual([]);
  expect(meaningOf("rank")).toEqual([]);
  expect(meaningOf("")).toEqual([]);
});
