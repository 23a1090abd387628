// A flame graph's tree: calls with the sum of what is below them.

import type { StackSet } from "../api";

/**
 * folded: how many calls deep the run is that this one stands for, and the run itself. first: so
 * many events were before its first block. before and after: of a difference, whose value is the
 * larger of both.
 */
export interface Call {
  frame: number;
  value: number;
  blocks: number;
  children: Call[];
  first?: number;
  folded?: number;
  run?: Call;
  before?: number;
  after?: number;
}

export type StackFigure = "bytes" | "average_bytes" | "allocations" | "churn_bytes" | "end_bytes";

/** The figure of a stack that a measure stands for. */
export const figures: Record<string, StackFigure> = {
  bytes: "bytes",
  "bytes-time": "average_bytes",
  count: "allocations",
  churn: "churn_bytes",
  end: "end_bytes",
};

/** The tree of a set by one figure. */
export function grow(set: StackSet, figure: StackFigure): Call {
  const root: Call = { frame: -1, value: 0, blocks: 0, children: [] };
  const nodes = set.places.map((frame): Call => ({ frame, value: 0, blocks: 0, children: [] }));
  nodes.forEach((n, i) => (nodes[set.parents[i]!] ?? root).children.push(n));
  for (const use of set.stacks) {
    const value = use[figure] ?? 0;
    for (let at = use.node; ; at = set.parents[at]!) {
      const n = nodes[at] ?? root;
      n.value += value;
      n.blocks += use.count;
      n.first = Math.min(n.first ?? Infinity, use.first ?? 0);
      if (n === root) break;
    }
  }
  for (const n of [root, ...nodes])
    n.children = n.children.filter((c) => c.value > 0).sort((a, b) => b.value - a.value);
  return root;
}

/** The tree with each run of native calls as one: who looks for them unfolds it. */
export function fold(call: Call, native: (c: Call) => boolean): Call {
  if (!native(call)) return { ...call, children: call.children.map((c) => fold(c, native)) };
  const below: Call[] = [];
  const depth = (c: Call): number =>
    1 +
    Math.max(
      0,
      ...c.children.map((d) => (native(d) ? depth(d) : (below.push(fold(d, native)), 0))),
    );
  const folded = depth(call);
  const one = { ...call, children: below.sort((a, b) => b.value - a.value) };
  return folded > 1 ? { ...one, folded, run: call } : one;
}

/** Puts the run in the place of the call that stands for it. */
export function unfold(call: Call, native: (c: Call) => boolean): void {
  const open = (c: Call): Call => ({
    ...c,
    children: c.children.map((d) => (native(d) ? open(d) : fold(d, native))),
  });
  if (!call.run) return;
  call.children = open(call.run).children;
  delete call.folded;
  delete call.run;
}

/** The calls of one node, innermost first. */
export function callsOf(set: StackSet, node: number): StackSet["frames"] {
  const calls = [];
  for (let at = node; at >= 0; at = set.parents[at]!) calls.push(set.frames[set.places[at]!]!);
  return calls;
}

/**
 * The tree with calls in the order of what they allocated first, or with the largest on the left.
 */
export function ordered(call: Call, by: "largest" | "calls"): Call {
  const before =
    by === "calls"
      ? (a: Call, b: Call) => (a.first ?? 0) - (b.first ?? 0) || b.value - a.value
      : (a: Call, b: Call) => b.value - a.value;
  return { ...call, children: call.children.map((c) => ordered(c, by)).sort(before) };
}

const none = (): Call => ({ frame: -1, value: 0, blocks: 0, children: [] });

/** Adds what a call has by itself. */
function add(to: Call, c: Call, value = c.value, blocks = c.blocks): void {
  to.value += value;
  to.blocks += blocks;
  to.first = Math.min(to.first ?? Infinity, c.first ?? 0);
}

/** The child of a frame, which is made where there is none. */
function child(of: Call, frame: number): Call {
  let found = of.children.find((c) => c.frame === frame);
  if (!found) of.children.push((found = { ...none(), frame }));
  return found;
}

/** What a call has that no callee of it has. */
const own = (c: Call): [value: number, blocks: number] => [
  c.value - c.children.reduce((n, d) => n + d.value, 0),
  c.blocks - c.children.reduce((n, d) => n + d.blocks, 0),
];

/**
 * Calls by who allocates: below each are its callers. Innermost calls that are beneath are left
 * out, where a caller is not.
 */
export function inverted(root: Call, beneath: (c: Call) => boolean = () => false): Call {
  const all = none();
  const walk = (c: Call, path: Call[]): void => {
    const [value, blocks] = own(c),
      from = path.findIndex((p) => !beneath(p));
    if (value > 0) {
      add(all, c, value, blocks);
      let at = all;
      for (const p of from > 0 ? path.slice(from) : path)
        add((at = child(at, p.frame)), c, value, blocks);
    }
    for (const d of c.children) walk(d, [d, ...path]);
  };
  walk(root, []);
  return ordered(all, "largest");
}

/**
 * One function, wherever it is called: its callers as a tree that begins with it, and its callees
 * likewise. A call of itself counts once.
 */
export function sandwich(
  root: Call,
  is: (frame: number) => boolean,
): { callers: Call; callees: Call } {
  const callers = none(),
    callees = none();
  const merge = (to: Call, from: Call): void => {
    add(to, from);
    for (const d of from.children) merge(child(to, d.frame), d);
  };
  const walk = (c: Call, path: Call[]): void => {
    if (c.frame >= 0 && is(c.frame)) {
      merge(callees, c);
      callers.frame = callees.frame = c.frame;
      add(callers, c);
      let at = callers;
      for (const p of path) add((at = child(at, p.frame)), c);
      return;
    }
    for (const d of c.children) walk(d, c.frame >= 0 ? [c, ...path] : path);
  };
  walk(root, []);
  return { callers: ordered(callers, "largest"), callees: ordered(callees, "largest") };
}

/**
 * A function: what it allocates itself, and what it has with all that it calls, where a call of
 * itself counts once.
 */
export interface Sum {
  frame: number;
  own: number;
  value: number;
}

/** The functions of a tree, which of tells apart, by what they allocate themselves, most first. */
export function functions(root: Call, of: (frame: number) => string): Sum[] {
  const all = new Map<string, Sum>(),
    within = new Set<Sum>();
  const walk = (c: Call): void => {
    let sum = c.frame < 0 ? undefined : all.get(of(c.frame));
    if (c.frame >= 0 && !sum) all.set(of(c.frame), (sum = { frame: c.frame, own: 0, value: 0 }));
    const outermost = sum && !within.has(sum);
    if (sum) {
      sum.own += own(c)[0];
      if (outermost) {
        sum.value += c.value;
        within.add(sum);
      }
    }
    for (const d of c.children) walk(d);
    if (sum && outermost) within.delete(sum);
  };
  walk(root);
  return [...all.values()].sort((a, b) => b.own - a.own || b.value - a.value);
}

/** How much of a tree calls have that match, each counted once. */
export const matched = (c: Call, is: (c: Call) => boolean): number =>
  is(c) ? c.value : c.children.reduce((n, d) => n + matched(d, is), 0);
