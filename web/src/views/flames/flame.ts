// The flame graph of every page: calls as bars, as wide as what they and their callees have. A
// graph is shown as an icicle (the outermost call at the top), as flames (at the foot), by who
// allocates, or around one function.
//
//	Graph ──▶ shaped (icicle.ts) ──▶ bars ──▶ buttons in a box
//	            How, which the reader changes

import { whileShown } from "../../draw/shown";
import { percent, place } from "../../lib/format";
import { fold, inverted, matched, ordered, sandwich, type Call } from "../../lib/icicle";
import { h } from "../dom";
import { draw, type Tree } from "./bars";
import { calledBy, frameOf, isHit, isNative, isWanted, saidOf, type Looked } from "./calls";
import { functionTable } from "./functions";
import { plain, views, type Frame, type Graph, type How } from "./graph";

export { calledBy } from "./calls";
export { plain, views, type Frame, type Graph, type How } from "./graph";

export interface Flame {
  element: HTMLElement;
  show(graph: Graph, how: How): void;
  /**
   * Lights the calls that are what is looked for, and says what they have, or what it is told to
   * say; null ends it.
   */
  search(hit: ((f: Frame) => boolean) | null, said?: string): void;
}

/**
 * What a flame graph tells: a call that was looked at, a change that the reader wants, and a
 * function to be searched for in all panels.
 */
export interface Told {
  change?(to: Partial<How>): void;
  picked?(frame: number): void;
  find?(pattern: string): void;
}

export function flame(told: Told = {}): Flame {
  const parts = partsOf(),
    { above, below, said, hits, about, through } = parts;
  const table = functionTable(calledBy, (of) => told.change?.({ view: "sandwich", of }));
  const of: Looked = { graph: nothing, how: plain, wanted: null };
  let says = "",
    looked: Frame | undefined,
    given = false,
    again = () => {};

  const look = (c: Call) => {
    const f = (looked = frameOf(of, c));
    said.textContent = saidOf(of, c);
    about.hidden = !f || !told.change || (of.how.view === "sandwich" && of.how.of === calledBy(f));
    through.hidden = !f || !told.find;
  };
  const focus = (c: Call) => {
    look(c);
    if (c.frame >= 0) told.picked?.(c.frame);
  };
  through.addEventListener("click", () => {
    if (looked) told.find?.(`${exactly(place(looked.file))}:${exactly(looked.function ?? "")}$`);
  });
  about.addEventListener("click", () => {
    if (looked) told.change?.({ view: "sandwich", of: calledBy(looked) });
  });

  const redraw = () => {
    const { graph, how, wanted } = of;
    if (how.view !== "sandwich") {
      table.element.remove();
      above.remove();
    } else {
      // moving it again would lose its place
      if (above.parentElement !== below.parentElement) below.before(table.element, above);
      table.show(graph, how.of, wanted);
    }
    const trees = how.view === "sandwich" ? around(of, below, above, said) : [whole(of, below)];
    again = () => {
      for (const tree of trees)
        if (tree.trail[0]!.value > 0) draw(of, tree, { look, focus });
        else tree.box.replaceChildren();
    };
    below.setAttribute("aria-label", graph.title);
    again();
    if (graph.root.value <= 0) said.textContent = "Nothing is here.";
    hits.hidden = !wanted;
    if (wanted) hits.textContent = says || shareOf(of);
    parts.hint.textContent = hintOf(of, trees);
  };
  whileShown(below, "hightide:theme", () => {
    if (of.graph.root.before !== undefined) again();
  });
  return {
    element: parts.element,
    show: (graph, how) => {
      Object.assign(of, { graph, how });
      given = true;
      redraw();
    },
    search: (wanted, text = "") => {
      if (!wanted && !of.wanted) return;
      [of.wanted, says] = [wanted, text];
      if (given) redraw();
    },
  };
}

const nothing: Graph = {
  title: "",
  frames: [],
  root: { frame: -1, value: 0, blocks: 0, children: [] },
  figure: String,
};

function partsOf() {
  const above = boxOf("Callers"),
    below = boxOf("Calls"),
    said = h("p", { class: "reading", role: "status" }),
    hits = h("p", { class: "reading hits", role: "status", hidden: "" }),
    hint = h("p", { class: "hint" }),
    hidden = { type: "button", class: "plain", hidden: "" },
    about = h("button", hidden, "Callers and callees of it"),
    through = h("button", hidden, "Search for it in every panel");
  const tools = h("div", { class: "tools" }, said, about, through),
    element = h("div", { class: "flame" }, below, tools, hits, hint);
  return { element, above, below, said, hits, hint, about, through };
}

const folded = (of: Looked, c: Call) => (of.how.native ? c : fold(c, (d) => isNative(of, d)));

/** The whole graph: from the outermost call, or from those that allocate. */
function whole(of: Looked, box: HTMLElement): Tree {
  const { graph, how } = of,
    sorted = ordered(graph.root, how.order),
    leftOut = how.native ? undefined : (c: Call) => isNative(of, c) && !isHit(of, c),
    root = how.view === "inverted" ? inverted(sorted, leftOut) : sorted;
  return { box, trail: [folded(of, root)], up: how.view === "flame" };
}

/** The callers of one function above it, and its callees below. */
function around(of: Looked, below: HTMLElement, above: HTMLElement, said: HTMLElement): Tree[] {
  const { graph, how } = of,
    { callers, callees } = sandwich(graph.root, (f) => calledBy(graph.frames[f]!) === how.of);
  if (callers.frame < 0)
    said.textContent = how.of
      ? "This function has nothing here. Choose another."
      : "Choose a function to see its callers above it and its callees below.";
  return [
    { box: below, trail: [folded(of, callees)], up: false },
    { box: above, trail: [folded(of, callers)], up: true },
  ];
}

/** What the calls that are looked for have. */
function shareOf(of: Looked): string {
  const { root, figure } = of.graph,
    found = matched(root, (c) => c.frame >= 0 && isWanted(of, c));
  if (found <= 0) return "No call matches here.";
  return (
    `Calls that match have ${figure(found)}, ` +
    `${percent((found / root.value) * 1000)} of this graph.`
  );
}

function hintOf({ graph, how }: Looked, trees: Tree[]): string {
  return [
    graph.rest,
    "Click a call to look closer, click it again or press Escape to step back.",
    trees.some((t) => hasFolds(t.trail[0]!)) && "Runs of C++ are folded: click one to unfold it.",
    how.view === "inverted" && !how.native && "The innermost calls of C++ are left out.",
  ]
    .filter(Boolean)
    .join(" ");
}

const exactly = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const boxOf = (label: string) => h("div", { class: "icicle", role: "tree", "aria-label": label });

const hasFolds = (c: Call): boolean => !!c.folded || c.children.some(hasFolds);

/**
 * The choices of a flame graph, and what they change, without those of which nothing is known: the
 * order of calls; of a difference also who allocates.
 */
export function choices(
  how: () => How,
  change: (to: Partial<How>) => void,
  unknown: ("order" | "inverted")[] = [],
): { element: HTMLElement; follow(): void } {
  const group = (label: string, all: [title: string, to: Partial<How>][]) => {
    const buttons = all.map(([title, to]) => {
      const b = h("button", { type: "button" }, title);
      b.addEventListener("click", () => change(to));
      return b;
    });
    const follow = () =>
      all.forEach(([, to], i) => {
        buttons[i]!.setAttribute(
          "aria-pressed",
          String(Object.entries(to).every(([k, v]) => how()[k as keyof How] === v)),
        );
      });
    return {
      element: h("span", { class: "switch", role: "group", "aria-label": label }, ...buttons),
      follow,
    };
  };
  const groups = [
    group(
      "View",
      Object.entries(views)
        .filter(([view]) => !unknown.includes("inverted") || view === "icicle" || view === "flame")
        .map(([view, title]) => [title, { view: view as How["view"] }]),
    ),
    ...(unknown.includes("order")
      ? []
      : [
          group("Order", [
            ["largest left", { order: "largest" }],
            ["call order", { order: "calls" }],
          ]),
        ]),
    group("C++", [
      ["C++ folded", { native: false }],
      ["in full", { native: true }],
    ]),
  ];
  const follow = () => {
    for (const g of groups) g.follow();
  };
  follow();
  return {
    element: h("span", { class: "flame-choices" }, ...groups.map((g) => g.element)),
    follow,
  };
}
