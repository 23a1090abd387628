import uPlot from "uplot";
import type { Allocator, Report, Band } from "../../api";
import { axis, byteAxis, chart, type Chart } from "../../draw/chart";
import { marks, type Line } from "../../draw/marks";
import { strip, stripHeight, type Lane } from "../../draw/strip";
import { faint, theme } from "../../draw/theme";
import { bandInk, categories } from "../../lib/categories";
import { bytes, commandLine, count, duration } from "../../lib/format";
import { fromZero, inside } from "../../lib/scales";
import { toggle } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { copier, h, section } from "../dom";
import { oneAtATime, switcher } from "../flames";

const height = 330;
type Window = [from: number, to: number];

/** Device memory event by event, as bands that add up; drag to zoom. */
export function courses(report: Report, page: PageStore): HTMLElement | null {
  const drawn = (report.allocators ?? []).filter((a) => a.timeline && a.timeline.events.length > 2);
  const most = drawn.reduce<Allocator | null>(
      (a, b) => (a && a.peak.allocated_bytes >= b.peak.allocated_bytes ? a : b),
      null,
    ),
    timed = report.series.some((s) => s.x_unit === "ns");
  // the page's moments are events of the device that is looked at, where they are not times
  const shared = (a: Allocator) =>
    !timed && (page.get().device ? page.get().device === String(a.device) : a === most);
  return drawn.length
    ? section(
        "course",
        "Device memory, event by event",
        ...oneAtATime(
          drawn.map((a) => [titled(a), a.file, () => course(a, page, () => shared(a))]),
        ),
      )
    : null;
}

/** The page counts points, of which one is before the first event. */
const eventOf = (point: number) => point - 1;

/** What a course shows now. */
interface Looking {
  bands: Band[];
  window: Window;
}

function course(a: Allocator, page: PageStore, shared: () => boolean): HTMLElement {
  const t = a.timeline!,
    whole: Window = [t.events[0]!, t.events[t.events.length - 1]!],
    byCategory = t.by_category.toSorted((p, q) => rank(p.name) - rank(q.name)),
    now: Looking = { bands: byCategory, window: whole };
  let drawn: Chart | null = null;
  const box = h("div", { ...boxed, "aria-label": spoken(a) }),
    reading = h("p", { class: "reading", role: "status" }),
    asked = h("p", { class: "asked" }),
    back = h("button", { type: "button", class: "plain" }, "Show all events");
  const summit = highest(byCategory, t.events, whole).index;
  /** The field of the selection that a band is one value of. */
  const field = () => (now.bands === byCategory ? ("category" as const) : ("line" as const));
  const alone = () => page.get()[field()];
  const legend = legendOf(page, field);
  const say = (i: number) => {
    reading.textContent = saidOf(a, now.bands, i);
    legend.say(now.bands.map((b) => b.bytes[i]!));
  };
  const look = (to: Window, told = true) => {
    const all = to[0] === whole[0] && to[1] === whole[1];
    now.window = to;
    if (told && shared()) page.set({ window: all ? null : [to[0] + 1, to[1] + 1] });
    back.hidden = all;
    drawn?.plot()?.setScale("x", { min: to[0], max: to[1] });
    say(highest(now.bands, t.events, to).index);
    asked.replaceChildren(...(all ? [] : inFull(a, to)));
  };
  const show = (bands: Band[]) => {
    now.bands = bands;
    legend.fill(bands);
    drawn?.redraw();
  };
  const followed = () => {
    // the window of the address, as far as this device has events in it
    const { window: wanted } = page.get(),
      from = wanted && inside([eventOf(wanted[0]), eventOf(wanted[1])], whole, 4),
      next = shared() ? (from ?? whole) : now.window;
    if (next[0] !== now.window[0] || next[1] !== now.window[1]) look(next, false);
  };
  back.addEventListener("click", () => look(whole));
  keyed(box, now, whole, look);
  legend.fill(now.bands);
  queueMicrotask(() => {
    drawn = chart(box, height + stripHeight(lanes(a)), () =>
      made(a, now, alone(), summit, whole, {
        at: () => (shared() ? page.get().at : null),
        goTo: (at) => shared() && page.set({ at }),
        say: (i) => say(i ?? highest(now.bands, t.events, now.window).index),
        look,
      }),
    );
    look(whole, false);
    page.follow(["window", "device"], followed);
    page.follow(["at", "device"], () => drawn?.plot()?.redraw(false));
    page.follow(["category", "line"], () => {
      legend.mark();
      drawn?.redraw();
    });
  });
  const choose = (bands: Band[]) => () => {
    show(bands);
    look(now.window);
  };
  const by = switcher("Bands by", [
    ["by category", choose(byCategory)],
    ["by line", choose(t.by_site)],
  ]);
  const filter =
    a.filter && h("span", { class: "filtered" }, "only what matches ", h("code", {}, a.filter));
  return h(
    "figure",
    {},
    h("figcaption", {}, `${titled(a)} of ${a.file}`, filter, by, back),
    ...[box, reading, legend.element, asked, foot(a)],
  );
}

const boxed = { class: "chart", tabindex: "0", role: "img" };

const spoken = (a: Allocator): string =>
  `Memory of device ${a.device} over ${count(a.events)} events. ` +
  "Plus and minus zoom, 0 shows everything.";

/** What was held after an event, in words. */
function saidOf(a: Allocator, bands: Band[], i: number): string {
  const t = a.timeline!,
    when = t.time_ns ? ` · ${duration(t.time_ns[i]!)} after the first` : "",
    held = a.filter ? " that match," : " allocated";
  return (
    `after event ${count(Math.max(0, t.events[i]!))}${when} · ` +
    `${bytes(total(bands, i))}${held}${reserved(t, i)}`
  );
}

/** The bands with what each has; a click selects one in every panel. */
function legendOf(page: PageStore, field: () => "category" | "line") {
  const element = h("div", { class: "legend" });
  let bands: Band[] = [],
    entries: { button: HTMLElement; figure: HTMLElement }[] = [];
  const mark = () =>
    entries.forEach(({ button }, n) => {
      const alone = page.get()[field()],
        is = alone === bands[n]!.name;
      button.setAttribute("aria-pressed", String(is));
      button.classList.toggle("picked", is);
      button.classList.toggle("dim", alone !== "" && !is);
    });
  const fill = (fresh: Band[]) => {
    bands = fresh;
    entries = bands.map((b, n) => {
      const figure = h("b"),
        button = h(
          "button",
          { type: "button", title: `Select this ${field()} in every panel` },
          h("i", { style: `background:var(--${bandInk(b.name, n)})` }),
          b.name,
          figure,
        );
      button.addEventListener("click", () => {
        if (!b.name.startsWith("all other")) toggle(page, { [field()]: b.name });
      });
      return { button, figure };
    });
    element.replaceChildren(...entries.map((e) => e.button));
    mark();
  };
  const say = (held: number[]) =>
    entries.forEach(({ figure }, n) => {
      figure.textContent = bytes(held[n]!);
    });
  return { element, fill, mark, say };
}

/** The command that has the events of a window in full. */
function inFull(a: Allocator, [from, to]: Window): (string | HTMLElement)[] {
  const range = `${Math.max(0, Math.round(from))}:${Math.round(to)}`;
  const again = commandLine([
    "hightide",
    "explain",
    a.file,
    ...(a.filter ? ["--filter", a.filter] : []),
    "--range",
    range,
    "--html",
    "range.html",
  ]);
  return [
    "All of these events in full: ",
    copier(again, { class: "command" }, h("code", {}, again)),
  ];
}

/** Plus and minus zoom, the arrows pan, 0 shows everything. */
function keyed(box: HTMLElement, now: Looking, whole: Window, look: (to: Window) => void): void {
  const zoomBy = (factor: number) => {
    const [from, to] = now.window,
      middle = (from + to) / 2,
      half = ((to - from) / 2) * factor;
    look(inside([middle - half, middle + half], whole, Math.max(4, (whole[1] - whole[0]) / 2000)));
  };
  const pan = (share: number) => {
    const [from, to] = now.window,
      by = (to - from) * share;
    look(inside([from + by, to + by], whole, 4));
  };
  const keys: Record<string, () => void> = {
    "+": () => zoomBy(0.5),
    "=": () => zoomBy(0.5),
    "-": () => zoomBy(2),
    "0": () => look(whole),
    ArrowLeft: () => pan(-1 / 5),
    ArrowRight: () => pan(1 / 5),
  };
  box.addEventListener("keydown", (e) => {
    if (!keys[e.key]) return;
    keys[e.key]!();
    e.preventDefault();
  });
}

/** What the strip of phases means, and how many steps there are. */
function foot(a: Allocator): HTMLElement {
  const phases = lanes(a).length
    ? ["forward", "backward", "optimizer"].map((n) =>
        h("span", {}, h("i", { style: `background:var(--phase-${n})` }), n),
      )
    : [];
  return h(
    "p",
    { class: "phases" },
    ...phases,
    phases.length ? h("span", {}, "inferred from the stacks that allocate") : null,
    steps(a) ? h("span", {}, steps(a)!) : null,
  );
}

/** What the allocator held beside; a profiler's trace does not know all of it. */
function reserved(t: NonNullable<Allocator["timeline"]>, i: number): string {
  const held = t.reserved_bytes?.[i],
    cached = t.releasable_bytes?.[i];
  return (
    (typeof held === "number" ? ` of ${bytes(held)} reserved` : "") +
    (!cached ? "" : ` · near it, empty_cache would give back at most ${bytes(cached)}`)
  );
}

/** What a device is called at the beginning of a sentence. */
function titled({ name, device }: Allocator): string {
  return name ? name[0]!.toUpperCase() + name.slice(1) : `Device ${device}`;
}

function steps({ steps: s }: Allocator): string | null {
  if (!s || !s.steps.length) return null;
  const source =
    s.source === "inferred"
      ? "inferred from what repeats"
      : s.source === "recorded"
        ? "as recorded"
        : "as annotated";
  return `${s.steps.length} steps, ${source}`;
}

/** What stays lies at the bottom, what comes and goes above it. */
const rank = (category: string) => (categories as readonly string[]).indexOf(category) + 1 || 99;

const total = (bands: Band[], i: number) => bands.reduce((sum, b) => sum + b.bytes[i]!, 0);

/** The column of a window in which most is allocated. */
function highest(
  bands: Band[],
  events: number[],
  [from, to]: Window,
): { index: number; bytes: number } {
  let best = { index: 0, bytes: -1 };
  events.forEach((e, index) => {
    const sum = e >= from && e <= to ? total(bands, index) : -1;
    if (sum > best.bytes) best = { index, bytes: sum };
  });
  return best;
}

/** The phases along the events. */
function lanes(a: Allocator): Lane[] {
  const stays = (a.steps?.phases ?? []).map((p) => ({
    phase: p.phase,
    from: p.from_event,
    to: p.to_event + 1,
  }));
  return stays.length ? [{ name: "phases", stays }] : [];
}

/** What the picture tells, and is told. */
interface Hand {
  at(): number | null;
  goTo(at: number): void;
  say(i: number | null): void;
  look(w: Window): void;
}

function made(
  a: Allocator,
  now: Looking,
  alone: string,
  summit: number,
  whole: Window,
  { at, goTo, say, look }: Hand,
) {
  const colour = theme(),
    t = a.timeline!;
  const sums: number[][] = [];
  now.bands.forEach((b, n) => sums.push(b.bytes.map((v, i) => v + (sums[n - 1]?.[i] ?? 0))));
  const peak = total(now.bands, summit);
  const oom: Line[] = a.oom_event !== undefined ? [{ x: a.oom_event, kind: "oom" }] : [];
  const options: Omit<uPlot.Options, "width" | "height"> = {
    padding: [16, 26, 0, 0],
    cursor: {
      drag: { x: true, y: false, setScale: false },
      points: { show: false },
      y: false,
      bind: {
        dblclick: () => () => {
          look(whole);
          return null;
        },
      },
    },
    scales: {
      x: { time: false, auto: false, min: now.window[0], max: now.window[1] },
      y: { range: (_, low, high) => fromZero(low, high) },
    },
    axes: [
      axis({
        values: (_, ticks) => ticks.map((v) => (Number.isInteger(v) && v >= 0 ? count(v) : "")),
        space: 84,
        size: 30 + stripHeight(lanes(a)),
        gap: 7 + stripHeight(lanes(a)),
      }),
      byteAxis(),
    ],
    series: seriesOf(now.bands, alone),
    legend: { show: false },
    plugins: [
      strip(lanes(a)),
      marks(oom, {
        x: t.events[summit]!,
        y: peak,
        text: a.filter ? `at most ${bytes(peak)} that match` : `peak ${bytes(peak)}`,
        colour: colour("text"),
      }),
    ],
    hooks: hooksOf(whole, { at, goTo, say, look }),
  };
  return {
    options,
    data: [
      t.events,
      t.reserved_bytes ?? t.events.map(() => null),
      ...sums.reverse(),
    ] as uPlot.AlignedData,
  };
}

/** The bands, of which one may be alone; what was reserved lies over them. */
function seriesOf(bands: Band[], alone: string): uPlot.Series[] {
  const colour = theme();
  return [
    {},
    { label: "reserved", stroke: colour("muted"), width: 1.25, dash: [5, 4] },
    ...bands
      .map((b, n): uPlot.Series => ({
        label: b.name,
        stroke: colour("panel"),
        width: 0.5,
        fill:
          alone && b.name !== alone
            ? faint(colour(bandInk(b.name, n)), 0.22)
            : colour(bandInk(b.name, n)),
        points: { show: false },
      }))
      .reverse(),
  ];
}

function hooksOf(whole: Window, { at, goTo, say, look }: Hand): uPlot.Hooks.Arrays {
  const colour = theme();
  return {
    setSelect: [
      (u) => {
        if (u.select.width < 4) return;
        const from = u.posToVal(u.select.left, "x"),
          to = u.posToVal(u.select.left + u.select.width, "x");
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        look(inside([from, to], whole, Math.max(4, (whole[1] - whole[0]) / 2000)));
      },
    ],
    setCursor: [(u) => say(u.cursor.idx ?? null)],
    ready: [
      (u) =>
        u.over.addEventListener("click", (e) => {
          if (u.select.width < 4) goTo(Math.round(u.posToVal(e.offsetX, "x")) + 1);
        }),
    ],
    draw: [
      (u) => {
        const moment = at(),
          x = moment === null ? NaN : u.valToPos(eventOf(moment), "x", true);
        if (!(x >= u.bbox.left && x <= u.bbox.left + u.bbox.width)) return;
        u.ctx.strokeStyle = colour("accent");
        u.ctx.lineWidth = 1.5 * devicePixelRatio;
        u.ctx.beginPath();
        u.ctx.moveTo(x, u.bbox.top);
        u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
        u.ctx.stroke();
      },
    ],
  };
}
