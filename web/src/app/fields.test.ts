import { expect, test } from "vitest";
import { flags, options, type Field } from "./fields";

const fields: Field[] = [
  { name: "command", flag: "", label: "", hint: "", kind: "line" }, { name: "gpu", flag: "--gpu", label: "", hint: "", kind: "text" },
  { name: "gpus", flag: "--gpus", label: "", hint: "", kind: "number" }, { name: "vary", flag: "--vary", label: "", hint: "", kind: "check" },
];

test("one list of fields makes the line to copy and the job's options", () => {
  const values = { command: "python train.py --name 'a b'", gpu: "a10", gpus: "8", vary: "1" };
  expect(flags(fields, values)).toEqual(["--gpu", "a10", "--gpus", "8", "--vary"]);
  expect(options(fields, values)).toEqual({ command: ["python", "train.py", "--name", "a b"], gpu: "a10", gpus: 8, vary: true });
  expect(flags(fields, { command: "x", gpu: "", vary: "" })).toEqual([]);
  expect(options(fields, { gpu: " " })).toEqual({});
  expect(() => options(fields, { command: "python 'x" })).toThrow("not closed");
});
