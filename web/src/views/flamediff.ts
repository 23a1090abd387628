// Two call trees as one: a bar is as wide as the larger of what a call held before and after, and coloured by the change.

import type { StackSet } from "../api";
import { merged, type Both } from "../lib/difference";
import { bytes } from "../lib/format";
import type { Call } from "../lib/icicle";
import { h } from "./dom";
import type { PageStore } from "../state/store";
import { patternOf } from "../state/selection";
import { calledBy, flame, plain, type Graph } from "./flame";

/** The difference of two sets as a flame graph draws it. */
export function graphOf(before: StackSet, after: StackSet): Graph {
  const frames: Graph["frames"] = [];
  const call = (b: Both, top = false): Call => ({
    frame: top ? -1 : frames.push({ file: b.file, ...(b.line ? { line: b.line } : {}), function: b.name, ...(b.user ? { user: true } : {}), ...(b.native ? { native: true } : {}) }) - 1,
    before: b.before, after: b.after, value: Math.max(b.before, b.after), blocks: 0, children: b.children.map((c) => call(c)).filter((c) => c.value > 0),
  });
  return { title: "Calls before and after", frames, root: call(merged(before, after), true), figure: bytes };
}

/** What the colours of a difference mean. */
export const changeKey = () => h("p", { class: "phases" }, h("span", {}, h("i", { style: "background:var(--curve-1)" }), "▲ holds more"), h("span", {}, h("i", { style: "background:var(--curve-2)" }), "▼ holds less"));

export function flameDiff(before: StackSet, after: StackSet, page: PageStore): HTMLElement {
  const graph = flame({ find: (search) => page.set({ search: page.get().search === search ? "" : search }) });
  graph.show(graphOf(before, after), { ...plain, native: true });
  page.follow(["search"], ({ search }) => { const pattern = patternOf(search); graph.search(pattern && ((f) => pattern.test(calledBy(f)))); });
  return h("div", {}, graph.element, changeKey());
}
