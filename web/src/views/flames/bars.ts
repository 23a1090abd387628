// One tree of a flame graph as bars in a box, which the pointer and the keys walk through.

import { mix, readable } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { unfold, type Call } from "../../lib/icicle";
import { h } from "../dom";
import { besideName, figureOf, frameOf, isHit, isNative, kindOf, nameOf } from "./calls";
import type { Looked } from "./calls";

const deepest = 48,
  thinnest = 0.002,
  named = 0.03, // so wide is a bar with a name
  tall = 25;

/** A tree: its calls from the root to the one that is looked closer at; up: the root is below. */
export interface Tree {
  box: HTMLElement;
  trail: Call[];
  up: boolean;
}

/** What bars tell: a call that is looked at, and one that has the focus. */
export interface Telling {
  look(c: Call): void;
  focus(c: Call): void;
}

interface Bar {
  call: Call;
  depth: number;
  left: number;
  width: number;
}

/** The bars of a call and of what it calls, in shares of the whole width. */
function barsOf(call: Call, depth = 0, left = 0, width = 1): Bar[] {
  if (depth > deepest || width < thinnest) return [];
  const all: Bar[] = [{ call, depth, left, width }],
    called = call.children.reduce((n, d) => n + d.value, 0),
    sum = Math.max(call.value, called);
  let at = left;
  for (const d of call.children) {
    const part = (d.value / sum) * width;
    all.push(...barsOf(d, depth + 1, at, part));
    at += part;
  }
  return all;
}

export function draw(of: Looked, tree: Tree, tells: Telling): void {
  const { box, trail, up } = tree,
    top = trail[trail.length - 1]!,
    bars = barsOf(top),
    rows = 1 + bars.reduce((n, b) => Math.max(n, b.depth), 0),
    ink = inks(of);
  const again = () => {
    draw(of, tree, tells);
    box.querySelector("button")?.focus({ preventScroll: true });
  };
  const cells = bars.map((b): [HTMLElement, number] => {
    const cell = element(of, b, ink(b.call));
    cell.style.top = `${(up ? rows - 1 - b.depth : b.depth) * tall}px`;
    cell.addEventListener("focus", () => tells.focus(b.call));
    cell.addEventListener("pointerenter", () => tells.look(b.call));
    cell.addEventListener("click", () => {
      if (b.call.folded) unfold(b.call, (c) => isNative(of, c));
      else if (b.call === top && trail.length > 1) trail.pop();
      else if (b.call !== top) trail.push(b.call);
      again();
    });
    return [cell, b.depth];
  });
  box.style.height = `${rows * tall}px`;
  box.replaceChildren(...cells.map(([cell]) => cell));
  steps(box, cells, up, () => {
    if (trail.length <= 1) return false;
    trail.pop();
    again();
    return true;
  });
  tells.look(top);
}

function element(of: Looked, { call: c, left, width }: Bar, ink: string): HTMLElement {
  const changed = c.before !== undefined && c.before !== c.after,
    mark = changed ? ((c.after ?? 0) > c.before! ? "▲ " : "▼ ") : ""; // not by colour alone
  return h(
    "button",
    {
      type: "button",
      role: "treeitem",
      class: kindOf(of, c),
      title: [nameOf(of, c), figureOf(of, c), frameOf(of, c)?.source].filter(Boolean).join("\n"),
      style: `left:${(left * 100).toFixed(3)}%;width:${(width * 100).toFixed(3)}%${ink}`,
    },
    ...(width > named ? [mark + nameOf(of, c), ...besideName(of, c)] : []),
  );
}

/** The colours of a difference, as a style; black or white has 4.5 to 1 on any of them. */
function inks(of: Looked): (c: Call) => string {
  const ink = change();
  return (c) => {
    if (c.before === undefined) return "";
    const faded = of.wanted !== null && c.frame >= 0 && !isHit(of, c),
      ground = ink(c.before, c.after ?? 0, faded);
    return `;background:${ground};color:${readable(ground, "#000000", "#ffffff", 0.179)}`;
  };
}

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
