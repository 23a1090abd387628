// The figures of a chosen stretch: what each curve did in it, and which phases, steps and events
// lie in it.

import { count, duration } from "../lib/format";
import { phaseNames } from "../lib/phases";
import { h } from "../views/dom";
import type { Span } from "./look";
import { ownerName, type Track } from "./model";
import { lastBefore, valueText } from "./paint";
import { figures } from "./readings";
import { phasesKnown, type Source } from "./source";

/**
 * The rows of a table: whose, what, lowest, mean, highest, and what changed from beginning to end.
 * A mean of a selection of readings is an estimate.
 */
function rows(source: Source, tracks: Track[], range: Span): HTMLElement[] {
  return tracks.flatMap((t) =>
    t.curves.flatMap((c) => {
      const f = figures(c.readings.shown, range);
      if (!f) return [];
      const owner = ownerName(t, source.processes),
        estimated = c.readings.wants(range),
        change = (f.end ?? 0) - (f.begin ?? 0),
        text = (v: number) => valueText(t, v);
      const cell = (value: string, title = "") =>
        h("td", { class: "number", ...(title ? { title } : {}) }, value);
      return [
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            h("i", { class: "swatch", style: `background:var(--${c.colour})` }),
            `${t.title}: ${c.short}`,
            owner && h("small", {}, owner),
          ),
          cell(text(f.low)),
          cell(
            `${estimated ? "≈ " : ""}${text(f.mean)}`,
            estimated ? "estimated from a selection of the readings" : "over time",
          ),
          cell(text(f.high)),
          cell(`${change > 0 ? "+" : change < 0 ? "−" : "±"}${text(Math.abs(change))}`),
        ),
      ];
    }),
  );
}

const mostProcesses = 8;

/** Which share of the stretch each phase took, of each process; and how many steps ended in it. */
export function phasesWithin(
  source: Source,
  [from, to]: Span,
): { process: number; shares: [phase: string, share: number][]; steps: number }[] {
  return [...source.stays]
    .map(([process, stays]) => {
      const time = new Map<string, number>();
      for (
        let i = Math.max(0, lastBefore(stays, from));
        i < stays.length && stays[i]!.from < to;
        i++
      ) {
        const s = stays[i]!,
          inside = Math.min(s.to, to) - Math.max(s.from, from);
        if (inside > 0) time.set(s.phase, (time.get(s.phase) ?? 0) + inside);
      }
      const known = [...time.values()].reduce((a, b) => a + b, 0);
      return {
        process,
        shares: phaseNames.flatMap((n): [string, number][] =>
          time.has(n) ? [[n, time.get(n)! / known]] : [],
        ),
        steps: (source.steps.get(process) ?? []).filter((s) => s.time_ns >= from && s.time_ns <= to)
          .length,
      };
    })
    .filter((p) => p.shares.length > 0);
}

/** The panel of a chosen stretch. */
export function rangePanel(
  source: Source,
  tracks: Track[],
  range: Span,
  phase: string,
  actions: { zoom(): void; clear(): void; phase(name: string): void },
): HTMLElement {
  const button = (text: string, key: string, then: () => void) => {
    const b = h("button", { type: "button", class: "plain", title: `Key ${key}` }, text);
    b.addEventListener("click", then);
    return b;
  };
  const within = phasesWithin(source, range),
    events = source.marks.filter((m) => m.time_ns >= range[0] && m.time_ns <= range[1]);
  const said = within.slice(0, mostProcesses).map((p) =>
    h(
      "p",
      { class: "within" },
      within.length > 1 &&
        h("b", {}, `${ownerName({ process: p.process, device: "" } as Track, source.processes)}: `),
      ...p.shares.map(([name, share]) => {
        const b = h(
          "button",
          {
            type: "button",
            "aria-pressed": String(name === phase),
            title: "Select this phase in every panel",
          },
          h("i", { style: `background:var(--phase-${name})` }),
          `${name} ${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`,
        );
        b.addEventListener("click", () => actions.phase(name));
        return b;
      }),
      p.steps > 0 && h("span", {}, `${count(p.steps)} step${p.steps === 1 ? "" : "s"} ended`),
      !phasesKnown(source, range) && h("span", {}, "of the steps that are kept, an even selection"),
    ),
  );
  return h(
    "div",
    { class: "range", role: "region", "aria-label": "The chosen stretch" },
    h(
      "div",
      { class: "range-head" },
      h("h3", {}, `${duration(range[1] - range[0])} from ${duration(range[0])}`),
      button("Zoom to it", "Enter", actions.zoom),
      button("Close", "Escape", actions.clear),
    ),
    ...said,
    within.length > mostProcesses &&
      h("p", { class: "hint" }, `and ${within.length - mostProcesses} processes more`),
    events.length > 0 &&
      h(
        "p",
        { class: "within" },
        `${events.length} event${events.length === 1 ? "" : "s"}: ${events
          .slice(0, 5)
          .map((m) => m.text || m.kind)
          .join("; ")}${events.length > 5 ? " …" : ""}`,
      ),
    figureTable(rows(source, tracks, range)),
  );
}

const figureTable = (rows: HTMLElement[]): HTMLElement =>
  h(
    "div",
    {
      class: "scroll",
      tabindex: "0",
      role: "region",
      "aria-label": "Figures of the chosen stretch",
    },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Curve"),
          ...["Lowest", "Mean", "Highest", "Change"].map((t) =>
            h("th", { scope: "col", class: "number" }, t),
          ),
        ),
      ),
      h("tbody", {}, ...rows),
    ),
  );
