// What blocks are told apart by: the colours that the reader chooses, the same in every panel, and
// the legend, which filters.

import type { Labels } from "../../../api";
import { faint, theme } from "../../../draw/theme";
import { inkOf } from "../../../lib/categories";
import { byteTick, bytes, count, percent } from "../../../lib/format";
import { h } from "../../../views/dom";
import type { Shape } from "./tile";

/** What the legend and the chooser say; the server knows the same names. */
export const bys = {
  site: "line that allocates",
  category: "category",
  module: "module",
  size: "size",
  age: "age",
  stream: "stream and pool",
} as const;
export type By = keyof typeof bys;

const limits = {
  size: [0, 4096, 65536, 2 ** 20, 10 * 2 ** 20, 100 * 2 ** 20, 2 ** 30],
  age: [0, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
};
const hues = 7; // of --block-0 …, which the colour-blind can tell apart; then paler
const stepped = (by: By): by is "size" | "age" => by === "size" || by === "age";

/**
 * The value of a block by what blocks are told apart by: the number of a label, bytes, or for how
 * many events it was allocated.
 */
export function valueOf(by: By, s: Shape, points: number): number {
  return by === "size" ? s.bytes : by === "age" ? (s.end < 0 ? points : s.end) - s.begin : s[by];
}

/** Values that share a colour: those of a label, or of a step of sizes or ages. */
export function classOf(by: By, value: number): number {
  return stepped(by) ? limits[by].findLastIndex((least) => value >= least) : value;
}

/** What a class is called. */
function nameOf(by: By, of: number, labels: Labels): string {
  if (!stepped(by))
    return (
      {
        site: labels.sites[of]?.name,
        category: labels.categories[of],
        module: labels.modules[of],
        stream: labels.streams[of],
      }[by] ?? ""
    );
  const [low, high] = [limits[by][of]!, limits[by][of + 1]],
    text = by === "size" ? byteTick : count,
    unit = by === "age" ? " events" : "";
  return high === undefined
    ? `${text(low)}${unit} or more`
    : low === 0
      ? `below ${text(high)}${unit}`
      : `${text(low)} to ${text(high)}${unit}`;
}

/** A class as the server and the address know it. */
const onlyOf = (by: By, of: number, labels: Labels): string =>
  stepped(by) ? `${limits[by][of]}-${limits[by][of + 1] ?? ""}` : nameOf(by, of, labels);

export interface Inks {
  by(): By;
  /**
   * The colour of a value as valueOf gives it; −1: it stands for several blocks, −2: a filter
   * leaves it out.
   */
  ink(value: number): string;
  of(shape: Shape): string;
  name(value: number): string;
  /**
   * Tells of the classes in view, by their bytes: those with most get the colours that differ most.
   * What the stack shows comes first.
   */
  see(sums: Map<number, number>, stack: boolean): void;
  /** Calls when what was seen before gets its colours. */
  changed(then: () => void): void;
}

export function inks(
  by: () => By,
  labels: Labels,
  points: () => number,
  closed: AbortSignal,
): Inks {
  const places = new Map<By, Map<number, number>>(),
    waiting = new Map<By, Map<number, number>>(),
    made = new Map<number, string>();
  const follow: (() => void)[] = [];
  let of: By | "" = "";
  addEventListener(
    "hightide:theme",
    () => {
      of = "";
    },
    { signal: closed },
  );
  const paint = (colour: (name: string) => string, now: By, c: number): string => {
    if (stepped(now)) return colour(`step-${c}`);
    if (now === "category") return colour(inkOf(labels.categories[c] ?? ""));
    const place = places.get(now)?.get(c);
    return place === undefined || place >= 3 * hues
      ? colour("curve-7")
      : faint(colour(`block-${place % hues}`), [1, 0.66, 0.4][Math.floor(place / hues)]!);
  };
  const ink = (value: number): string => {
    const now = by();
    if (of !== now) {
      of = now;
      made.clear();
    }
    const c = value < 0 ? value : classOf(now, value);
    let known = made.get(c);
    if (known === undefined)
      made.set(
        c,
        (known = c < 0 ? faint(theme()("muted"), c === -1 ? 1 : 0.3) : paint(theme(), now, c)),
      );
    return known;
  };
  return {
    by,
    ink,
    of: (s) => ink(valueOf(by(), s, points())),
    name: (value) => nameOf(by(), classOf(by(), value), labels),
    see(sums, stack) {
      const now = by(),
        known = places.get(now) ?? new Map<number, number>();
      if (!stack && !known.size) return void waiting.set(now, sums);
      places.set(now, known);
      for (const some of [sums, waiting.get(now) ?? []])
        for (const [c] of [...some].sort((a, b) => b[1] - a[1]))
          if (!known.has(c)) known.set(c, known.size);
      of = "";
      if (waiting.delete(now)) for (const then of follow) then();
    },
    changed: (then) => {
      follow.push(then);
    },
  };
}

/** Sums of bytes by class, of blocks that are drawn. */
export function sumsOf(by: By, all: Shape[], points: number): Map<number, number> {
  const sums = new Map<number, number>();
  for (const s of all) {
    const c = classOf(by, valueOf(by, s, points));
    sums.set(c, (sums.get(c) ?? 0) + s.bytes);
  }
  return sums;
}

const mostNamed = 10;

/**
 * The classes with most bytes among what is drawn. A click shows one alone, a second one all again.
 */
export function legend(
  colours: Inks,
  sums: Map<number, number>,
  labels: Labels,
  only: string,
  choose: (only: string) => void,
): HTMLElement[] {
  const by = colours.by(),
    whole = [...sums.values()].reduce((a, b) => a + b, 0);
  const entries = [...sums].sort((a, b) => (stepped(by) ? a[0] - b[0] : b[1] - a[1])),
    shown = entries.slice(0, mostNamed);
  const chosen = entries.find(([c]) => onlyOf(by, c, labels) === only);
  if (chosen && !shown.includes(chosen)) shown.push(chosen);
  return shown.map(([c, sum]) => {
    const text = onlyOf(by, c, labels),
      value = stepped(by) ? limits[by][c]! : c;
    const entry = h(
      "button",
      {
        type: "button",
        "aria-pressed": String(only === text),
        title:
          `${nameOf(by, c, labels)}: ${bytes(sum)} of the blocks drawn, ` +
          `${percent((sum / whole) * 1000)}. Click to see it alone.`,
      },
      h("i", { style: `background:${colours.ink(value)}` }),
      nameOf(by, c, labels),
    );
    entry.addEventListener("click", () => choose(only === text ? "" : text));
    return entry;
  });
}
