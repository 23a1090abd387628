// The flame graph of every page: calls as bars, as wide as what they and their callees have. A
// graph is shown as an icicle (the outermost call at the top), as flames (at the foot), by who
// allocates, or around one function.
//
//	Graph ──▶ shaped (icicle.ts) ──▶ bars ──▶ buttons in a box
//	            How, which the reader changes

import { whileShown } from "../../draw/shown";
import type { StackSet } from "../../api";
import { mix, readable } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { count, percent, place } from "../../lib/format";
import { fold, inverted, matched, ordered, sandwich, unfold, type Call } from "../../lib/icicle";
import { h } from "../dom";
import { functionTable } from "./functions";

type Frame = StackSet["frames"][number];

/**
 * What is drawn. figure says a value in its unit; rest is what stacks too small to draw have;
 * counted: the blocks of a call are those of its value.
 */
export interface Graph {
  title: string;
  frames: Frame[];
  root: Call;
  figure(value: number): string;
  rest?: string;
  counted?: boolean;
}

/** How it is drawn; of is the function that a sandwich is about, as calledBy gives it. */
export interface How {
  view: keyof typeof views;
  order: "largest" | "calls";
  native: boolean;
  of: string;
}

export const views = {
  icicle: "icicle",
  flame: "flames",
  inverted: "by who allocates",
  sandwich: "functions",
} as const;
export const plain: How = { view: "icicle", order: "largest", native: false, of: "" };

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

const deepest = 48,
  thinnest = 0.002,
  tall = 25;

/** What a search looks at, as the server does: FILE:FUNCTION. */
export const calledBy = (f: Frame): string => `${f.file}:${f.function ?? ""}`;

export function flame(told: Told = {}): Flame {
  const above = boxOf("Callers"),
    below = boxOf("Calls"),
    said = h("p", { class: "reading", role: "status" }),
    hits = h("p", { class: "reading hits", role: "status", hidden: "" }),
    hint = h("p", { class: "hint" });
  const about = h(
      "button",
      { type: "button", class: "plain", hidden: "" },
      "Callers and callees of it",
    ),
    through = h(
      "button",
      { type: "button", class: "plain", hidden: "" },
      "Search for it in every panel",
    );
  let graph: Graph = {
      title: "",
      frames: [],
      root: { frame: -1, value: 0, blocks: 0, children: [] },
      figure: String,
    },
    how = plain,
    wanted: ((f: Frame) => boolean) | null = null,
    says = "",
    looked = -1,
    given = false;
  const frame = (c: Call): Frame | undefined => graph.frames[c.frame];
  const native = (c: Call) => !!frame(c)?.native;
  const name = (c: Call): string => {
    const f = frame(c);
    if (!f) return "all stacks";
    const folded = c.folded ? ` and ${c.folded - 1} more of C++` : "";
    return (f.function || place(f.file, f.line)) + folded;
  };
  const where = (c: Call) => {
    const f = frame(c);
    return f?.function && f.line && !f.native && !c.folded ? h("small", {}, lineOf(f)) : null;
  };
  const text = (c: Call) => {
    const f = frame(c);
    return f?.source && !(how.view === "sandwich" && calledBy(f) === how.of)
      ? h("code", {}, f.source)
      : null;
  };
  const lineOf = (f: Frame) =>
    // a function has several
    place(f.file, how.view === "sandwich" && calledBy(f) === how.of ? undefined : f.line);
  const figure = (c: Call) => {
    if (c.before === undefined) return graph.figure(c.value);
    const after = c.after ?? 0,
      both = `${graph.figure(c.before)} before, ${graph.figure(after)} after`;
    if (c.before === c.after) return both;
    return `${both}, ${after > c.before ? "+" : "−"}${graph.figure(Math.abs(after - c.before))}`;
  };
  const is = (c: Call): boolean => {
    const f = frame(c);
    return wanted !== null && f !== undefined && wanted(f);
  };
  const hit = (c: Call): boolean => is(c) || (c.run !== undefined && runHit(c.run));
  const runHit = (c: Call): boolean =>
    wanted !== null && native(c) && (is(c) || c.children.some(runHit));
  const tell = (c: Call) => {
    const f = frame(c);
    said.textContent = [
      name(c),
      figure(c),
      c.before === undefined && percent((c.value / Math.max(graph.root.value, 1)) * 1000),
      graph.counted && c.blocks > 0 && `${count(c.blocks)} block${c.blocks === 1 ? "" : "s"}`,
      f?.file && (f.line && lineOf(f) !== place(f.file) ? `${f.file}:${f.line}` : f.file),
    ]
      .filter(Boolean)
      .join(" · ");
    about.hidden = !f || !told.change || (how.view === "sandwich" && how.of === calledBy(f));
    through.hidden = !f || !told.find;
    looked = c.frame;
  };
  through.addEventListener("click", () => {
    const f = graph.frames[looked];
    if (f) told.find?.(`${exactly(place(f.file))}:${exactly(f.function ?? "")}$`);
  });
  const table = functionTable(calledBy, (of) => told.change?.({ view: "sandwich", of }));
  about.addEventListener("click", () => {
    const f = graph.frames[looked];
    if (f) told.change?.({ view: "sandwich", of: calledBy(f) });
  });
  const inkOf = (c: Call, ink: ReturnType<typeof change>): string => {
    if (c.before === undefined) return "";
    const ground = ink(c.before, c.after ?? 0, wanted !== null && c.frame >= 0 && !hit(c));
    return `;background:${ground};color:${readable(ground, "#000000", "#ffffff", 0.179)}`;
  }; // black or white has 4.5 to 1 on any colour
  const kind = (c: Call) =>
    [
      c.folded ? "folded" : "",
      c.before !== undefined || c.frame < 0
        ? ""
        : frame(c)?.user
          ? "own"
          : native(c)
            ? "native"
            : "library",
      wanted && c.frame >= 0 ? (hit(c) ? "hit" : "miss") : "",
    ]
      .filter(Boolean)
      .join(" ");

  /** One tree in its box; up: the root lies at the foot. */
  const draw = (box: HTMLElement, trail: Call[], up: boolean): void => {
    const top = trail[trail.length - 1]!,
      cells: [HTMLElement, number][] = [],
      ink = change();
    let rows = 1;
    const put = (c: Call, depth: number, left: number, width: number): void => {
      if (depth > deepest || width < thinnest) return;
      rows = Math.max(rows, depth + 1);
      const mark =
        c.before === undefined || c.before === c.after
          ? ""
          : (c.after ?? 0) > c.before
            ? "▲ "
            : "▼ "; // not by colour alone
      const cell = h(
        "button",
        {
          type: "button",
          role: "treeitem",
          class: kind(c),
          title: [name(c), figure(c), frame(c)?.source].filter(Boolean).join("\n"),
          style:
            `left:${(left * 100).toFixed(3)}%;` +
            `width:${(width * 100).toFixed(3)}%${inkOf(c, ink)}`,
        },
        ...(width > 0.03 ? [mark + name(c), where(c), text(c)] : []),
      );
      cell.addEventListener("focus", () => {
        tell(c);
        if (c.frame >= 0) told.picked?.(c.frame);
      });
      cell.addEventListener("pointerenter", () => tell(c));
      cell.addEventListener("click", () => {
        if (c.folded) unfold(c, native);
        else if (c === top && trail.length > 1) trail.pop();
        else if (c !== top) trail.push(c);
        draw(box, trail, up);
        box.querySelector("button")?.focus({ preventScroll: true });
      });
      cells.push([cell, depth]);
      const sum = Math.max(
        c.value,
        c.children.reduce((n, d) => n + d.value, 0),
      );
      let at = left;
      for (const d of c.children) {
        const part = (d.value / sum) * width;
        put(d, depth + 1, at, part);
        at += part;
      }
    };
    put(top, 0, 0, 1);
    box.style.height = `${rows * tall}px`;
    for (const [cell, depth] of cells)
      cell.style.top = `${(up ? rows - 1 - depth : depth) * tall}px`;
    box.replaceChildren(...cells.map(([cell]) => cell));
    steps(box, cells, up, () => {
      if (trail.length > 1) {
        trail.pop();
        draw(box, trail, up);
        box.querySelector("button")?.focus({ preventScroll: true });
        return true;
      }
      return false;
    });
    tell(top);
  };
  const share = () => {
    hits.hidden = !wanted;
    if (!wanted) return;
    if (says) {
      hits.textContent = says;
      return;
    }
    const found = matched(graph.root, (c) => c.frame >= 0 && is(c));
    hits.textContent =
      found > 0
        ? `Calls that match have ${graph.figure(found)}, ` +
          `${percent((found / graph.root.value) * 1000)} of this graph.`
        : "No call matches here.";
  };
  let again = (): void => undefined;
  const redraw = () => {
    const folded = (c: Call) => (how.native ? c : fold(c, native)),
      sorted = ordered(graph.root, how.order);
    if (how.view !== "sandwich") {
      table.element.remove();
      above.remove();
    } else {
      if (above.parentElement !== below.parentElement) below.before(table.element, above);
      table.show(graph, how.of, wanted);
    } // moving it again would lose its place
    const trees: [HTMLElement, Call[], boolean][] = [];
    if (how.view === "sandwich") {
      const { callers, callees } = sandwich(
        graph.root,
        (f) => calledBy(graph.frames[f]!) === how.of,
      );
      if (callers.frame < 0)
        said.textContent = how.of
          ? "This function has nothing here. Choose another."
          : "Choose a function to see its callers above it and its callees below.";
      trees.push([below, [folded(callees)], false], [above, [folded(callers)], true]);
    } else
      trees.push([
        below,
        [
          folded(
            how.view === "inverted"
              ? inverted(sorted, how.native ? undefined : (c) => native(c) && !hit(c))
              : sorted,
          ),
        ],
        how.view === "flame",
      ]);
    again = () => {
      for (const t of trees)
        if (t[1][0]!.value > 0) draw(...t);
        else t[0].replaceChildren();
    };
    below.setAttribute("aria-label", graph.title);
    again();
    if (graph.root.value <= 0) said.textContent = "Nothing is here.";
    share();
    const folds = trees.some(([, [t]]) => t && hasFolds(t));
    hint.textContent = [
      graph.rest,
      "Click a call to look closer, click it again or press Escape to step back.",
      folds && "Runs of C++ are folded: click one to unfold it.",
      how.view === "inverted" && !how.native && "The innermost calls of C++ are left out.",
    ]
      .filter(Boolean)
      .join(" ");
  };
  whileShown(below, "hightide:theme", () => {
    if (graph.root.before !== undefined) again();
  });
  return {
    element: h(
      "div",
      { class: "flame" },
      below,
      h("div", { class: "tools" }, said, about, through),
      hits,
      hint,
    ),
    show: (g, to) => {
      [graph, how, given] = [g, to, true];
      redraw();
    },
    search: (to, said = "") => {
      if (to || wanted) {
        [wanted, says] = [to, said];
        if (given) redraw();
      }
    },
  };
}

const exactly = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const boxOf = (label: string) => h("div", { class: "icicle", role: "tree", "aria-label": label });

const hasFolds = (c: Call): boolean => !!c.folded || c.children.some(hasFolds);

/** The arrow keys go to callers, callees and neighbours; Escape steps back. */
function steps(
  box: HTMLElement,
  cells: [HTMLElement, number][],
  up: boolean,
  back: () => boolean,
): void {
  box.onkeydown = (e) => {
    const at = cells.findIndex(([c]) => c === document.activeElement),
      depth = cells[at]?.[1];
    if (e.key === "Escape") {
      if (back()) {
        e.preventDefault();
        e.stopPropagation();
      }
      return;
    }
    if (depth === undefined) return;
    const deeper = e.key === (up ? "ArrowUp" : "ArrowDown"),
      outer = e.key === (up ? "ArrowDown" : "ArrowUp");
    const to = deeper
      ? cells[at + 1]?.[1] === depth + 1
        ? at + 1
        : -1
      : outer
        ? cells.findLastIndex(([, d], i) => i < at && d === depth - 1)
        : e.key === "ArrowRight"
          ? cells.findIndex(([, d], i) => i > at && d === depth)
          : e.key === "ArrowLeft"
            ? cells.findLastIndex(([, d], i) => i < at && d === depth)
            : -2;
    if (to === -2) return;
    e.preventDefault();
    e.stopPropagation();
    if (to >= 0) cells[to]![0].focus();
  };
}

/**
 * Colours of a difference: more is orange, less is green, and the deeper the larger the share;
 * faded steps back.
 */
function change(): (before: number, after: number, faded: boolean) => string {
  const colour = theme(),
    [more, less, panel] = [colour("curve-1"), colour("curve-2"), colour("panel")],
    grey = mix(colour("muted"), panel, 0.75);
  return (before, after, faded) => {
    const share = Math.min(1, Math.abs(after - before) / Math.max(before, after, 1));
    return mix(
      share < 0.005 ? grey : mix(grey, after > before ? more : less, 0.25 + 0.75 * share),
      panel,
      faded ? 0.85 : 0.35,
    );
  };
}

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
