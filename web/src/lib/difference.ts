// Two peaks and what lies between them: rows that add up to the difference, and call trees side by
// side.

import type { Report, StackSet, Table } from "../api";
import { place } from "./format";
import { grow, type StackFigure } from "./icicle";

export interface Part {
  name: string;
  before: number;
  after: number;
}
export interface Difference {
  before: number;
  after: number;
  parts: Part[];
  by: string;
}

/** The rows of a table of differences as the engine makes it; null: it is none. */
export function ofTable(table: Table): Difference | null {
  const at = (name: string) => table.columns.findIndex((c) => c.name === name),
    [what, a, b] = [at("what"), at("a"), at("b")];
  if (what < 0 || a < 0 || b < 0) return null;
  const parts = table.rows.map((r): Part => ({
    name: String(r[what] ?? ""),
    before: Number(r[a] ?? 0),
    after: Number(r[b] ?? 0),
  }));
  return {
    parts,
    before: parts.reduce((n, p) => n + p.before, 0),
    after: parts.reduce((n, p) => n + p.after, 0),
    by: table.columns[what]!.title.toLowerCase(),
  };
}

/**
 * What two reports say in a table of the same name: its first column names a part, one column has
 * bytes. What the rows do not cover is a part of its own.
 */
export function ofReports(a: Report, b: Report, name: string): Difference | null {
  const [p, q] = [a, b].map((r) => r.tables.find((t) => t.name === name)) as [
    Table | undefined,
    Table | undefined,
  ];
  if (!p || !q) return null;
  const kindOf = (t: Table, row: Table["rows"][number]) =>
    row[t.columns.findIndex((c) => c.name === "kind")];
  const sampled = [p, q].every((t) => t.rows.some((r) => kindOf(t, r) === "allocations"));
  const part = (t: Table, row: Table["rows"][number]) => {
    // as hightide diff names them
    if (name !== "composition") return String(row[0] ?? "");
    // where one heap was not sampled, what it held is not told apart
    if (kindOf(t, row) !== "process" && !sampled) return "the process that held most";
    return String(row[t.columns.findIndex((c) => c.name === "part")] ?? "");
  };
  const read = (t: Table) => {
    const bytes = t.columns.findIndex((c) => c.name === "bytes"),
      found = new Map<string, number>();
    for (const r of t.rows)
      if (typeof r[bytes] === "number")
        found.set(part(t, r), (found.get(part(t, r)) ?? 0) + r[bytes]);
    return found;
  };
  const before = read(p),
    after = read(q),
    sum = (m: Map<string, number>) => [...m.values()].reduce((n, v) => n + v, 0);
  const parts = [...new Set([...before.keys(), ...after.keys()])].map((key): Part => ({
    name: key,
    before: before.get(key) ?? 0,
    after: after.get(key) ?? 0,
  }));
  const whole = {
    before: Math.max(p.total_bytes ?? 0, sum(before)),
    after: Math.max(q.total_bytes ?? 0, sum(after)),
  };
  const rest = {
    name: "everything else",
    before: whole.before - sum(before),
    after: whole.after - sum(after),
  };
  if (rest.before || rest.after) parts.push(rest);
  return { ...whole, parts, by: name === "composition" ? "part" : "line" };
}

/** The largest changes first, and all others in one. */
export function largest(d: Difference, most: number): Part[] {
  const moved = d.parts
    .filter((p) => p.before !== p.after)
    .sort((p, q) => Math.abs(q.after - q.before) - Math.abs(p.after - p.before));
  const rest = moved.slice(most);
  return [
    ...moved.slice(0, most),
    ...(rest.length
      ? [
          {
            name: `${rest.length} more`,
            before: rest.reduce((n, p) => n + p.before, 0),
            after: rest.reduce((n, p) => n + p.after, 0),
          },
        ]
      : []),
  ];
}

/**
 * Names of call paths as a picture has room for them, by their whole names: the outermost callers
 * that all of them share are left out, and a file is said once for calls that follow each other in
 * it. Other names stay as they are.
 */
export function shortened(names: string[]): Map<string, string> {
  const paths = names.map((name) => name.split(" ← ")).filter((calls) => calls.length > 1);
  let shared = 0;
  if (paths.length > 1)
    while (
      paths.every(
        (calls) => shared < calls.length - 1 && calls.at(-1 - shared) === paths[0]!.at(-1 - shared),
      )
    )
      shared++;
  return new Map(
    names.map((name) => {
      const calls = name.split(" ← "),
        kept = calls.slice(0, Math.max(1, calls.length - shared)),
        file = (call: string) => call.slice(0, call.indexOf(":") + 1);
      return [
        name,
        kept
          .map((call, i) =>
            i > 0 && file(call) && file(call) === file(kept[i - 1]!)
              ? call.slice(file(call).length)
              : call,
          )
          .join(" ← "),
      ];
    }),
  );
}

/** A call in both trees: what it held before and after, with its callees. */
export interface Both {
  name: string;
  file: string;
  line?: number | undefined;
  user: boolean;
  native: boolean;
  before: number;
  after: number;
  children: Both[];
}

/**
 * Call trees of two sets as one: calls are the same where function and file are, so lines may move.
 */
export function merged(a: StackSet, b: StackSet, figure: StackFigure = "bytes"): Both {
  const root: Both = {
    name: "all stacks",
    file: "",
    user: false,
    native: false,
    before: 0,
    after: 0,
    children: [],
  };
  const add = (set: StackSet, side: "before" | "after") => {
    const walk = (from: ReturnType<typeof grow>, to: Both) => {
      to[side] += from.value;
      for (const child of from.children) {
        const f = set.frames[child.frame]!,
          name = f.function || f.file;
        let found = to.children.find((c) => c.name === name && c.file === f.file);
        if (!found)
          to.children.push(
            (found = {
              name,
              file: f.file,
              line: f.line,
              user: Boolean(f.user),
              native: Boolean(f.native),
              before: 0,
              after: 0,
              children: [],
            }),
          );
        walk(child, found);
      }
    };
    walk(grow(set, figure), root);
  };
  add(a, "before");
  add(b, "after");
  return root;
}

/** What of a stack may be chosen; empty words stand for nothing. */
export interface Chosen {
  line: string;
  module: string;
  category: string;
}

type Frame = StackSet["frames"][number];
const base = (file: string) => file.slice(file.lastIndexOf("/") + 1);

/**
 * The frame by which a stack, its innermost frame first, is what is chosen; -1: it is not. A line
 * is named as the rows of a difference have it: by the functions of the program's own files that
 * the stack passes through, or by the place of a frame.
 */
export function namedBy(
  stack: Frame[],
  categories: Record<string, number>,
  { line, module, category: kind }: Chosen,
): number {
  let at = 0;
  if (kind && !categories[kind]) return -1;
  if (module) {
    const forward = stack.findIndex((f) => f.function === "forward" && !f.native);
    if (
      forward < 0
        ? module !== "outside of modules"
        : `${base(stack[forward]!.file)}:forward` !== module
    )
      return -1;
    at = Math.max(forward, 0);
  }
  if (!line) return at;
  const own = stack.filter((f) => f.user && !f.file.startsWith("<"));
  if (own.length > 0 && own.map((f) => `${base(f.file)}:${f.function ?? ""}`).join(" ← ") === line)
    return stack.indexOf(own[0]!);
  const backward = / \(autograd\)$/.test(line) ? `::${line.replace(/ \(autograd\)$/, "")}::` : "";
  if (backward)
    return own.length > 0 ? -1 : stack.findIndex((f) => f.native && f.function?.includes(backward));
  const named = stack.findIndex((f) => f.user),
    first = named < 0 ? 0 : named; // else the innermost frame says what it is
  return stack[first] &&
    (place(stack[first].file, stack[first].line) === line || stack[first].function === line)
    ? first
    : -1;
}
