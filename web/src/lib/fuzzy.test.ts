import { expect, test } from "vitest";
import { fuzzy, search } from "./fuzzy";

test("letters are found in their order, words in any", () => {
  expect(fuzzy("trs", "tree.rss")?.at).toEqual([0, 5, 6]);
  expect(fuzzy("rss tree", "tree.rss")?.at).toEqual([0, 1, 2, 3, 5, 6, 7]);
  expect(fuzzy("sr", "rs")).toBeNull();
  expect(fuzzy("xyz", "tree.rss")).toBeNull();
});

test("beginnings of words come first, then what is shorter", () => {
  const best = (letters: string, ...items: string[]) =>
    search(letters, items, (i) => i).map((f) => f.item);
  expect(best("fau", "default view", "page faults")).toEqual(["page faults", "default view"]);
  expect(best("rss", "RSS, all processes", "RSS")).toEqual(["RSS", "RSS, all processes"]);
  expect(best("gr", "Segments: larger", "Go to runs")).toEqual(["Go to runs", "Segments: larger"]);
  expect(best("", "b", "a")).toEqual(["b", "a"]);
});
