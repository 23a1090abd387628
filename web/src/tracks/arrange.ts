// The rows of what there is, as the reader arranged it: pinned tracks, and groups, open or folded.

import { search } from "../lib/fuzzy";
import { count } from "../lib/format";
import { h } from "../views/dom";
import type { Layout } from "./layout";
import { groupsOf, ownerName, tracksOf, type Group, type Track } from "./model";
import { isStill, row, type Row } from "./rows";
import type { Source } from "./source";

/** What the fold of a group's tracks at 0 is called in the address. */
export const stillKey = (g: Group) => `still-${g.key}`;

export interface Doing {
  repin(t: Track): void;
  fold(key: string, open: boolean): void;
}

type RowOptions = Parameters<typeof row>[2];

/** All tracks, groups and rows, and the elements that show them. */
export class Arrangement {
  readonly all: Track[];
  readonly groups: Group[];
  /** Tracks at 0 behind a line. */
  readonly folded: Track[] = [];
  readonly used = new Map<string, Row>();
  readonly top: Row[];
  readonly rows: Row[];
  readonly parts: HTMLElement[];

  /** Rows of before that stay are the same elements. */
  constructor(
    private readonly source: Source,
    private readonly layout: Layout,
    private readonly before: ReadonlyMap<string, Row>,
    private readonly doing: Doing,
  ) {
    this.all = tracksOf(
      source.curves.filter((c) => c.readings.shown.x.length > 0),
      [...source.stays.keys()],
      source.marks.length > 0,
    );
    this.groups = groupsOf(this.all, layout.by, source.processes, source.lead);
    this.top = layout.pins.flatMap((key) => {
      const t = this.all.find((o) => o.key === key);
      return t ? [this.rowOf(t, "pin", { named: true, pin: this.pin(t) })] : [];
    });
    const found = this.found(),
      shown: Row[] = [];
    this.parts = this.groups.flatMap((g) => {
      const inside = g.tracks.filter((t) => found.has(t.key));
      return inside.length > 0 ? [this.group(g, inside, shown)] : [];
    });
    this.rows = [...this.top, ...shown];
  }

  /** The keys of the tracks that the letters find. */
  private found(): Set<string> {
    const { find } = this.layout,
      text = (t: Track) =>
        [t.title, ownerName(t, this.source.processes), ...t.curves.map((c) => c.short)].join(" ");
    const some = find ? search(find, this.all, text).map((f) => f.item) : this.all;
    return new Set(some.map((t) => t.key));
  }

  private pin(t: Track) {
    return { on: this.layout.pins.includes(t.key), toggle: () => this.doing.repin(t) };
  }

  private rowOf(t: Track, where: string, options: RowOptions): Row {
    const key = [
      where,
      t.key,
      t.curves.length,
      ownerName(t, this.source.processes),
      isStill(t),
      this.source.host.memory_bytes,
      options.named,
      options.pin?.on,
    ].join("|");
    const r = this.before.get(key) ?? row(this.source, t, options);
    r.track.curves = t.curves;
    this.used.set(key, r);
    return r;
  }

  private group(g: Group, inside: Track[], shown: Row[]): HTMLElement {
    const { find, open } = this.layout,
      isOpen = find !== "" || (open[g.key] ?? g.open),
      tracks = `${g.tracks.length} track${g.tracks.length === 1 ? "" : "s"}`;
    const head = this.head(g.key, isOpen, g.title, h("small", {}, isOpen ? "" : tracks));
    if (isOpen) return h("div", { class: "group" }, ...this.opened(g, head, inside, shown));
    const lead = inside.find((t) => t.kind === "curves") ?? inside[0]!,
      summary = this.rowOf(lead, `summary-${g.key}`, { summary: true, named: false });
    shown.push(summary);
    return h("div", { class: "group folded" }, h("div", { class: "gutter" }, head), summary.plot);
  }

  private head(key: string, open: boolean, ...inside: (string | HTMLElement)[]): HTMLElement {
    const head = h(
      "button",
      { type: "button", class: "group-head", "aria-expanded": String(open), "data-group": key },
      ...inside,
    );
    head.addEventListener("click", () => this.doing.fold(key, !open));
    return head;
  }

  /** What an open group has: its tracks, and behind a line those that are 0. */
  private opened(g: Group, head: HTMLElement, inside: Track[], shown: Row[]) {
    const { find, open, by } = this.layout,
      named = by !== "process" || find !== "";
    const list = (some: Track[], label: string) => {
      const own = some.map((t) => this.rowOf(t, g.key, { named, pin: this.pin(t) }));
      shown.push(...own);
      return (
        own.length > 0 &&
        h("div", { role: "list", "aria-label": label }, ...own.map((r) => r.element))
      );
    };
    const still = find ? [] : inside.filter(isStill),
      key = stillKey(g),
      all = open[key] ?? false;
    if (!all) this.folded.push(...still);
    return [
      h("div", { class: "group-line" }, head),
      list(
        inside.filter((t) => !still.includes(t)),
        g.title,
      ),
      still.length > 0 && this.stillLine(still, key, all, named),
      all && list(still, `${g.title}, at 0`),
    ];
  }

  /** One line for the tracks of a group of which nothing is to be drawn. */
  private stillLine(still: Track[], key: string, all: boolean, named: boolean): HTMLElement {
    const many = still.length > 1,
      names = still
        .map((t) =>
          [t.title, named && ownerName(t, this.source.processes)].filter(Boolean).join(", "),
        )
        .join(" · ");
    const says = this.source.live
      ? `${many ? "are" : "is"} 0 so far`
      : `${many ? "stay" : "stays"} at 0`;
    const head = this.head(
      key,
      all,
      `${count(still.length)} track${many ? "s" : ""} ${says}`,
      h("small", { title: names }, names),
    );
    return h("div", { class: "still-line" }, head);
  }
}
