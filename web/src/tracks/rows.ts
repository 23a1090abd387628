// One row of the page for a track: in the gutter what it is and its values, beside it the picture.

import type { Mark } from "../api";
import { bytes, count } from "../lib/format";
import { theme } from "../draw/theme";
import { valueAt } from "../lib/columns";
import { called } from "../lib/phases";
import { h, svg } from "../views/dom";
import type { Span } from "./look";
import { ownerName, type Track } from "./model";
import {
  clean,
  extent,
  lastBefore,
  paintCurves,
  paintEventLines,
  paintEvents,
  paintPhase,
  paintPhases,
  scaleOf,
  valueText,
  type Line,
} from "./paint";
import { highestIn } from "./readings";
import type { Source } from "./source";

export interface Row {
  element: HTMLElement;
  track: Track;
  plot: HTMLElement;
  shown: boolean; // in view, or near it
  outgrown(): boolean; // it was low, and its track is 0 no more
  // phase is the one that is selected, or none
  draw(seen: Span, width: number, fitted: boolean, phase: string): void;
  values(time: number | null, seen: Span): void;
  events(): { x: number; mark: Mark }[]; // where they were drawn
  drawn(): boolean;
  free(): void; // gives the picture's memory back
}

const leastHeight = 64,
  curveHeight = 17,
  headHeight = 26,
  phasesHeight = 44,
  eventsHeight = 30,
  stillHeight = 28;
const summaryHeight = 30;

/** A limit that a track's curves must stay below. */
function limitsOf(t: Track, { host }: Source): { title: string; value: number }[] {
  if (t.unit !== "bytes" || t.rate) return [];
  if (t.family === "host")
    return [
      ["limit of the control group", host.memory_limit_bytes] as const,
      ["memory of the host", host.memory_bytes] as const,
    ].flatMap(([title, value]) => (value ? [{ title, value }] : []));
  if (t.family === "allocator" || t.family === "device") {
    const sizes = new Map(
      (host.gpus ?? []).flatMap((g) => (g.memory_bytes ? [[g.memory_bytes, g.name] as const] : [])),
    );
    return [...sizes].map(([value, name]) => ({ title: `memory of ${name}`, value }));
  }
  return [];
}

/**
 * Nothing is to be drawn of a track that stayed 0: it is behind a line with others, and its row is
 * low.
 */
export const isStill = (t: Track) =>
  t.kind === "curves" && t.curves.every((c) => c.readings.shown.y.every((v) => v === 0));

/** The newest reading of a track is not 0. */
export const moves = (t: Track) => t.curves.some((c) => (c.readings.shown.y.at(-1) ?? 0) !== 0);

/** A row; a summary is the picture of a folded group, without a gutter of its own. */
export function row(
  source: Source,
  track: Track,
  {
    summary,
    named,
    pin,
  }: { summary?: boolean; named: boolean; pin?: { on: boolean; toggle(): void } },
): Row {
  const canvas = h("canvas", { "aria-hidden": "true" }),
    plot = h(
      "div",
      { class: "plot", "data-track": track.key },
      canvas,
      h("i", { class: "range-mark" }),
      h("i", { class: "at" }),
      h("i", { class: "cross" }),
    );
  const cells = track.kind === "curves" ? track.curves.map(() => h("b")) : [h("b"), h("b")],
    owner = ownerName(track, source.processes),
    values = limitsOf(track, source).map((l) => l.value);
  const still = isStill(track);
  const height = summary ? summaryHeight : heightOf(track, still);
  const title = [track.title, named && owner].filter(Boolean).join(", ");
  const element = summary
    ? plot
    : h(
        "div",
        {
          class: `track of-${track.kind}${still ? " still" : ""}`,
          role: "listitem",
          "data-key": track.key,
        },
        gutter(track, named ? owner : "", title, cells, pin && pinButton(title, pin)),
        plot,
      );
  plot.style.height = `${height}px`;
  let placed: { x: number; mark: Mark }[] = [];
  return {
    element,
    track,
    plot,
    shown: false,
    outgrown: () => still && moves(track),
    draw(seen, width, fitted, phase) {
      const box = { width, height },
        ctx = clean(canvas, box);
      canvas.dataset.drawn = "";
      if (track.kind === "events") {
        placed = paintEvents(ctx, source.marks, seen, box);
        return;
      }
      if (track.kind === "phases") {
        const { stays, steps } = phasesOf(source, track);
        paintPhases(ctx, stays, steps, seen, box, phase);
        return;
      }
      if (phase)
        paintPhase(ctx, source.stays.get(track.process || source.lead) ?? [], phase, seen, box);
      const all = linesOf(track),
        reach = extent(all, seen);
      if (reach && !still)
        paintCurves(ctx, track, all, values, seen, scaleOf(reach, fitted && !summary, values), box);
      if (!summary) paintEventLines(ctx, source.marks, seen, box);
    },
    values(time, seen) {
      const texts = textsOf(source, track, time, seen);
      texts.forEach((text, i) => set(cells[i]!, text));
    },
    events: () => placed,
    drawn: () => canvas.width > 0 && canvas.dataset.drawn !== undefined,
    free() {
      if (canvas.width) canvas.width = canvas.height = 0;
    },
  };
}

const heightOf = (track: Track, still: boolean): number =>
  track.kind === "phases"
    ? phasesHeight
    : track.kind === "events"
      ? eventsHeight
      : still
        ? stillHeight + curveHeight * (track.curves.length - 1)
        : Math.max(leastHeight, headHeight + curveHeight * track.curves.length);

function pinButton(title: string, pin: { on: boolean; toggle(): void }): HTMLElement {
  const button = h(
    "button",
    {
      type: "button",
      class: "pin",
      "aria-pressed": String(pin.on),
      "aria-label": `Pin ${title}`,
      title: pin.on ? "Put back into its group" : "Pin to the top",
    },
    svg("", 16, 16, ["", "M5 2h6l-1 5 3 3H3l3-3zM8 10v5"]),
  );
  button.addEventListener("click", () => pin.toggle());
  return button;
}

/** What stands to the left of a track: its title, and the figures in their cells. */
function gutter(
  track: Track,
  owner: string,
  title: string,
  cells: HTMLElement[],
  pin: HTMLElement | undefined,
): HTMLElement {
  const label = (c: Track["curves"][number]) =>
    [c.label === "measured" ? "" : c.label, c.error ? `± ${bytes(c.error)}` : ""]
      .filter(Boolean)
      .join(", ");
  const curve = (c: Track["curves"][number], cell: HTMLElement) =>
    h(
      "div",
      { title: label(c) || "measured" },
      h(
        "dt",
        {},
        h("i", { class: "swatch", style: `background:var(--${c.colour})` }),
        c.short,
        label(c) && h("small", {}, c.label),
      ),
      h("dd", {}, cell),
    );
  return h(
    "div",
    { class: "gutter" },
    h(
      "div",
      { class: "track-head" },
      h("span", { class: "track-title", title }, track.title, owner ? h("small", {}, owner) : null),
      pin,
    ),
    track.kind === "curves"
      ? h("dl", {}, ...track.curves.map((c, i) => curve(c, cells[i]!)))
      : h("p", { class: "now" }, ...cells),
  );
}

function linesOf(track: Track): Line[] {
  const colour = theme();
  return track.curves
    .filter((c) => c.readings.shown.x.length > 0)
    .map((c, i) => ({
      columns: c.readings.shown,
      ink: colour(c.colour),
      dash: c.name.endsWith(".limit") || c.name === "system.total",
      fill: i === 0 && !c.name.endsWith(".limit"),
    }));
}

const phasesOf = (source: Source, track: Track) => ({
  stays: source.stays.get(track.process) ?? [],
  steps: source.steps.get(track.process) ?? [],
});

/** What the cells of a track say of a moment, or of the stretch that is seen. */
function textsOf(source: Source, track: Track, time: number | null, seen: Span): string[] {
  if (track.kind === "curves")
    return track.curves.map(({ readings: { shown } }) => {
      const v =
        time === null
          ? highestIn(shown, seen)
          : within(shown.x, time)
            ? valueAt(shown, time)
            : null;
      return v === null ? "–" : valueText(track, v);
    });
  if (track.kind !== "phases")
    return [`${source.marks.length} event${source.marks.length === 1 ? "" : "s"}`];
  if (time === null) return [stepsText(source, track.process), ""];
  const { stays, steps } = phasesOf(source, track),
    stay = stays[lastBefore(stays, time)],
    next = steps.find((s) => s.time_ns >= time);
  return [stay && stay.to >= time ? called(stay) : "–", next ? `step ${count(next.step + 1)}` : ""];
}

/** How many steps there are, and of how many the phases were recorded. */
function stepsText(source: Source, process: number): string {
  const last = source.steps.get(process)?.at(-1),
    [recorded, all] = source.observed.get(process) ?? [0, 0];
  return recorded > 0 && recorded < all
    ? `phases of ${count(recorded)} of ${count(all)} steps`
    : last
      ? `${count(last.step + 1)} steps`
      : "";
}

/** A value stands as long as its curve does: after the last reading there is none. */
const within = (x: number[], time: number) =>
  x.length > 0 && time <= x.at(-1)! + Math.max(1e9, x.length > 1 ? 2 * (x.at(-1)! - x.at(-2)!) : 0);

const set = (cell: HTMLElement, text: string) => {
  if (cell.textContent !== text) cell.textContent = text;
};
