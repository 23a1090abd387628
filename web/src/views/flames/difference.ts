// Two call trees as one: a bar is as wide as the larger of what a call held before and after, and
// coloured by the change.

import type { StackSet } from "../../api";
import { merged, namedBy, type Both, type Chosen } from "../../lib/difference";
import { bytes } from "../../lib/format";
import type { Call } from "../../lib/icicle";
import { h } from "../dom";
import type { PageStore } from "../../state/page";
import { patternOf } from "../../state/selection";
import { calledBy, choices, flame, plain, type Graph, type How } from "./flame";

/** The difference of two sets as a flame graph draws it. */
export function graphOf(before: StackSet, after: StackSet): Graph {
  const frames: Graph["frames"] = [];
  const call = (b: Both, top = false): Call => ({
    frame: top
      ? -1
      : frames.push({
          file: b.file,
          ...(b.line ? { line: b.line } : {}),
          function: b.name,
          ...(b.user ? { user: true } : {}),
          ...(b.native ? { native: true } : {}),
        }) - 1,
    before: b.before,
    after: b.after,
    value: Math.max(b.before, b.after),
    blocks: 0,
    children: b.children.map((c) => call(c)).filter((c) => c.value > 0),
  });
  return {
    title: "Calls before and after",
    frames,
    root: call(merged(before, after), true),
    figure: bytes,
  };
}

/** What the colours of a difference mean. */
export const changeKey = () =>
  h(
    "p",
    { class: "phases" },
    h("span", {}, h("i", { style: "background:var(--curve-1)" }), "▲ holds more"),
    h("span", {}, h("i", { style: "background:var(--curve-2)" }), "▼ holds less"),
  );

/**
 * Lights the calls of the line, module or category that is selected and of what is searched for,
 * and says what its stacks hold.
 */
export function flameDiff(before: StackSet, after: StackSet, page: PageStore): HTMLElement {
  const graph = flame({
      find: (search) => page.set({ search: page.get().search === search ? "" : search }),
    }),
    shown = graphOf(before, after);
  let how: How = plain;
  const looks = choices(
    () => how,
    (to) => {
      how = { ...how, ...to };
      looks.follow();
      graph.show(shown, how);
    },
    ["order", "inverted"],
  );
  graph.show(shown, how);
  page.follow(["line", "module", "category", "search"], ({ line, module, category, search }) => {
    const pattern = patternOf(search),
      has =
        line || module || category
          ? chosenCalls(shown, before, after, { line, module, category })
          : null;
    graph.search(
      has
        ? (f) => has.calls.has(f) && (!pattern || pattern.test(calledBy(f)))
        : pattern && ((f) => pattern.test(calledBy(f))),
      has?.said,
    );
  });
  return h("div", {}, looks.element, graph.element, changeKey());
}

type Frame = Graph["frames"][number];

/**
 * The calls that name the stacks of a line, module or category, and what those stacks hold before
 * and after.
 */
function chosenCalls(
  { root, frames }: Graph,
  before: StackSet,
  after: StackSet,
  wanted: Chosen,
): { calls: Set<Frame>; said: string } {
  const calls = new Set<Frame>(),
    sums = [0, 0];
  [before, after].forEach((set, side) => {
    for (const use of set.stacks) {
      const stack: number[] = []; // innermost first
      for (let at = use.node; at >= 0; at = set.parents[at]!) stack.push(set.places[at]!);
      const named = namedBy(
        stack.map((f) => set.frames[f]!),
        use.categories ?? {},
        wanted,
      );
      if (named < 0) continue;
      sums[side]! += wanted.category ? use.categories![wanted.category]! : use.bytes;
      let call = root;
      for (const f of stack.slice(named).reverse()) {
        const { file, function: name } = set.frames[f]!,
          next = call.children.find((c) => {
            const g = frames[c.frame]!;
            return g.file === file && g.function === (name || file);
          });
        if (!next) break;
        call = next;
      }
      if (call !== root) calls.add(frames[call.frame]!);
    }
  });
  return {
    calls,
    said:
      sums[0] || sums[1]
        ? `The stacks of what is selected hold ${bytes(sums[0]!)} before and ` +
          `${bytes(sums[1]!)} after. Stacks too small to draw are left out.`
        : "No stack drawn here belongs to the selection.",
  };
}
