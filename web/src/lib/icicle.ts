// A flame graph's tree: calls with the sum of what is below them.

import type { StackSet } from "../api";

/** folded: how many calls deep the run is that this one stands for, and the run itself. */
export interface Call { frame: number; value: number; blocks: number; children: Call[]; folded?: number; run?: Call }

export type StackFigure = "bytes" | "average_bytes" | "allocations" | "churn_bytes";

/** The figure of a stack that a measure stands for. */
export const figures: Record<string, StackFigure> = { bytes: "bytes", "bytes-time": "average_bytes", count: "allocations", churn: "churn_bytes" };

/** The tree of a set by one figure. */
export function grow(set: StackSet, figure: StackFigure): Call {
  const root: Call = { frame: -1, value: 0, blocks: 0, children: [] };
  const nodes = set.places.map((frame): Call => ({ frame, value: 0, blocks: 0, children: [] }));
  nodes.forEach((n, i) => (nodes[set.parents[i]!] ?? root).children.push(n));
  for (const use of set.stacks) {
    const value = use[figure] ?? 0;
    root.value += value; root.blocks += use.count;
    for (let at = use.node; at >= 0; at = set.parents[at]!) { nodes[at]!.value += value; nodes[at]!.blocks += use.count; }
  }
  for (const n of [root, ...nodes]) n.children = n.children.filter((c) => c.value > 0).sort((a, b) => b.value - a.value);
  return root;
}

/** The tree with each run of native calls as one: who looks for them unfolds it. */
export function fold(call: Call, native: (c: Call) => boolean): Call {
  if (!native(call)) return { ...call, children: call.children.map((c) => fold(c, native)) };
  const below: Call[] = [];
  const depth = (c: Call): number => 1 + Math.max(0, ...c.children.map((d) => native(d) ? depth(d) : (below.push(fold(d, native)), 0)));
  const folded = depth(call);
  const one = { ...call, children: below.sort((a, b) => b.value - a.value) };
  return folded > 1 ? { ...one, folded, run: call } : one;
}

/** Puts the run in the place of the call that stands for it. */
export function unfold(call: Call, native: (c: Call) => boolean): void {
  const open = (c: Call): Call => ({ ...c, children: c.children.map((d) => native(d) ? open(d) : fold(d, native)) });
  if (!call.run) return;
  call.children = open(call.run).children;
  delete call.folded; delete call.run;
}

/** The calls of one node, innermost first. */
export function callsOf(set: StackSet, node: number): StackSet["frames"] {
  const calls = [];
  for (let at = node; at >= 0; at = set.parents[at]!) calls.push(set.frames[set.places[at]!]!);
  return calls;
}
