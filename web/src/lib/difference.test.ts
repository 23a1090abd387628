import { expect, test } from "vitest";
import type { Report, StackSet, Table } from "../api";
import { largest, merged, namedBy, ofReports, ofTable, shortened } from "./difference";

const table = (rows: Table["rows"]): Table => ({
  name: "diff",
  title: "",
  columns: [
    { name: "what", title: "Site" },
    { name: "delta", title: "", unit: "bytes" },
    { name: "a", title: "", unit: "bytes" },
    { name: "b", title: "", unit: "bytes" },
  ],
  rows,
});

test("rows add up to the difference", () => {
  const d = ofTable(
    table([
      ["x", 5, 10, 15],
      ["y", -3, 3, 0],
      ["z", 0, 7, 7],
      ["w", 1, 0, 1],
    ]),
  )!;
  expect([d.before, d.after, d.by]).toEqual([20, 23, "site"]);
  expect(largest(d, 1)).toEqual([
    { name: "x", before: 10, after: 15 },
    { name: "2 more", before: 3, after: 1 },
  ]);
  expect(largest(d, 9).reduce((n, p) => n + p.after - p.before, 0)).toBe(d.after - d.before);
  expect(ofTable({ name: "t", title: "", columns: [], rows: [] })).toBeNull();
});

test("of two reports' tables, with the rest as a part", () => {
  const report = (total: number, rows: [string, number, string, string][]) =>
    ({
      tables: [
        {
          name: "composition",
          title: "",
          label: "measured",
          total_bytes: total,
          columns: [
            { name: "what", title: "" },
            { name: "bytes", title: "" },
            { name: "part", title: "" },
            { name: "kind", title: "" },
          ],
          rows,
        },
      ],
    }) as unknown as Report;
  const before = report(100, [
    ["other allocations (data)", 60, "allocations", "allocations"],
    ["rest: code", 10, "rest", "rest"],
  ]);
  expect(
    ofReports(
      before,
      report(150, [["allocations", 90, "allocations", "allocations"]]),
      "composition",
    ),
  ).toEqual({
    before: 100,
    after: 150,
    by: "part",
    parts: [
      { name: "allocations", before: 60, after: 90 },
      { name: "rest", before: 10, after: 0 },
      { name: "everything else", before: 30, after: 60 },
    ],
  });
  expect(
    ofReports(before, report(70, [["rest: code", 70, "rest", "rest"]]), "composition")!.parts,
  ).toEqual([
    { name: "the process that held most", before: 70, after: 70 },
    { name: "everything else", before: 30, after: 0 },
  ]);
  expect(ofReports(report(1, []), { tables: [] } as unknown as Report, "composition")).toBeNull();
});

test("operators of one namespace are lines of their own", () => {
  const report = (...rows: [string, number][]) =>
    ({
      tables: [
        {
          name: "sites",
          title: "",
          label: "measured",
          total_bytes: 30,
          columns: [
            { name: "line", title: "" },
            { name: "bytes", title: "" },
          ],
          rows,
        },
      ],
    }) as unknown as Report;
  expect(
    ofReports(report(["at::mm", 10], ["at::add", 20]), report(["at::mm", 30]), "sites")!.parts,
  ).toEqual([
    { name: "at::mm", before: 10, after: 30 },
    { name: "at::add", before: 20, after: 0 },
  ]);
});

test("call trees become one by function and file", () => {
  const set = (line: number, bytes: number, other: string): StackSet => ({
    name: "device",
    title: "",
    label: "measured",
    total_bytes: 0,
    frames: [
      { file: "a.py", line: 1, function: "main" },
      { file: "a.py", line, function: "f" },
      { file: "b.py", line: 1, function: other },
    ],
    parents: [-1, 0, 0],
    places: [0, 1, 2],
    stacks: [
      { node: 1, bytes, count: 1 },
      { node: 2, bytes: 5, count: 1 },
    ],
  });
  const root = merged(set(3, 10, "g"), set(4, 30, "h"));
  expect([root.before, root.after]).toEqual([15, 35]);
  expect(root.children[0]!.children.map((c) => [c.name, c.before, c.after])).toEqual([
    ["f", 10, 30],
    ["g", 5, 0],
    ["h", 0, 5],
  ]);
});

test("a stack is of a line, a module or a category as the rows of a difference name them", () => {
  const stack = [
    { file: "/lib/linear.py", line: 9, function: "forward" },
    { file: "/my/model.py", line: 12, function: "forward", user: true },
    { file: "/my/train.py", line: 3, function: "<module>", user: true },
  ];
  const by = (what: object, kind?: string) =>
    namedBy(stack, kind ? { [kind]: 8 } : {}, { line: "", module: "", category: "", ...what });
  expect(by({ line: "model.py:forward ← train.py:<module>" })).toBe(1);
  expect(by({ line: "model.py:12" })).toBe(1);
  expect(by({ line: "train.py:3" })).toBe(-1);
  expect(by({ module: "linear.py:forward" })).toBe(0);
  expect(by({ module: "model.py:forward" })).toBe(-1);
  expect([
    by({ category: "activations" }, "activations"),
    by({ category: "activations" }),
    by({ category: "activations", module: "x" }, "activations"),
  ]).toEqual([0, -1, -1]);
});

test("call paths lose the callers that all share, and a file said twice", () => {
  const [a, b, c] = [
    "a.py:main ← a.py:<module>",
    "m.py:forward ← m.py:forward ← a.py:main ← a.py:<module>",
    "everything else",
  ];
  expect([...shortened([a!, b!, c!]).values()]).toEqual([
    "a.py:main",
    "m.py:forward ← forward ← a.py:main",
    "everything else",
  ]);
  expect([...shortened([a!, c!]).values()]).toEqual(["a.py:main ← <module>", "everything else"]);
  expect([...shortened(["x ← y", "y ← z"]).values()]).toEqual(["x ← y", "y ← z"]);
});
