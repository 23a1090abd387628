// The events around the moment, one after the other: a click goes there. More come as the list is
// scrolled.

import type { ExploreEvents, ListEvent } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { filtering, type Board } from "./board";
import { button } from "./tools";

const kinds = {
  alloc: "allocated",
  free_requested: "free requested",
  free_completed: "free completed",
  segment_alloc: "segment allocated",
  segment_free: "segment freed",
  segment_map: "segment mapped",
  segment_unmap: "segment unmapped",
  oom: "out of memory",
  snapshot: "snapshot",
  annotate: "annotation",
} as const;
const marks: Record<string, string> = {
  alloc: "+",
  free_requested: "−",
  free_completed: "○",
  segment_alloc: "▣",
  segment_map: "▣",
  segment_free: "□",
  segment_unmap: "□",
  oom: "!",
};
const some = 100,
  most = 500,
  near = 12; // rows

export interface EventList {
  element: HTMLElement;
  peak(): void;
  next(kind: string, back?: boolean): void;
}

export function eventList(board: Board, mark: (name: string, value: string) => void): EventList {
  const rows = new Listed(board, mark);
  const kind = h(
    "select",
    { "aria-label": "Kind of event" },
    ...Object.entries(kinds).map(([k, text]) => h("option", { value: k }, text)),
  );
  kind.value = "segment_alloc";
  const peak = () => board.goTo(board.device().peak_at);
  return {
    element: h(
      "section",
      { class: "events", "aria-label": "Events" },
      h(
        "div",
        { class: "tools" },
        h("h4", {}, "Events"),
        button("to the peak", peak),
        kind,
        button("←", () => rows.next(kind.value, true), {
          "aria-label": "The last of this kind before",
        }),
        button("→", () => rows.next(kind.value), { "aria-label": "The next of this kind" }),
      ),
      rows.element,
      rows.said,
    ),
    peak,
    next: (of, back) => rows.next(of, back),
  };
}

/** An event as a row; found: a filter is set, which it passes. */
function rowOf(e: ListEvent, found: boolean): HTMLElement {
  return h(
    "div",
    {
      class: "event " + `${e.action}${e.other ? " other" : found ? " found" : ""}`,
      role: "option",
      id: `event-${e.number}`,
      "aria-selected": "false",
      title: [e.address, e.stream, e.place.file && `${e.place.file}:${e.place.line ?? ""}`]
        .filter(Boolean)
        .join(" · "),
    },
    h("span", { class: "n" }, count(e.number)),
    h(
      "span",
      {},
      h("i", { "aria-hidden": "true" }, marks[e.action] ?? ""),
      kinds[e.action as keyof typeof kinds] ?? e.action,
    ),
    h(
      "span",
      { class: "n" },
      e.action === "annotate" || e.action === "snapshot" ? "" : bytes(e.size),
    ),
    h("span", { class: "event-line" }, e.place.name),
  );
}

/** The rows around the moment, and what keeps them there. */
class Listed {
  readonly said = h("span", { class: "hint", role: "status" });
  private readonly list = h("div", {
    class: "event-rows",
    role: "listbox",
    tabindex: "0",
    "aria-label": "Events of the trace",
  });
  private events: ListEvent[] = [];
  private rows: HTMLElement[] = [];
  private from = 0;
  private all = 0;
  private loading = false;
  private device = -1;
  private readonly board: Board;
  private readonly mark: (name: string, value: string) => void;

  constructor(board: Board, mark: (name: string, value: string) => void) {
    [this.board, this.mark] = [board, mark];
    const { list } = this;
    list.addEventListener("pointerleave", () => board.hover(null));
    list.addEventListener("scroll", () => this.scrolled());
    list.addEventListener("keydown", (e) => this.key(e));
    board.follow(["at", "device"], () => {
      this.said.textContent = "";
      this.reach();
    });
    board.follow(["block"], () => {
      if (this.rows.length) this.choose();
    });
    let asked = JSON.stringify(board.filter());
    board.follow([...filtering], () => {
      if (asked === (asked = JSON.stringify(board.filter()))) return;
      this.device = -1;
      this.reach();
    });
  }

  get element(): HTMLElement {
    return this.list;
  }

  private readonly now = () => this.board.at() - 1; // the event just before the moment

  private fetchRows(first: number, n: number, then: (a: ExploreEvents) => void) {
    this.loading = true;
    this.board.ask<ExploreEvents>(
      "events",
      this.board.path("events", { from: Math.max(first, 0), count: n, ...this.board.filter() }),
      (a) => {
        this.loading = false;
        this.all = a.all;
        then(a);
      },
    );
  }

  private readonly row = (e: ListEvent): HTMLElement => {
    const element = rowOf(e, Object.keys(this.board.filter()).length > 0),
      block = e.block >= 0 ? e.block : null;
    element.addEventListener("click", () =>
      this.board.app.set({ at: e.number + 1, ...(block === null ? {} : { block }) }),
    );
    element.addEventListener("pointerenter", () => this.board.hover(block));
    return element;
  };

  private readonly high = () => this.rows[0]?.offsetHeight || 24;

  private choose() {
    const n = this.now(),
      block = this.board.app.get().block,
      at = n - this.from;
    this.rows.forEach((r, i) => {
      r.setAttribute("aria-selected", String(i === at));
      r.classList.toggle("of-block", block !== null && this.events[i]!.block === block);
    });
    const one = this.rows[at];
    if (!one) {
      this.list.scrollTop = 0;
      this.list.removeAttribute("aria-activedescendant");
      return;
    }
    this.list.setAttribute("aria-activedescendant", one.id);
    const top = at * this.high();
    if (
      top < this.list.scrollTop + this.high() ||
      top > this.list.scrollTop + this.list.clientHeight - 2 * this.high()
    )
      this.list.scrollTop = top - this.list.clientHeight / 2;
  }

  private fill(a: ExploreEvents) {
    [this.events, this.from] = [a.events, a.from];
    this.rows = this.events.map(this.row);
    this.list.replaceChildren(...this.rows);
  }

  private reach() {
    // the moment has rows around it
    const n = this.now();
    if (
      this.device === this.board.device().device &&
      n >= this.from &&
      n < this.from + this.events.length &&
      (n - this.from > near || this.from === 0)
    ) {
      this.choose();
      return void this.mark("events", String(n));
    }
    this.device = this.board.device().device;
    this.fetchRows(n - some / 2, some * 1.5, (a) => {
      this.fill(a);
      this.choose();
      this.mark("events", String(this.now()));
    });
  }

  /** More rows come as an end of those that are there is near. */
  private scrolled(): void {
    if (this.loading) return;
    const top = this.list.scrollTop,
      end = this.list.scrollHeight - top - this.list.clientHeight,
      edge = near * this.high();
    if (top < edge && this.from > 0) this.before();
    else if (end < edge && this.from + this.events.length < this.all) this.after();
  }

  private before(): void {
    const first = Math.max(this.from - some, 0);
    this.fetchRows(first, this.from - first, (a) => {
      const more = a.events.map(this.row);
      [this.events, this.rows, this.from] = [
        [...a.events, ...this.events].slice(0, most),
        [...more, ...this.rows].slice(0, most),
        a.from,
      ];
      const before = this.list.scrollTop;
      this.list.replaceChildren(...this.rows);
      this.list.scrollTop = before + more.length * this.high();
    });
  }

  private after(): void {
    this.fetchRows(this.from + this.events.length, some, (a) => {
      const drop = Math.max(this.events.length + a.events.length - most, 0),
        before = this.list.scrollTop;
      [this.events, this.rows, this.from] = [
        [...this.events, ...a.events].slice(drop),
        [...this.rows, ...a.events.map(this.row)].slice(drop),
        this.from + drop,
      ];
      this.list.replaceChildren(...this.rows);
      this.list.scrollTop = before - drop * this.high();
    });
  }

  readonly next = (of: string, back = false) =>
    this.board.ask<{ event: number }>(
      "next",
      this.board.path("next", { action: of, after: this.now(), ...(back ? { back: "true" } : {}) }),
      ({ event }) => {
        this.said.textContent =
          event < 0
            ? `There is no “${kinds[of as keyof typeof kinds] ?? of}” ` +
              `${back ? "before" : "after"} this moment.`
            : "";
        if (event >= 0) this.board.goTo(event + 1);
      },
    );

  private key(e: KeyboardEvent): void {
    if (e.key === "Enter" && e.target === this.list) {
      const one = this.events[this.now() - this.from];
      if (one && one.block >= 0) this.board.app.set({ block: one.block });
      return;
    }
    const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    this.board.goTo(this.board.at() + by);
  }
}
