import { expect, test } from "vitest";
import { described, flags, options, wrong, type Field } from "./fields";

const fields: Field[] = [
  { name: "command", flag: "", label: "", hint: "", kind: "line" },
  { name: "gpu", flag: "--gpu", label: "", hint: "", kind: "text" },
  { name: "gpus", flag: "--gpus", label: "GPUs", hint: "", kind: "number", least: 1 },
  { name: "vary", flag: "--vary", label: "", hint: "", kind: "check" },
];

test("one list of fields makes the line to copy and the job's options", () => {
  const values = { command: "python train.py --name 'a b'", gpu: "a10", gpus: "8", vary: "1" };
  expect(flags(fields, values)).toEqual(["--gpu", "a10", "--gpus", "8", "--vary"]);
  expect(options(fields, values)).toEqual({
    command: ["python", "train.py", "--name", "a b"],
    gpu: "a10",
    gpus: 8,
    vary: true,
  });
  expect(flags(fields, { command: "x", gpu: "", vary: "" })).toEqual([]);
  expect(options(fields, { gpu: " " })).toEqual({});
  expect(() => options(fields, { command: "python 'x" })).toThrow("not closed");
});

test("a list, pairs, and a choice of which the usual one is not said", () => {
  const some = described([
    { name: "until", flag: "--until", label: "", hint: "", kind: "array" },
    { name: "tag", flag: "--tag", label: "", hint: "", kind: "object" },
    {
      name: "dtype",
      flag: "--dtype",
      label: "",
      hint: "",
      kind: "choice",
      choices: ["fp32", "bf16"],
      usual: "fp32",
    },
  ]);
  const values = { until: "epoch  checkpoint", tag: "model=a=b keep", dtype: "" };
  expect(flags(some, values)).toEqual(
    "--until epoch --until checkpoint --tag model=a=b --tag keep".split(" "),
  );
  expect(options(some, values)).toEqual({
    until: ["epoch", "checkpoint"],
    tag: { model: "a=b", keep: "" },
  });
  expect(some[2]!.choices).toEqual([
    ["", "fp32"],
    ["bf16", "bf16"],
  ]);
});

test("a number that cannot be is named before anything is started", () => {
  for (const gpus of ["0", "-1", "1.5", "1e99"])
    expect(wrong(fields, { gpus })).toBe("GPUs: a whole number from 1 on.");
  for (const gpus of ["", "1", "16"]) expect(wrong(fields, { gpus })).toBe("");
  expect(wrong([{ ...fields[2]!, least: undefined } as unknown as Field], { gpus: "0.5" })).toBe(
    "",
  );
});
