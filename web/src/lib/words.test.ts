import { expect, test } from "vitest";
import { commandLine } from "./format";
import { words } from "./words";

test("words of a command line, and back", () => {
  expect(words("python train.py  --lr 1e-3\n")).toEqual(["python", "train.py", "--lr", "1e-3"]);
  expect(words(`sh -c 'echo "a b"' "x\\"y" z\\ w ''`)).toEqual([
    "sh",
    "-c",
    'echo "a b"',
    'x"y',
    "z w",
    "",
  ]);
  expect(words("torchrun \\\n  train.py")).toEqual(["torchrun", "train.py"]);
  for (const some of [
    ["python", "a b.py", "it's", "$HOME", "{batch}"],
    ["", "x"],
  ])
    expect(words(commandLine(some))).toEqual(some);
  expect(() => words("echo 'a")).toThrow("not closed");
  expect(() => words("echo \\")).toThrow("backslash");
});
