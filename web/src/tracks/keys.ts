// What keys do on the timelines.

import { elsewhere } from "../draw/paint";
import type { Stay } from "../lib/phases";
import { toggle } from "../state/selection";
import type { Page } from "../state/page";
import type { Store } from "../state/store";
import type { Layout } from "./layout";
import { following, panned, shownAs, zoomed, type Look, type Span } from "./look";
import type { Source } from "./source";

export interface Key {
  keys: string[];
  does: string;
  run?: (event: KeyboardEvent) => void;
}

/** What keys act on. */
export interface Moved {
  source: Source;
  page: Store<Page>;
  layout: Store<Layout>;
  look(): Look;
  seen(): Span;
  time(): number | null;
  move(to: Look): void;
  goTo(time: number): void;
  showRange(): void;
  find(): void;
}

const panShare = 0.2,
  zoomStep = 0.7;

const middle = (on: Moved) => on.time() ?? (on.seen()[0] + on.seen()[1]) / 2;

function zoomBy(on: Moved, factor: number): void {
  const [from, to] = on.seen();
  on.move(zoomed(on.look(), on.source.end, Math.min(Math.max(middle(on), from), to), factor));
}

/** Moves the chosen moment to the next of some times, or to the one before. */
function jump(on: Moved, times: number[], forward: boolean): void {
  const [from, until] = on.seen(),
    at = on.page.get().at ?? (forward ? from : until),
    to = forward ? times.find((t) => t > at) : times.findLast((t) => t < at);
  if (to !== undefined) on.goTo(to);
}

/** Selects the phase of the moment, or the one nearest to it. */
function selectPhase(on: Moved): void {
  const at = middle(on),
    away = (s: Stay) => Math.max(s.from - at, at - s.to, 0),
    stays = on.source.stays.get(on.source.lead) ?? [];
  if (stays.length)
    toggle(on.page, { phase: stays.reduce((a, b) => (away(b) < away(a) ? b : a)).phase });
}

export function keysOf(on: Moved): Key[] {
  const { source, layout } = on,
    steps = () => (source.steps.get(source.lead) ?? []).map((s) => s.time_ns),
    events = () => source.marks.map((m) => m.time_ns).sort((a, b) => a - b),
    pan = (share: number) => on.move(panned(on.look(), source.end, share));
  return [
    { keys: ["w"], does: "zoom in, at the pointer", run: () => zoomBy(on, zoomStep) },
    { keys: ["s"], does: "zoom out", run: () => zoomBy(on, 1 / zoomStep) },
    { keys: ["a"], does: "pan back", run: () => pan(-panShare) },
    { keys: ["d"], does: "pan on", run: () => pan(panShare) },
    { keys: ["f", "0"], does: "show the whole run", run: () => on.move({ window: null, last: 0 }) },
    { keys: ["e"], does: "follow the end", run: () => on.move(following(on.look(), source.end)) },
    { keys: [","], does: "to the end of the step before", run: () => jump(on, steps(), false) },
    { keys: ["."], does: "to the end of the next step", run: () => jump(on, steps(), true) },
    {
      keys: ["l"],
      does: "select the phase of the moment, or the one nearest to it, in every panel; again, none",
      run: () => selectPhase(on),
    },
    { keys: ["["], does: "to the event before", run: () => jump(on, events(), false) },
    { keys: ["]"], does: "to the next event", run: () => jump(on, events(), true) },
    {
      keys: ["y"],
      does: "vertical axes from zero, or fitted to what is in view",
      run: () => layout.set({ fit: !layout.get().fit }),
    },
    { keys: ["/"], does: "find a track", run: on.find },
    {
      keys: ["ArrowLeft", "ArrowRight"],
      does:
        "with the tracks focused: move the line through all tracks; with shift, " +
        "choose a stretch",
    },
  ];
}

/** Moves the line by a part of what is in view; with shift, the nearer end of the stretch too. */
function step(on: Moved, by: number, stretches: boolean): void {
  const { range, at: chosen } = on.page.get(),
    [from, to] = on.seen(),
    begun = chosen ?? (from + to) / 2,
    wanted = begun + (by * (to - from)) / (stretches ? 20 : 100),
    at = Math.min(Math.max(wanted, 0), on.source.end);
  if (stretches) {
    const [a, b] = range && chosen !== null ? range : [begun, begun],
      other = Math.abs(a - begun) < Math.abs(b - begun) ? b : a;
    on.page.set({ range: other < at ? [other, at] : [at, other + 1] });
  }
  on.goTo(Math.round(at));
  on.showRange();
}

/** Keys of the box with the focus, which the sheet of keys does not dispatch. */
export function pressed(on: Moved, box: HTMLElement, e: KeyboardEvent): void {
  if (elsewhere(e) || (e.target as Element).closest("[role=slider]")) return;
  const { range, at } = on.page.get(),
    by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (by !== undefined) step(on, by, e.shiftKey);
  else if (e.key === "Enter" && range && e.target === box) on.move(shownAs(range, on.source.end));
  else if (e.key === "Escape" && (range || at !== null))
    on.page.set(range ? { range: null } : { at: null });
  else if (e.key === "+" || e.key === "=") zoomBy(on, zoomStep);
  else if (e.key === "-") zoomBy(on, 1 / zoomStep);
  else return;
  e.preventDefault();
  e.stopPropagation();
}
