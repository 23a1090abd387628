// The segments as recorded and as replayed, on one scale: row over row of the same stretch of
// memory, or one map after the other. Blocks have the colours of what they are for; a click on one
// in the legend shows it alone.

import type { Side, WhatIf } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { inkOf } from "../../../lib/categories";
import { faint, theme } from "../../../draw/theme";
import { h } from "../../../views/dom";
import type { App } from "../../state";
import { tape, type Tape } from "../../panels/tape";

const rows = 12,
  leftOut = -2; // the category of a block that is not what is selected

export interface Maps {
  element: HTMLElement;
  show(t: WhatIf): void;
  choose(n: number | null): void;
  category(name: string): void;
  apart(is: boolean): void;
}

export function maps(app: App, apart: boolean, turned: (apart: boolean) => void): Maps {
  const tip = h("p", { class: "reading", role: "status" }),
    legend = h("p", { class: "phases sites" }),
    says = h("p", { class: "hint" }),
    places = h("div", { class: "tapes" });
  const pick = (n: number) => app.set({ block: n >= 0 ? n : null }),
    tell = (text: string) => {
      tip.textContent = text;
    };
  let t: WhatIf | null = null,
    alone = app.get().category;
  const paint = {
    ink: (value: number) => inkOfBlock(t?.categories, value, alone),
    over: () => undefined,
  };
  const named = (n: number) =>
    n >= 0 ? `, block ${count(n)}` : n < -1 ? ", with small neighbours" : ", from before the trace";
  const both = tape(["as recorded", "as replayed"], pick, tell, named, paint),
    each = [
      tape(["as recorded"], pick, tell, named, paint),
      tape(["as replayed"], pick, tell, named, paint),
    ] as const;
  const all: Tape[] = [both, ...each];
  const draw = () => {
    places.replaceChildren(...(apart ? each.map((e) => e.element) : [both.element]));
    says.textContent = apart
      ? "By address, both on one scale. A click on a block chooses it in every panel."
      : "By address: in each row the record above and the replay below it, on one scale. " +
        "A click on a block chooses it in every panel.";
    for (const b of choice.querySelectorAll("button"))
      b.setAttribute("aria-pressed", String((b.value === "apart") === apart));
    if (!t) return;
    drawTapes(t, apart, both, each);
    legend.replaceChildren(...entries(app, t, alone));
  };
  const turn = (text: string, to: boolean) => {
    const b = h("button", { type: "button", value: to ? "apart" : "together" }, text);
    b.addEventListener("click", () => {
      apart = to;
      draw();
      turned(to);
    });
    return b;
  };
  const choice = h(
    "div",
    { class: "switch", role: "group", "aria-label": "Segment maps" },
    turn("One over the other", false),
    turn("Apart", true),
  );
  draw();
  return {
    element: h(
      "div",
      { class: "whatif-maps" },
      h("div", { class: "tools" }, h("h3", {}, "Segments"), choice),
      places,
      tip,
      legend,
      says,
    ),
    show: (tried) => {
      t = tried;
      draw();
    },
    choose: (n) => {
      for (const one of all) one.choose(n);
    },
    category: (name) => {
      alone = name;
      draw();
    },
    apart: (is) => {
      if (is !== apart) {
        apart = is;
        draw();
      }
    },
  };
}

/** The colour of a block by its category; alone: the one that is selected. */
function inkOfBlock(categories: string[] | undefined, value: number, alone: string): string {
  const colour = theme();
  if (value === leftOut) return faint(colour("muted"), 0.25);
  const name = categories?.[value],
    ink = colour(name === undefined ? "muted" : inkOf(name));
  return alone && name !== alone ? faint(ink, 0.22) : ink;
}

const of = (s: Side): string =>
  `${bytes(s.moment.reserved_bytes)} reserved, ${bytes(s.moment.active_bytes)} in use, ` +
  `${count(s.moment.segments.length)} segments, after event ` +
  `${count(Math.max(0, s.moment.event))}`;

/** The bytes in use by category on both sides, and whether some wait for another stream. */
function sumsOf(t: WhatIf): { sums: Map<number, number>; waits: boolean } {
  const sums = new Map<number, number>();
  let waits = false;
  for (const side of [t.recorded, t.replayed])
    for (const s of side.moment.segments)
      for (const [size, state, , value] of s.blocks) {
        if (state === 1 && value !== undefined) sums.set(value, (sums.get(value) ?? 0) + size);
        waits ||= state === 2;
      }
  return { sums, waits };
}

const swatch = (style: string, text: string): HTMLElement =>
  h("span", {}, h("i", style ? { style } : { class: "free" }), text);

/** The legend: a click on a category shows it alone. */
function entries(app: App, t: WhatIf, alone: string): HTMLElement[] {
  const { sums, waits } = sumsOf(t);
  const categories = [...sums]
    .sort((a, b) => b[1] - a[1])
    .map(([value, sum]) => {
      const name = t.categories[value];
      if (value === leftOut)
        return swatch(`background:${faint(theme()("muted"), 0.25)}`, "not what is selected");
      if (name === undefined) return swatch("background:var(--muted)", "several small blocks");
      const entry = h(
        "button",
        {
          type: "button",
          "aria-pressed": String(alone === name),
          title: `${bytes(sum)} on both sides together. Click to see it alone.`,
        },
        h("i", { style: `background:var(--${inkOf(name)})` }),
        name,
      );
      entry.addEventListener("click", () => app.set({ category: alone === name ? "" : name }));
      return entry;
    });
  return [
    ...categories,
    ...(waits ? [swatch("background:var(--warning)", "freed, another stream still uses it")] : []),
    swatch("", "cached"),
  ];
}

/** Draws both sides on one scale. */
function drawTapes(
  { recorded: a, replayed: b }: WhatIf,
  apart: boolean,
  both: Tape,
  [left, right]: readonly [Tape, Tape],
): void {
  const per = Math.max(a.moment.reserved_bytes, b.moment.reserved_bytes, 1) / rows;
  if (!apart)
    both.show(
      [a.moment.segments, b.moment.segments],
      per,
      "As recorded, above, and as replayed, below",
      `${of(a)}; ${b.oom === null ? "" : "where memory runs out: "}${of(b)}`,
    );
  else {
    left.show([a.moment.segments], per, "As recorded", of(a));
    right.show(
      [b.moment.segments],
      per,
      b.oom === null ? "As replayed" : "As replayed, where memory runs out",
      of(b),
    );
  }
}
