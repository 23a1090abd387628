// Synchronized timelines of one run: every curve, phase, step and event on one axis of time.
//
//	source (what there is) ──▶ model (tracks, groups) ──▶ rows ─┐
//	store: window, cursor, at, range ─▶ look ◀── hand, keys     ├─▶ one drawing a frame,
//	                                                            │   of the rows in view
//	layout: pins, folded groups, finder ────────────────────────┘
//
// A report has it with the curves that it carries, the page of a run with those that grow.

import { elsewhere } from "../draw/paint";
import { paper, whileShown } from "../draw/chart";
import { severe } from "../draw/marks";
import { search } from "../lib/fuzzy";
import { count, duration } from "../lib/format";
import { called, phaseAt, type Stay } from "../lib/phases";
import { toggle } from "../state/selection";
import type { Page, Store } from "../state/store";
import { h, section } from "../views/dom";
import { hand } from "./hand";
import type { Layout } from "./layout";
import { following, panned, seen, shownAs, zoomed, type Look, type Span } from "./look";
import { minimap } from "./minimap";
import {
  groupsOf,
  groupings,
  ownerName,
  tracksOf,
  type Grouping,
  type Group,
  type Track,
} from "./model";
import { clean, laneHeight, lastBefore, paintAxis } from "./paint";
import { rangePanel } from "./range";
import { isStill, moves, row, type Row } from "./rows";
import type { Source } from "./source";
import "./tracks.css";

export interface Key {
  keys: string[];
  does: string;
  run?: (event: KeyboardEvent) => void;
}
export interface Made {
  element: HTMLElement;
  keys: { title: string; keys: Key[] }[];
  commands(): { title: string; kind: "action" | "panel"; key?: string; run: () => void }[];
  close(): void;
}

const mostKept = 40; // pictures of rows: of more than these, only those in view are in memory
const restMs = 90,
  axisHeight = 24,
  panShare = 0.2,
  zoomStep = 0.7;

/** What the fold of a group's tracks at 0 is called in the address. */
const stillKey = (g: Group) => `still-${g.key}`;

export function tracks(source: Source, page: Store<Page>, layout: Store<Layout>): Made {
  const closing = new AbortController(),
    made = new Map<string, Row>();
  let look: Look = { window: page.get().window, last: layout.get().last },
    all: Track[] = [],
    folded: Track[] = [],
    groups: Group[] = [],
    rows: Row[] = [],
    width = 0,
    pointer: number | null = null,
    resting = 0,
    settling = 0,
    others = 0,
    unhurried = () => {},
    frame = 0,
    stale = { list: true, picture: true };

  // The parts of the section.
  const find = h("input", {
    type: "search",
    placeholder: "Find a track",
    "aria-label": "Find a track",
    "aria-keyshortcuts": "/",
  });
  const by = h(
    "select",
    { "aria-label": "Group tracks by" },
    ...groupings.map((g) => h("option", { value: g }, `by ${g}`)),
  );
  const button = (text: string, title: string, then: () => void) => {
    const b = h("button", { type: "button", class: "plain", title }, text);
    b.addEventListener("click", then);
    return b;
  };
  const whole = button("Show the whole run", "Key f", () => move({ window: null, last: 0 })),
    follow = button("Follow the end", "Key e", () => move(following(look, source.end)));
  const zero = button("", "Key y", () => layout.set({ fit: !layout.get().fit }));
  const reading = h("p", { class: "reading", role: "status" }),
    map = minimap(
      () => Math.max(source.end, 1),
      (to) => move(shownAs(to, source.end)),
    );
  const axis = h("canvas", { "aria-hidden": "true" }),
    moment = h("span", { class: "moment" }),
    axisPlot = h("div", { class: "axis" }, axis);
  const pins = h("div", { class: "pins", role: "list", "aria-label": "Pinned tracks" }),
    body = h("div", { class: "groups" }),
    none = h("p", { class: "hint", hidden: "" }, "No track matches these letters.");
  const box = h(
    "div",
    {
      class: "tracks",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Tracks. Arrow keys move a line through all of them; w and s zoom, a and d pan, " +
        "f shows the whole run.",
    },
    h(
      "div",
      { class: "tracks-top" },
      h("div", { class: "gutter map-gutter" }),
      map.element,
      h("div", { class: "gutter axis-gutter" }, moment),
      axisPlot,
      pins,
    ),
    body,
    none,
  );
  const tip = h("div", { class: "tracks-tip", hidden: "" }),
    ranged = h("div", { class: "ranged" }),
    list = h("div", { class: "events-list" });
  const element = section(
    "timeline",
    "Memory over time",
    h("div", { class: "tools" }, find, by, zero, whole, follow),
    reading,
    h("div", { class: "tracks-box" }, box, tip),
    ranged,
    list,
  );

  // What is shown.
  const now = () => seen(look, source.end);
  const move = (to: Look) => {
    look = to;
    soon();
    clearTimeout(resting);
    resting = window.setTimeout(() => {
      // the address and the server follow when the hand rests
      page.set({ window: look.window });
      layout.set({ last: look.last });
      refine();
    }, restMs);
  };
  const refine = () => {
    const stretch = now(),
      wanted = rows
        .filter((r) => r.shown)
        .flatMap((r) => r.track.curves.filter((c) => c.readings.wants(stretch)));
    source.refine?.(stretch, wanted);
  };
  const time = (): number | null =>
    pointer !== null ? now()[0] + pointer * (now()[1] - now()[0]) : page.get().at;

  const nearness = new IntersectionObserver(
    (entries) => {
      for (const e of entries)
        for (const r of rows)
          if (r.plot === e.target) {
            r.shown = e.isIntersecting;
            if (!r.shown && rows.length > mostKept) r.free();
          }
      soon();
      clearTimeout(settling);
      settling = window.setTimeout(refine, restMs);
    },
    { rootMargin: "240px 0px" },
  );

  /**
   * The rows anew, of what there is and of how it is arranged. Rows that stay are the same
   * elements.
   */
  const build = () => {
    const { pins: pinned, open, by: grouping, find: letters } = layout.get();
    all = tracksOf(
      source.curves.filter((c) => c.readings.shown.x.length > 0),
      [...source.stays.keys()],
      source.marks.length > 0,
    );
    const text = (t: Track) =>
      [t.title, ownerName(t, source.processes), ...t.curves.map((c) => c.short)].join(" ");
    const kept = letters ? search(letters, all, text).map((f) => f.item) : all,
      keep = new Set(kept.map((t) => t.key));
    groups = groupsOf(all, grouping, source.processes, source.lead);
    const used = new Map<string, Row>(),
      of = (t: Track, where: string, options: Parameters<typeof row>[2]) => {
        const key = [
            where,
            t.key,
            t.curves.length,
            ownerName(t, source.processes),
            isStill(t),
            source.host.memory_bytes,
            options.named,
            options.pin?.on,
          ].join("|"),
          had = made.get(key),
          r = had ?? row(source, t, options);
        r.track.curves = t.curves;
        used.set(key, r);
        return r;
      };
    const pin = (t: Track) => ({ on: pinned.includes(t.key), toggle: () => repin(t) });
    const many = grouping !== "process" || letters !== "";
    const top = pinned.flatMap((key) => {
      const t = all.find((o) => o.key === key);
      return t ? [of(t, "pin", { named: true, pin: pin(t) })] : [];
    });
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    pins.replaceChildren(...top.map((r) => r.element));
    const shownRows: Row[] = [];
    folded = [];
    const parts = groups.flatMap((g) => {
      const inside = g.tracks.filter((t) => keep.has(t.key));
      if (inside.length === 0) return [];
      const isOpen = letters !== "" || (open[g.key] ?? g.open);
      const head = h(
        "button",
        {
          type: "button",
          class: "group-head",
          "aria-expanded": String(isOpen),
          "data-group": g.key,
        },
        g.title,
        h("small", {}, isOpen ? "" : `${g.tracks.length} track${g.tracks.length === 1 ? "" : "s"}`),
      );
      head.addEventListener("click", () => fold(g.key, !isOpen));
      if (!isOpen) {
        const lead = inside.find((t) => t.kind === "curves") ?? inside[0]!,
          summary = of(lead, `summary-${g.key}`, { summary: true, named: false });
        shownRows.push(summary);
        return [
          h("div", { class: "group folded" }, h("div", { class: "gutter" }, head), summary.plot),
        ];
      }
      const list = (some: Track[], label: string) => {
        const own = some.map((t) => of(t, g.key, { named: many, pin: pin(t) }));
        shownRows.push(...own);
        return (
          own.length > 0 &&
          h("div", { role: "list", "aria-label": label }, ...own.map((r) => r.element))
        );
      };
      const still = letters ? [] : inside.filter(isStill),
        key = stillKey(g),
        all = open[key] ?? false;
      if (!all) folded.push(...still);
      return [
        h(
          "div",
          { class: "group" },
          h("div", { class: "group-line" }, head),
          list(
            inside.filter((t) => !still.includes(t)),
            g.title,
          ),
          still.length > 0 && stillLine(still, key, all, many),
          all && list(still, `${g.title}, at 0`),
        ),
      ];
    });
    body.replaceChildren(...parts);
    none.hidden = parts.length > 0;
    rows = [...top, ...shownRows];
    made.clear();
    nearness.disconnect();
    for (const [key, r] of used) {
      made.set(key, r);
      nearness.observe(r.plot);
    }
    strangers();
    if (focus && focus !== document.activeElement && element.contains(focus))
      focus.focus({ preventScroll: true });
    fillList();
    showRange();
  };
  const fold = (key: string, on: boolean) => {
    layout.set({ open: { ...layout.get().open, [key]: on } });
    body.querySelector<HTMLElement>(`[data-group="${CSS.escape(key)}"]`)?.focus();
  };
  /** One line for the tracks of a group of which nothing is to be drawn. */
  const stillLine = (still: Track[], key: string, all: boolean, named: boolean) => {
    const names = still.map((t) =>
        [t.title, named && ownerName(t, source.processes)].filter(Boolean).join(", "),
      ),
      says = source.live
        ? still.length > 1
          ? "are 0 so far"
          : "is 0 so far"
        : still.length > 1
          ? "stay at 0"
          : "stays at 0";
    const head = h(
      "button",
      { type: "button", class: "group-head", "aria-expanded": String(all), "data-group": key },
      `${count(still.length)} track${still.length > 1 ? "s" : ""} ${says}`,
      h("small", { title: names.join(" · ") }, names.join(" · ")),
    );
    head.addEventListener("click", () => fold(key, !all));
    return h("div", { class: "still-line" }, head);
  };
  /** Tracks of other processes than the selected one step back. */
  const strangers = () => {
    const { process } = page.get();
    for (const r of rows)
      (r.element === r.plot ? r.plot : r.element).classList.toggle(
        "stranger",
        process !== 0 && r.track.process !== 0 && r.track.process !== process,
      );
  };
  const repin = (t: Track) => {
    const { pins: before } = layout.get(),
      on = before.includes(t.key);
    layout.set({ pins: on ? before.filter((k) => k !== t.key) : [...before, t.key] });
    element
      .querySelector<HTMLElement>(
        `${on ? ".groups" : ".pins"} [data-key="${CSS.escape(t.key)}"] .pin`,
      )
      ?.focus({ preventScroll: true });
  };

  // Drawing: at most once a frame, however much has come.
  const soon = (what: Partial<typeof stale> = { picture: true }) => {
    Object.assign(stale, what);
    if (!frame && !closing.signal.aborted) frame = requestAnimationFrame(draw);
  };
  const draw = () => {
    frame = 0;
    if (source.live && (rows.some((r) => r.outgrown()) || folded.some(moves))) stale.list = true;
    if (stale.list) build();
    const stretch = now();
    if (stale.list || stale.picture) {
      const wide = axisPlot.clientWidth;
      if (wide > 0) {
        width = wide;
        paintAxis(clean(axis, { width, height: axisHeight }), stretch, {
          width,
          height: axisHeight,
        });
        map.draw(source, stretch);
        for (const r of rows)
          if (r.shown || (!r.drawn() && rows.length <= mostKept))
            r.draw(stretch, width, layout.get().fit, page.get().phase);
      }
      element.dataset.seen = stretch.map(Math.round).join("-");
      element.dataset.end = String(Math.round(source.end));
    }
    stale = { list: false, picture: false };
    const everything = look.window === null && look.last === 0;
    whole.hidden = everything;
    follow.hidden = !source.live || everything || look.last > 0;
    lines(stretch);
  };

  const placed: Record<string, string> = {},
    say = (place: HTMLElement, text: string) => {
      if (place.textContent !== text) place.textContent = text;
    };
  /** The lines through all tracks, and the values there. */
  const lines = (stretch: Span) => {
    const at = time(),
      share = (t: number) => (t - stretch[0]) / (stretch[1] - stretch[0]),
      { at: chosen, range } = page.get();
    const put = (name: string, value: string) => {
      if (placed[name] !== value) box.style.setProperty(name, (placed[name] = value));
    };
    const place = (name: string, s: number | null) =>
      put(name, s === null || s < 0 || s > 1 ? "-99" : s.toFixed(5));
    place("--cross", pointer);
    place("--at", chosen === null ? null : share(chosen));
    put("--from", range ? Math.min(Math.max(share(range[0]), 0), 1).toFixed(5) : "0");
    put("--to", range ? Math.min(Math.max(share(range[1]), 0), 1).toFixed(5) : "0");
    if (pointer !== null && page.get().cursor !== at) page.set({ cursor: at });
    const latest = at ?? (source.live && stretch[1] >= source.end ? source.end : null);
    for (const r of rows) if (r.shown) r.values(latest, stretch);
    unhurried = () => {
      for (const r of rows) if (!r.shown) r.values(latest, stretch);
    }; // those out of view can be read out, and need not hurry
    others ||= window.setTimeout(() => {
      others = 0;
      unhurried();
    }, restMs);
    say(moment, at !== null ? duration(at) : latest !== null ? "now" : "highest");
    say(
      reading,
      at === null
        ? latest !== null
          ? `The values are those of now, ${duration(source.end)} after the start.`
          : "The values are the highest readings in view, and a short peak may lie between " +
            "two; point at the tracks for those of a moment."
        : pointer !== null
          ? said(at)
          : spoken(at),
    );
  };
  const said = (at: number): string => {
    const stays = source.stays.get(source.lead) ?? [],
      stay = stays[lastBefore(stays, at)],
      step = source.steps.get(source.lead)?.find((s) => s.time_ns >= at),
      near = source.marks.find((m) => Math.abs(m.time_ns - at) < (now()[1] - now()[0]) / 200);
    return [
      `at ${duration(at)}`,
      step && `step ${count(step.step + 1)}`,
      stay && stay.to >= at && called(stay),
      near && (near.text || near.kind),
    ]
      .filter(Boolean)
      .join(" · ");
  };
  /** The same with the values of the first track in view, for who cannot see them. */
  const spoken = (at: number): string => {
    const lead = rows.find((r) => r.track.kind === "curves" && r.shown);
    return [
      said(at),
      ...(lead
        ? [...lead.element.querySelectorAll("dl > div")]
            .slice(0, 3)
            .map(
              (d) => `${d.querySelector("dt")?.textContent} ${d.querySelector("dd")?.textContent}`,
            )
        : []),
    ].join(" · ");
  };

  // What was chosen.
  const showRange = () => {
    const { range } = page.get(),
      shown = [
        ...new Map(
          rows
            .filter((r) => r.track.kind === "curves" && r.element !== r.plot)
            .map((r) => [r.track.key, r.track]),
        ).values(),
      ];
    ranged.replaceChildren(
      ...(range
        ? [
            rangePanel(source, shown, range, page.get().phase, {
              phase: (name) => toggle(page, { phase: name }),
              zoom: () => move(shownAs(range, source.end)),
              clear: () => page.set({ range: null }),
            }),
          ]
        : []),
    );
  };
  const fillList = () => {
    const events = source.marks.slice(0, 500),
      before = list.querySelector("details");
    if (list.dataset.n === `${source.marks.length}`) return;
    list.dataset.n = `${source.marks.length}`;
    const item = (m: Source["marks"][number]) => {
      const go = h(
        "button",
        { type: "button", class: "plain", title: "Go to this moment" },
        duration(m.time_ns),
      );
      go.addEventListener("click", () => goTo(m.time_ns));
      return h(
        "li",
        {},
        go,
        " ",
        h("b", { class: severe.includes(m.kind) ? "critical" : "warning" }, m.kind),
        m.text && m.text !== m.kind ? ` ${m.text}` : null,
      );
    };
    list.replaceChildren(
      ...(events.length === 0
        ? []
        : [
            h(
              "details",
              {
                class: "events",
                ...(before ? before.open && { open: "" } : events.length <= 4 && { open: "" }),
              },
              h(
                "summary",
                {},
                source.marks.length === 1
                  ? "1 event"
                  : `${count(source.marks.length)} ` +
                      `events${source.marks.length > 500 ? ", of which the first 500" : ""}`,
              ),
              h("ol", {}, ...events.map(item)),
            ),
          ]),
    );
  };
  /** Chooses a moment and brings it into view. */
  const goTo = (t: number) => {
    const [from, to] = now();
    pointer = null;
    if (t < from || t > to) move(shownAs([t - (to - from) / 2, t + (to - from) / 2], source.end));
    page.set({ at: t, cursor: null });
  };

  // Hands and keys.
  hand(
    element,
    {
      seen: now,
      point(share, at) {
        pointer = share;
        if (share === null) page.set({ cursor: null });
        const over = at && rows.find((r) => r.plot === at.plot),
          hit =
            over &&
            over
              .events()
              .filter((e) => Math.abs(e.x - share! * width) < 9)
              .at(-1);
        tip.hidden = !hit;
        if (hit && at) {
          tip.replaceChildren(
            h("b", {}, hit.mark.kind),
            ` ${duration(hit.mark.time_ns)}`,
            h("span", {}, hit.mark.text),
          );
          const around = box.getBoundingClientRect();
          const left = Math.min(at.x - around.left + 12, around.width - 300);
          tip.style.left = `${Math.max(0, left)}px`;
          tip.style.top = `${at.y - around.top + 16}px`;
        }
        soon({});
      },
      choose(t, plot, y) {
        page.set({ at: Math.round(t) });
        const on = rows.find((r) => r.plot === plot)?.track,
          [from, to] = now(),
          pixel = (to - from) / Math.max(width, 1);
        const phase =
          on?.kind === "phases" && y < laneHeight
            ? phaseAt(source.stays.get(on.process) ?? [], t - pixel, t + pixel, 1 - y / laneHeight)
            : "";
        if (phase) toggle(page, { phase });
      },
      select: (range, done) => {
        page.set({ range: [Math.round(range[0]), Math.round(Math.max(range[1], range[0] + 1))] });
        if (done) showRange();
      },
      pan: (share) => move(panned(look, source.end, share)),
      zoom(at, factor) {
        const to = zoomed(look, source.end, at, factor),
          changes = to.window?.join() !== look.window?.join() || to.last !== look.last;
        if (changes) move(to);
        return changes;
      },
      fit: () => move({ window: null, last: 0 }),
    },
    closing.signal,
  );

  const middle = () => time() ?? (now()[0] + now()[1]) / 2;
  const zoomBy = (factor: number) =>
    move(zoomed(look, source.end, Math.min(Math.max(middle(), now()[0]), now()[1]), factor));
  /** Moves the chosen moment to the next of some times, or to the one before. */
  const jump = (times: number[], forward: boolean) => {
    const at = page.get().at ?? (forward ? now()[0] : now()[1]),
      to = forward ? times.find((t) => t > at) : times.findLast((t) => t < at);
    if (to !== undefined) goTo(to);
  };
  const stepTimes = () => (source.steps.get(source.lead) ?? []).map((s) => s.time_ns),
    eventTimes = () => source.marks.map((m) => m.time_ns).sort((a, b) => a - b);
  const keys: Key[] = [
    { keys: ["w"], does: "zoom in, at the pointer", run: () => zoomBy(zoomStep) },
    { keys: ["s"], does: "zoom out", run: () => zoomBy(1 / zoomStep) },
    { keys: ["a"], does: "pan back", run: () => move(panned(look, source.end, -panShare)) },
    { keys: ["d"], does: "pan on", run: () => move(panned(look, source.end, panShare)) },
    { keys: ["f", "0"], does: "show the whole run", run: () => move({ window: null, last: 0 }) },
    { keys: ["e"], does: "follow the end", run: () => move(following(look, source.end)) },
    { keys: [","], does: "to the end of the step before", run: () => jump(stepTimes(), false) },
    { keys: ["."], does: "to the end of the next step", run: () => jump(stepTimes(), true) },
    {
      keys: ["l"],
      does: "select the phase of the moment, or the one nearest to it, in every panel; again, none",
      run: () => {
        const at = middle(),
          away = (s: Stay) => Math.max(s.from - at, at - s.to, 0),
          stays = source.stays.get(source.lead) ?? [];
        if (stays.length)
          toggle(page, { phase: stays.reduce((a, b) => (away(b) < away(a) ? b : a)).phase });
      },
    },
    { keys: ["["], does: "to the event before", run: () => jump(eventTimes(), false) },
    { keys: ["]"], does: "to the next event", run: () => jump(eventTimes(), true) },
    {
      keys: ["y"],
      does: "vertical axes from zero, or fitted to what is in view",
      run: () => layout.set({ fit: !layout.get().fit }),
    },
    {
      keys: ["/"],
      does: "find a track",
      run: () => {
        element.scrollIntoView({ block: "nearest" });
        find.focus();
        find.select();
      },
    },
    {
      keys: ["ArrowLeft", "ArrowRight"],
      does:
        "with the tracks focused: move the line through all tracks; with shift, " +
        "choose a stretch",
    },
  ];
  box.addEventListener("keydown", (e) => {
    if (elsewhere(e) || (e.target as Element).closest("[role=slider]")) return;
    const { range, at: chosen } = page.get(),
      [from, to] = now();
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (by !== undefined) {
      const at = Math.min(
        Math.max((chosen ?? (from + to) / 2) + (by * (to - from)) / (e.shiftKey ? 20 : 100), 0),
        source.end,
      );
      if (e.shiftKey) {
        const begun =
          range && chosen !== null
            ? Math.abs(range[0] - chosen) < Math.abs(range[1] - chosen)
              ? range[1]
              : range[0]
            : (chosen ?? (from + to) / 2);
        page.set({ range: begun < at ? [begun, at] : [at, begun + 1] });
      }
      goTo(Math.round(at));
      showRange();
    } else if (e.key === "Enter" && range && e.target === box) move(shownAs(range, source.end));
    else if (e.key === "Escape" && (range || chosen !== null))
      page.set(range ? { range: null } : { at: null });
    else if (e.key === "+" || e.key === "=") zoomBy(zoomStep);
    else if (e.key === "-") zoomBy(1 / zoomStep);
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  find.addEventListener("input", () => layout.set({ find: find.value.trim() }));
  find.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      find.value = "";
      layout.set({ find: "" });
      box.focus();
      e.stopPropagation();
    }
    if (e.key === "Enter")
      rows
        .find((r) => r.element !== r.plot && !layout.get().pins.includes(r.track.key))
        ?.element.scrollIntoView({ block: "center" });
  });
  by.addEventListener("change", () => layout.set({ by: by.value as Grouping }));

  // What is followed.
  page.follow(["window"], ({ window }) => {
    if (window?.join() !== look.window?.join()) {
      look = { window, last: window ? 0 : look.last };
      soon();
      refine();
    }
  });
  page.follow(["at"], () => soon({}));
  page.follow(["phase"], () => {
    soon();
    showRange();
  });
  page.follow(["process"], () => strangers());
  page.follow(["range"], () => {
    soon({});
    showRange();
  });
  layout.follow(["pins", "open", "by", "find"], ({ by: grouping, find: letters }) => {
    by.value = grouping;
    if (find.value.trim() !== letters) find.value = letters;
    stale.list = true;
    cancelAnimationFrame(frame);
    if (element.isConnected) draw();
    else {
      frame = 0;
      soon({ list: true });
    }
  });
  layout.follow(["fit", "last"], ({ fit, last }) => {
    zero.textContent = fit ? "Axes from zero" : "Fit axes to what is in view";
    if (last !== look.last) look = { window: last ? null : look.window, last };
    soon();
  });
  source.changed = (changed) => soon(changed ? { list: true, picture: true } : { picture: true });
  const sized = new ResizeObserver(() => soon());
  sized.observe(axisPlot);
  whileShown(element, "hightide:theme", () => soon());
  whileShown(element, "beforeprint", () => {
    box.style.maxWidth = `${paper}px`;
    for (const r of rows) r.shown = true;
    stale.picture = true;
    draw();
  });
  whileShown(element, "afterprint", () => {
    box.style.maxWidth = "";
    soon();
  });

  return {
    element,
    keys: [{ title: "Timelines", keys }],
    commands: () => [
      ...keys
        .filter((k) => k.run && !["w", "s", "a", "d"].includes(k.keys[0]!))
        .map((k) => ({
          title: `Timelines: ${k.does}`,
          kind: "action" as const,
          key: k.keys[0]!,
          run: () => k.run!(new KeyboardEvent("keydown")),
        })),
      ...all.map((t) => ({
        title: `Track: ${[t.title, ownerName(t, source.processes)].filter(Boolean).join(", ")}`,
        kind: "panel" as const,
        run: () => reveal(t),
      })),
    ],
    close() {
      closing.abort();
      nearness.disconnect();
      sized.disconnect();
      cancelAnimationFrame(frame);
      clearTimeout(resting);
      clearTimeout(settling);
      clearTimeout(others);
    },
  };

  /** Opens a track's group and scrolls to it. */
  function reveal(t: Track): void {
    const group = groups.find((g) => g.tracks.some((o) => o.key === t.key));
    if (group)
      layout.set({
        open: {
          ...layout.get().open,
          [group.key]: true,
          ...(isStill(t) ? { [stillKey(group)]: true } : {}),
        },
        find: "",
      });
    const at = element.querySelector<HTMLElement>(`[data-key="${CSS.escape(t.key)}"]`);
    at?.scrollIntoView({ block: "center" });
    at?.querySelector<HTMLElement>(".pin")?.focus({ preventScroll: true });
  }
}
