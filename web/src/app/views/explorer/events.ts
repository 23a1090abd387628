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
  const { app } = board,
    list = h("div", {
      class: "event-rows",
      role: "listbox",
      tabindex: "0",
      "aria-label": "Events of the trace",
    }),
    said = h("span", { class: "hint", role: "status" });
  const kind = h(
    "select",
    { "aria-label": "Kind of event" },
    ...Object.entries(kinds).map(([k, text]) => h("option", { value: k }, text)),
  );
  kind.value = "segment_alloc";
  let events: ListEvent[] = [],
    rows: HTMLElement[] = [],
    from = 0,
    all = 0,
    loading = false,
    device = -1;
  const now = () => board.at() - 1; // the event just before the moment
  const fetchRows = (first: number, n: number, then: (a: ExploreEvents) => void) => {
    loading = true;
    board.ask<ExploreEvents>(
      "events",
      board.path("events", { from: Math.max(first, 0), count: n, ...board.filter() }),
      (a) => {
        loading = false;
        all = a.all;
        then(a);
      },
    );
  };
  const row = (e: ListEvent): HTMLElement => {
    const element = h(
      "div",
      {
        class:
          "event " +
          `${e.action}${e.other ? " other" : Object.keys(board.filter()).length ? " found" : ""}`,
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
    element.addEventListener("click", () =>
      app.set({ at: e.number + 1, ...(e.block >= 0 ? { block: e.block } : {}) }),
    );
    element.addEventListener("pointerenter", () => board.hover(e.block >= 0 ? e.block : null));
    return element;
  };
  list.addEventListener("pointerleave", () => board.hover(null));
  const high = () => rows[0]?.offsetHeight || 24;
  const choose = () => {
    const n = now(),
      block = app.get().block,
      at = n - from;
    rows.forEach((r, i) => {
      r.setAttribute("aria-selected", String(i === at));
      r.classList.toggle("of-block", block !== null && events[i]!.block === block);
    });
    const one = rows[at];
    if (!one) {
      list.scrollTop = 0;
      list.removeAttribute("aria-activedescendant");
      return;
    }
    list.setAttribute("aria-activedescendant", one.id);
    const top = at * high();
    if (top < list.scrollTop + high() || top > list.scrollTop + list.clientHeight - 2 * high())
      list.scrollTop = top - list.clientHeight / 2;
  };
  const fill = (a: ExploreEvents) => {
    [events, from] = [a.events, a.from];
    rows = events.map(row);
    list.replaceChildren(...rows);
  };
  const reach = () => {
    // the moment has rows around it
    const n = now();
    if (
      device === board.device().device &&
      n >= from &&
      n < from + events.length &&
      (n - from > near || from === 0)
    ) {
      choose();
      return void mark("events", String(n));
    }
    device = board.device().device;
    fetchRows(n - some / 2, some * 1.5, (a) => {
      fill(a);
      choose();
      mark("events", String(now()));
    });
  };
  list.addEventListener("scroll", () => {
    if (loading) return;
    const top = list.scrollTop,
      end = list.scrollHeight - top - list.clientHeight,
      edge = near * high();
    if (top < edge && from > 0) {
      const first = Math.max(from - some, 0);
      fetchRows(first, from - first, (a) => {
        const more = a.events.map(row);
        [events, rows, from] = [
          [...a.events, ...events].slice(0, most),
          [...more, ...rows].slice(0, most),
          a.from,
        ];
        const before = list.scrollTop;
        list.replaceChildren(...rows);
        list.scrollTop = before + more.length * high();
      });
    } else if (end < edge && from + events.length < all) {
      fetchRows(from + events.length, some, (a) => {
        const drop = Math.max(events.length + a.events.length - most, 0),
          before = list.scrollTop;
        [events, rows, from] = [
          [...events, ...a.events].slice(drop),
          [...rows, ...a.events.map(row)].slice(drop),
          from + drop,
        ];
        list.replaceChildren(...rows);
        list.scrollTop = before - drop * high();
      });
    }
  });
  list.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && e.target === list) {
      const one = events[now() - from];
      if (one && one.block >= 0) app.set({ block: one.block });
      return;
    }
    const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    board.goTo(board.at() + by);
  });
  const next = (of: string, back = false) =>
    board.ask<{ event: number }>(
      "next",
      board.path("next", { action: of, after: now(), ...(back ? { back: "true" } : {}) }),
      ({ event }) => {
        said.textContent =
          event < 0
            ? `There is no “${kinds[of as keyof typeof kinds] ?? of}” ` +
              `${back ? "before" : "after"} this moment.`
            : "";
        if (event >= 0) board.goTo(event + 1);
      },
    );
  const peak = () => board.goTo(board.device().peak_at);
  board.follow(["at", "device"], () => {
    said.textContent = "";
    reach();
  });
  board.follow(["block"], () => {
    if (rows.length) choose();
  });
  let asked = JSON.stringify(board.filter());
  board.follow([...filtering], () => {
    if (asked !== (asked = JSON.stringify(board.filter()))) {
      device = -1;
      reach();
    }
  });
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
        button("←", () => next(kind.value, true), { "aria-label": "The last of this kind before" }),
        button("→", () => next(kind.value), { "aria-label": "The next of this kind" }),
      ),
      list,
      said,
    ),
    peak,
    next,
  };
}
