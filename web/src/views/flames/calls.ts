// What a call of a flame graph is called, and what is said of it.

import { count, percent, place } from "../../lib/format";
import type { Call } from "../../lib/icicle";
import { h } from "../dom";
import type { Frame, Graph, How } from "./graph";

/** What a search looks at, as the server does: FILE:FUNCTION. */
export const calledBy = (f: Frame): string => `${f.file}:${f.function ?? ""}`;

/** A graph, how it is drawn, and which of its calls are looked for; null: none. */
export interface Looked {
  graph: Graph;
  how: How;
  wanted: ((f: Frame) => boolean) | null;
}

export const frameOf = ({ graph }: Looked, c: Call): Frame | undefined => graph.frames[c.frame];
export const isNative = (of: Looked, c: Call): boolean => !!frameOf(of, c)?.native;

export function nameOf(of: Looked, c: Call): string {
  const f = frameOf(of, c);
  if (!f) return "all stacks";
  const folded = c.folded ? ` and ${c.folded - 1} more of C++` : "";
  return (f.function || place(f.file, f.line)) + folded;
}

/** Whether the graph is about a function, which has several lines. */
const isAbout = ({ how }: Looked, f: Frame) => how.view === "sandwich" && calledBy(f) === how.of;

const lineOf = (of: Looked, f: Frame) => place(f.file, isAbout(of, f) ? undefined : f.line);

/** What stands in a bar beside its name: its line, and the text of that. */
export function besideName(of: Looked, c: Call): (HTMLElement | null)[] {
  const f = frameOf(of, c);
  return [
    f?.function && f.line && !f.native && !c.folded ? h("small", {}, lineOf(of, f)) : null,
    f?.source && !isAbout(of, f) ? h("code", {}, f.source) : null,
  ];
}

export function figureOf({ graph }: Looked, c: Call): string {
  if (c.before === undefined) return graph.figure(c.value);
  const after = c.after ?? 0,
    both = `${graph.figure(c.before)} before, ${graph.figure(after)} after`;
  if (c.before === c.after) return both;
  return `${both}, ${after > c.before ? "+" : "−"}${graph.figure(Math.abs(after - c.before))}`;
}

export function isWanted(of: Looked, c: Call): boolean {
  const f = frameOf(of, c);
  return of.wanted !== null && f !== undefined && of.wanted(f);
}

/** Whether a call is looked for, or one that is folded into it. */
export function isHit(of: Looked, c: Call): boolean {
  const inRun = (d: Call): boolean =>
    of.wanted !== null && isNative(of, d) && (isWanted(of, d) || d.children.some(inRun));
  return isWanted(of, c) || (c.run !== undefined && inRun(c.run));
}

/** All that is said of a call that is looked at. */
export function saidOf(of: Looked, c: Call): string {
  const { graph } = of,
    f = frameOf(of, c);
  return [
    nameOf(of, c),
    figureOf(of, c),
    c.before === undefined && percent((c.value / Math.max(graph.root.value, 1)) * 1000),
    graph.counted && c.blocks > 0 && `${count(c.blocks)} block${c.blocks === 1 ? "" : "s"}`,
    f?.file && (f.line && lineOf(of, f) !== place(f.file) ? `${f.file}:${f.line}` : f.file),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The classes of a bar. */
export function kindOf(of: Looked, c: Call): string {
  const plain = c.before === undefined && c.frame >= 0;
  return [
    c.folded && "folded",
    plain && (frameOf(of, c)?.user ? "own" : isNative(of, c) ? "native" : "library"),
    of.wanted && c.frame >= 0 && (isHit(of, c) ? "hit" : "miss"),
  ]
    .filter(Boolean)
    .join(" ");
}
