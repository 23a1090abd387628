// Synchronized timelines of one run: every curve, phase, step and event on one axis of time.
//
//	source (what there is) ──▶ model (tracks, groups) ──▶ arrange (rows) ─┐
//	store: window, cursor, at, range ─▶ look ◀── hand, keys               ├─▶ one drawing a frame,
//	                                                                      │   of the rows in view
//	layout: pins, folded groups, finder ──────────────────────────────────┘
//
// A report has it with the curves that it carries, the page of a run with those that grow.

import { paper, whileShown } from "../draw/chart";
import { duration } from "../lib/format";
import { phaseAt } from "../lib/phases";
import { toggle } from "../state/selection";
import type { Page } from "../state/page";
import type { Store } from "../state/store";
import { Arrangement, stillKey } from "./arrange";
import { listEvents, tipOf } from "./events";
import { hand, type Hand } from "./hand";
import { keysOf, pressed, type Key, type Moved } from "./keys";
import type { Layout } from "./layout";
import { following, panned, seen, shownAs, zoomed, type Look, type Span } from "./look";
import { minimap } from "./minimap";
import { ownerName, type Grouping, type Track } from "./model";
import { clean, laneHeight, paintAxis } from "./paint";
import { panelOf } from "./panel";
import { rangePanel } from "./range";
import { isStill, moves, type Row } from "./rows";
import type { Source } from "./source";
import { said, valuesOf, valuesWithoutMoment } from "./words";
import "./tracks.css";

export type { Key } from "./keys";
export interface Made {
  element: HTMLElement;
  keys: { title: string; keys: Key[] }[];
  commands(): { title: string; kind: "action" | "panel"; key?: string; run: () => void }[];
  close(): void;
}

const mostKept = 40; // pictures of rows: of more than these, only those in view are in memory
const restMs = 90,
  axisHeight = 24;
const everything: Look = { window: null, last: 0 };

export const tracks = (source: Source, page: Store<Page>, layout: Store<Layout>): Made =>
  new Timelines(source, page, layout).made();

class Timelines {
  private readonly closing = new AbortController();
  private readonly map = minimap(
    () => Math.max(this.source.end, 1),
    (to) => this.move(shownAs(to, this.source.end)),
  );
  private readonly panel = panelOf(this.map.element, {
    whole: () => this.move(everything),
    follow: () => this.move(following(this.look, this.source.end)),
    fit: () => this.layout.set({ fit: !this.layout.get().fit }),
  });
  private readonly nearness = new IntersectionObserver((entries) => this.came(entries), {
    rootMargin: "240px 0px",
  });
  private readonly sized = new ResizeObserver(() => this.soon());

  private look: Look;
  private kept = new Map<string, Row>();
  private arranged: Arrangement | null = null;
  private width = 0;
  /** Where the pointer is, as a share of what is in view. */
  private pointer: number | null = null;
  private frame = 0;
  private stale = { list: true, picture: true };
  private resting = 0;
  private settling = 0;
  private others = 0;
  private unhurried = () => {};
  private readonly placed: Record<string, string> = {};

  constructor(
    private readonly source: Source,
    private readonly page: Store<Page>,
    private readonly layout: Store<Layout>,
  ) {
    this.look = { window: page.get().window, last: layout.get().last };
    hand(this.panel.element, this.hands(), this.closing.signal);
    this.listen();
    this.followPage();
    this.followLayout();
    source.changed = (list) => this.soon(list ? { list, picture: true } : { picture: true });
    this.sized.observe(this.panel.axisPlot);
    this.print();
  }

  private get rows(): Row[] {
    return this.arranged?.rows ?? [];
  }

  /** What keys act on. */
  private keyed(): Moved {
    return {
      source: this.source,
      page: this.page,
      layout: this.layout,
      look: () => this.look,
      seen: () => this.seen(),
      time: () => this.time(),
      move: (to) => this.move(to),
      goTo: (t) => this.goTo(t),
      showRange: () => this.showRange(),
      find: () => this.find(),
    };
  }

  // What is in view.

  private seen(): Span {
    return seen(this.look, this.source.end);
  }

  /** The moment that values are of: under the pointer, else the chosen one. */
  private time(): number | null {
    const [from, to] = this.seen();
    return this.pointer !== null ? from + this.pointer * (to - from) : this.page.get().at;
  }

  /** Shows another stretch. The address and the server follow when the hand rests. */
  private move(to: Look): void {
    this.look = to;
    this.soon();
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => {
      this.page.set({ window: this.look.window });
      this.layout.set({ last: this.look.last });
      this.refine();
    }, restMs);
  }

  /** Asks for all there is of the stretch in view. */
  private refine(): void {
    const stretch = this.seen(),
      wanted = this.rows
        .filter((r) => r.shown)
        .flatMap((r) => r.track.curves.filter((c) => c.readings.wants(stretch)));
    this.source.refine?.(stretch, wanted);
  }

  /** Chooses a moment and brings it into view. */
  private goTo(t: number): void {
    const [from, to] = this.seen(),
      half = (to - from) / 2;
    this.pointer = null;
    if (t < from || t > to) this.move(shownAs([t - half, t + half], this.source.end));
    this.page.set({ at: t, cursor: null });
  }

  /** Rows came near the view, or went. */
  private came(entries: IntersectionObserverEntry[]): void {
    const rows = this.rows;
    for (const e of entries)
      for (const r of rows)
        if (r.plot === e.target) {
          r.shown = e.isIntersecting;
          if (!r.shown && rows.length > mostKept) r.free();
        }
    this.soon();
    clearTimeout(this.settling);
    this.settling = window.setTimeout(() => this.refine(), restMs);
  }

  // The rows.

  /** The rows anew, of what there is and of how it is arranged. */
  private build(): void {
    const { element, pins, body, none, list } = this.panel;
    const now = new Arrangement(this.source, this.layout.get(), this.kept, {
      repin: (t) => this.repin(t),
      fold: (key, open) => this.fold(key, open),
    });
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    pins.replaceChildren(...now.top.map((r) => r.element));
    body.replaceChildren(...now.parts);
    none.hidden = now.parts.length > 0;
    this.arranged = now;
    this.kept = now.used;
    this.nearness.disconnect();
    for (const r of now.used.values()) this.nearness.observe(r.plot);
    this.strangers();
    if (focus && focus !== document.activeElement && element.contains(focus))
      focus.focus({ preventScroll: true });
    listEvents(list, this.source.marks, (t) => this.goTo(t));
    this.showRange();
  }

  private fold(key: string, on: boolean): void {
    this.layout.set({ open: { ...this.layout.get().open, [key]: on } });
    this.panel.body.querySelector<HTMLElement>(`[data-group="${CSS.escape(key)}"]`)?.focus();
  }

  private repin(t: Track): void {
    const { pins } = this.layout.get(),
      on = pins.includes(t.key);
    this.layout.set({ pins: on ? pins.filter((k) => k !== t.key) : [...pins, t.key] });
    const place = `${on ? ".groups" : ".pins"} [data-key="${CSS.escape(t.key)}"] .pin`;
    this.panel.element.querySelector<HTMLElement>(place)?.focus({ preventScroll: true });
  }

  /** Tracks of other processes than the selected one step back. */
  private strangers(): void {
    const { process } = this.page.get();
    for (const r of this.rows)
      r.element.classList.toggle(
        "stranger",
        process !== 0 && r.track.process !== 0 && r.track.process !== process,
      );
  }

  /** Opens a track's group and scrolls to it. */
  private reveal(t: Track): void {
    const group = this.arranged?.groups.find((g) => g.tracks.some((o) => o.key === t.key));
    if (group) {
      const still = isStill(t) ? { [stillKey(group)]: true } : {};
      this.layout.set({
        open: { ...this.layout.get().open, [group.key]: true, ...still },
        find: "",
      });
    }
    const at = this.panel.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(t.key)}"]`);
    at?.scrollIntoView({ block: "center" });
    at?.querySelector<HTMLElement>(".pin")?.focus({ preventScroll: true });
  }

  // Drawing: at most once a frame, however much has come.

  private soon(what: Partial<Timelines["stale"]> = { picture: true }): void {
    Object.assign(this.stale, what);
    if (!this.frame && !this.closing.signal.aborted)
      this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const { source, look, panel } = this;
    this.frame = 0;
    if (source.live && (this.rows.some((r) => r.outgrown()) || this.arranged?.folded.some(moves)))
      this.stale.list = true;
    if (this.stale.list) this.build();
    const stretch = this.seen();
    if (this.stale.list || this.stale.picture) this.paint(stretch);
    this.stale = { list: false, picture: false };
    const all = look.window === null && look.last === 0;
    panel.whole.hidden = all;
    panel.follow.hidden = !source.live || all || look.last > 0;
    this.lines(stretch);
  }

  private paint(stretch: Span): void {
    const { axis, axisPlot, element } = this.panel,
      width = axisPlot.clientWidth,
      rows = this.rows;
    if (width > 0) {
      this.width = width;
      const size = { width, height: axisHeight };
      paintAxis(clean(axis, size), stretch, size);
      this.map.draw(this.source, stretch);
      for (const r of rows)
        if (r.shown || (!r.drawn() && rows.length <= mostKept))
          r.draw(stretch, width, this.layout.get().fit, this.page.get().phase);
    }
    element.dataset.seen = stretch.map(Math.round).join("-");
    element.dataset.end = String(Math.round(this.source.end));
  }

  /** The lines through all tracks, and the values there. */
  private lines(stretch: Span): void {
    const at = this.time(),
      { at: chosen, range } = this.page.get(),
      share = (t: number) => (t - stretch[0]) / (stretch[1] - stretch[0]),
      within = (t: number) => Math.min(Math.max(share(t), 0), 1).toFixed(5),
      place = (s: number | null) => (s === null || s < 0 || s > 1 ? "-99" : s.toFixed(5));
    this.put("--cross", place(this.pointer));
    this.put("--at", place(chosen === null ? null : share(chosen)));
    this.put("--from", range ? within(range[0]) : "0");
    this.put("--to", range ? within(range[1]) : "0");
    if (this.pointer !== null && this.page.get().cursor !== at) this.page.set({ cursor: at });
    const { live, end } = this.source,
      latest = at ?? (live && stretch[1] >= end ? end : null);
    this.values(latest, stretch);
    say(this.panel.moment, at !== null ? duration(at) : latest !== null ? "now" : "highest");
    say(this.panel.reading, this.reading(at, latest, stretch));
  }

  private put(name: string, value: string): void {
    if (this.placed[name] !== value)
      this.panel.box.style.setProperty(name, (this.placed[name] = value));
  }

  /** The values of rows. Those out of view can be read out, and need not hurry. */
  private values(at: number | null, stretch: Span): void {
    for (const r of this.rows) if (r.shown) r.values(at, stretch);
    this.unhurried = () => {
      for (const r of this.rows) if (!r.shown) r.values(at, stretch);
    };
    this.others ||= window.setTimeout(() => {
      this.others = 0;
      this.unhurried();
    }, restMs);
  }

  private reading(at: number | null, latest: number | null, stretch: Span): string {
    if (at === null) return valuesWithoutMoment(latest, this.source.end);
    const there = said(this.source, stretch, at);
    return this.pointer !== null ? there : [there, ...valuesOf(this.rows)].join(" · ");
  }

  /** The figures of the stretch that was chosen. */
  private showRange(): void {
    const { range, phase } = this.page.get();
    if (!range) return this.panel.ranged.replaceChildren();
    const own = this.rows.filter((r) => r.track.kind === "curves" && r.element !== r.plot),
      shown = new Map(own.map((r) => [r.track.key, r.track]));
    this.panel.ranged.replaceChildren(
      rangePanel(this.source, [...shown.values()], range, phase, {
        phase: (name) => toggle(this.page, { phase: name }),
        zoom: () => this.move(shownAs(range, this.source.end)),
        clear: () => this.page.set({ range: null }),
      }),
    );
  }

  // Hands and keys.

  private hands(): Hand {
    return {
      seen: () => this.seen(),
      point: (share, at) => this.point(share, at),
      choose: (t, plot, y) => this.choose(t, plot, y),
      select: ([from, to], done) => {
        this.page.set({ range: [Math.round(from), Math.round(Math.max(to, from + 1))] });
        if (done) this.showRange();
      },
      pan: (share) => this.move(panned(this.look, this.source.end, share)),
      zoom: (at, factor) => {
        const to = zoomed(this.look, this.source.end, at, factor),
          changes = to.window?.join() !== this.look.window?.join() || to.last !== this.look.last;
        if (changes) this.move(to);
        return changes;
      },
      fit: () => this.move(everything),
    };
  }

  private point(...[share, at]: Parameters<Hand["point"]>): void {
    this.pointer = share;
    if (share === null) this.page.set({ cursor: null });
    const over = at && this.rows.find((r) => r.plot === at.plot),
      near = over?.events().filter((e) => Math.abs(e.x - share! * this.width) < 9);
    tipOf(this.panel.tip, near?.at(-1)?.mark ?? null, at, this.panel.box);
    this.soon({});
  }

  private choose(t: number, plot: HTMLElement, y: number): void {
    this.page.set({ at: Math.round(t) });
    const on = this.rows.find((r) => r.plot === plot)?.track,
      [from, to] = this.seen(),
      pixel = (to - from) / Math.max(this.width, 1);
    if (on?.kind !== "phases" || y >= laneHeight) return;
    const stays = this.source.stays.get(on.process) ?? [],
      phase = phaseAt(stays, t - pixel, t + pixel, 1 - y / laneHeight);
    if (phase) toggle(this.page, { phase });
  }

  private find(): void {
    const { element, find } = this.panel;
    element.scrollIntoView({ block: "nearest" });
    find.focus();
    find.select();
  }

  private listen(): void {
    const { box, find, by } = this.panel,
      { layout } = this,
      keyed = this.keyed();
    box.addEventListener("keydown", (e) => pressed(keyed, box, e));
    find.addEventListener("input", () => layout.set({ find: find.value.trim() }));
    find.addEventListener("keydown", (e) => {
      if (e.key === "Escape") {
        find.value = "";
        layout.set({ find: "" });
        box.focus();
        e.stopPropagation();
      }
      if (e.key === "Enter")
        this.rows
          .find((r) => r.element !== r.plot && !layout.get().pins.includes(r.track.key))
          ?.element.scrollIntoView({ block: "center" });
    });
    by.addEventListener("change", () => layout.set({ by: by.value as Grouping }));
  }

  // What is followed.

  private followPage(): void {
    this.page.follow(["window"], ({ window }) => {
      if (window?.join() === this.look.window?.join()) return;
      this.look = { window, last: window ? 0 : this.look.last };
      this.soon();
      this.refine();
    });
    this.page.follow(["at"], () => this.soon({}));
    this.page.follow(["phase"], () => {
      this.soon();
      this.showRange();
    });
    this.page.follow(["process"], () => this.strangers());
    this.page.follow(["range"], () => {
      this.soon({});
      this.showRange();
    });
  }

  private followLayout(): void {
    const { by, find, element, zero } = this.panel;
    this.layout.follow(["pins", "open", "by", "find"], (now) => {
      by.value = now.by;
      if (find.value.trim() !== now.find) find.value = now.find;
      this.stale.list = true;
      cancelAnimationFrame(this.frame);
      if (element.isConnected) return this.draw();
      this.frame = 0;
      this.soon({ list: true });
    });
    this.layout.follow(["fit", "last"], ({ fit, last }) => {
      zero.textContent = fit ? "Axes from zero" : "Fit axes to what is in view";
      if (last !== this.look.last) this.look = { window: last ? null : this.look.window, last };
      this.soon();
    });
  }

  /** Other colours, and paper, on which all rows are drawn. */
  private print(): void {
    const { element, box } = this.panel;
    whileShown(element, "hightide:theme", () => this.soon());
    whileShown(element, "beforeprint", () => {
      box.style.maxWidth = `${paper}px`;
      for (const r of this.rows) r.shown = true;
      this.stale.picture = true;
      this.draw();
    });
    whileShown(element, "afterprint", () => {
      box.style.maxWidth = "";
      this.soon();
    });
  }

  made(): Made {
    const keys = keysOf(this.keyed()),
      continuous = ["w", "s", "a", "d"]; // not to be called by name
    return {
      element: this.panel.element,
      keys: [{ title: "Timelines", keys }],
      commands: () => [
        ...keys
          .filter((k) => k.run && !continuous.includes(k.keys[0]!))
          .map((k) => ({
            title: `Timelines: ${k.does}`,
            kind: "action" as const,
            key: k.keys[0]!,
            run: () => k.run!(new KeyboardEvent("keydown")),
          })),
        ...(this.arranged?.all ?? []).map((t) => ({
          title: `Track: ${this.called(t)}`,
          kind: "panel" as const,
          run: () => this.reveal(t),
        })),
      ],
      close: () => this.close(),
    };
  }

  private called(t: Track): string {
    return [t.title, ownerName(t, this.source.processes)].filter(Boolean).join(", ");
  }

  private close(): void {
    this.closing.abort();
    this.nearness.disconnect();
    this.sized.disconnect();
    cancelAnimationFrame(this.frame);
    for (const timer of [this.resting, this.settling, this.others]) clearTimeout(timer);
  }
}

const say = (place: HTMLElement, text: string) => {
  if (place.textContent !== text) place.textContent = text;
};
