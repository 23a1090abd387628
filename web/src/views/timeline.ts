import uPlot from "uplot";
import type { Mark, PhaseBar, Report } from "../api";
import { byteAxis, chart, fade, timeAxis, type Chart } from "../draw/chart";
import { marks, severe } from "../draw/marks";
import { strip, stripHeight, type Lane } from "../draw/strip";
import { theme } from "../draw/theme";
import { align, highest, valueAt } from "../lib/columns";
import { bytes, count, duration } from "../lib/format";
import { exclusive, phaseNames, stripped, type Stay } from "../lib/phases";
import { fromZero, inside } from "../lib/scales";
import { curves, type Curve } from "../state/curves";
import { choices, leader, processName, span } from "../state/report";
import type { PageStore } from "../state/store";
import { h, section } from "./dom";

const mostLanes = 8, height = 330;

/** Memory over time, the phases below it; drag to zoom, click a name to show or hide it. */
export function timeline(report: Report, page: PageStore): HTMLElement | null {
  if (!report.series.some((s) => s.unit === "bytes" && s.x_unit === "ns" && s.x.length > 0)) return null;
  const whole = span(report);
  const box = h("div", { class: "chart", tabindex: "0", role: "img", "aria-keyshortcuts": "ArrowLeft ArrowRight + - 0",
    "aria-label": `Memory over ${duration(whole[1])}. Arrow keys move, plus and minus zoom, 0 shows everything.` });
  const reading = h("p", { class: "reading" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Curves" });
  const phases = h("p", { class: "phases" });
  const back = h("button", { type: "button", class: "plain" }, "Show the whole run");
  back.addEventListener("click", () => page.set({ window: null }));
  let now = picture(report, page), drawn: Chart | null = null;
  const show = () => {
    now = picture(report, page);
    drawn?.redraw();
    phases.replaceChildren(...now.present.map((n) => h("span", {}, h("i", { style: `background:var(--phase-${n})` }), n)));
    fillChips(chips, now.curves, page);
  };
  keys(box, page, whole);
  queueMicrotask(() => {
    drawn = chart(box, height + stripHeight(now.lanes), () => made(now, report, page, whole));
    page.follow(["process", "shown"], show);
    page.follow(["window"], ({ window }) => { back.hidden = window === null; zoom(drawn?.plot(), window ?? whole); });
    page.follow(["cursor", "process", "shown"], ({ cursor }) => read(cursor, now, reading, chips, whole));
  });
  return section("timeline", "Memory over time", h("div", { class: "tools" }, chooser(report, page), back), chips, reading, box, phases,
    events(report.marks, page, whole), h("p", { class: "hint" }, "Drag to zoom, double-click for the whole run, click a name to show or hide its curve."));
}

interface Picture { curves: Curve[]; lanes: Lane[]; present: string[]; bars: PhaseBar[]; summit: { x: number; y: number; curve: Curve } | null; even: boolean }

const inSeconds = ({ phase, start_ns, end_ns }: PhaseBar): Stay => ({ phase, from: start_ns / 1e9, to: end_ns / 1e9 });

/** What the chosen process has to show. */
function picture(report: Report, page: PageStore): Picture {
  const { process } = page.get(), lead = leader(report, process);
  const found = curves(report, process), first = found[0];
  const top = first && highest(first);
  const bars = stripped(report.phases);
  const owners = [...new Set(bars.map((b) => b.process))].sort((a, b) => a - b);
  const lanes = (process === 0 ? owners.slice(0, mostLanes) : [process]).flatMap((id): Lane[] => {
    const stays = exclusive(bars.filter((b) => b.process === id).map(inSeconds)), p = report.processes.find((o) => o.id === id);
    return stays.length ? [{ name: process === 0 && owners.length > 1 ? (p?.rank !== undefined ? `rank ${p.rank}` : p ? `pid ${p.pid}` : "–") : "phases", stays }] : [];
  });
  const present = phaseNames.filter((n) => lanes.some((l) => l.stays.some((s) => s.phase === n)));
  return { curves: found, lanes, present, bars: bars.filter((b) => b.process === lead), summit: first && top ? { ...top, curve: first } : null,
    even: found.length > 1 && found[0]!.name === found[1]!.name }; // many of a kind: none of them leads
}

export const isShown = (curve: Curve, page: PageStore) => page.get().shown[curve.key] ?? curve.on;

function made(now: Picture, report: Report, page: PageStore, whole: [number, number]) {
  const colour = theme();
  const { x, ys } = align(now.curves);
  const window = page.get().window ?? whole;
  const events = report.marks.filter((m) => m.kind !== "peak").map((m) => ({ x: m.time_ns / 1e9, kind: m.kind }));
  const summit = now.summit && isShown(now.summit.curve, page)
    ? { x: now.summit.x / 1e9, y: now.summit.y, text: `peak ${bytes(now.summit.y)}`, colour: colour(now.summit.curve.colour) } : null;
  const options: Omit<uPlot.Options, "width" | "height"> = {
    padding: [14, 26, 0, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "time", setSeries: false }, points: { size: 7 }, y: false,
      bind: { dblclick: () => () => { page.set({ window: null }); return null; } } },
    scales: { x: { time: false, auto: false, min: window[0] / 1e9, max: window[1] / 1e9 }, y: { range: (_, low, high) => fromZero(low, high) } },
    axes: [timeAxis(stripHeight(now.lanes)), byteAxis()],
    series: [{}, ...now.curves.map((c, i): uPlot.Series => ({
      label: c.title, stroke: colour(c.colour), width: c.limit ? 1.25 : i === 0 ? 2 : 1.5, show: isShown(c, page), spanGaps: true,
      ...(c.dash ? { dash: [6, 5] } : {}), ...(i === 0 && !now.even ? { fill: fade(colour(c.colour), 0.26, 0.03) } : {}),
      points: { show: c.x.length < 12 && !c.limit, size: 6, fill: colour(c.colour) },
    }))],
    legend: { show: false },
    plugins: [strip(now.lanes), marks(events, summit)],
    hooks: {
      setSelect: [(u) => {
        if (u.select.width < 4) return;
        const from = u.posToVal(u.select.left, "x") * 1e9, to = u.posToVal(u.select.left + u.select.width, "x") * 1e9;
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        page.set({ window: inside([from, to], whole, whole[1] * 1e-5) });
      }],
      setCursor: [(u) => page.set({ cursor: u.cursor.left !== undefined && u.cursor.left !== null && u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") * 1e9 : null })],
    },
  };
  return { options, data: [x.map((t) => t / 1e9), ...ys] as uPlot.AlignedData };
}

const zoom = (plot: uPlot | null | undefined, [from, to]: [number, number]) => plot?.setScale("x", { min: from / 1e9, max: to / 1e9 });

/** Whose memory is shown; nothing to choose where there is one process. */
export function chooser(report: Report, page: PageStore): HTMLElement | null {
  const some = choices(report);
  if (some.length < 2) return null;
  const select = h("select", { "aria-label": "Process" }, h("option", { value: "0" }, `all processes (${report.processes.length})`),
    ...some.map((p) => h("option", { value: String(p.id) }, processName(p, report.processes))));
  select.addEventListener("change", () => page.set({ process: Number(select.value) }));
  page.follow(["process"], ({ process }) => { select.value = String(process); });
  return h("label", { class: "choose" }, "Process ", select);
}

function fillChips(chips: HTMLElement, found: Curve[], page: PageStore): void {
  chips.replaceChildren(...found.map((c) => {
    const on = isShown(c, page);
    const chip = h("button", { type: "button", class: `chip ${c.dash ? "dash" : ""}`, "aria-pressed": String(on), title: c.note, style: `--ink:var(--${c.colour})` },
      h("i"), h("span", {}, c.title), h("b"));
    chip.addEventListener("click", () => {
      page.set({ shown: { ...page.get().shown, [c.key]: !on } });
      chips.querySelectorAll<HTMLElement>(".chip")[found.indexOf(c)]?.focus();
    });
    return chip;
  }));
}

/** The figures at the cursor; without one, at each curve's own highest. */
function read(cursor: number | null, now: Picture, reading: HTMLElement, chips: HTMLElement, whole: [number, number]): void {
  chips.querySelectorAll("b").forEach((value, i) => {
    const curve = now.curves[i];
    const v = curve && (cursor === null ? highest(curve)?.y ?? null : valueAt(curve, cursor));
    value.textContent = v === null || v === undefined ? "–" : bytes(v);
  });
  if (cursor === null) {
    reading.textContent = now.curves.some((c) => !c.limit) ? "These are the highest values; point at the picture to see those of a moment." : "";
    return;
  }
  const inner = now.bars.filter((b) => b.start_ns <= cursor && b.end_ns >= cursor).at(-1);
  const near = inner ?? now.bars.filter((b) => b.start_ns <= cursor).at(-1);
  reading.textContent = [`at ${duration(Math.min(Math.max(cursor, 0), whole[1]))}`, near && (near.phase === "evaluation" ? `after step ${count(near.step)}` : `step ${count(near.step + 1)}`), inner?.phase].filter(Boolean).join(" · ");
}

/** The events as a list too: a picture cannot be searched or read out. */
function events(all: Mark[], page: PageStore, whole: [number, number]): HTMLElement | null {
  const some = all.filter((m) => m.kind !== "peak");
  if (some.length === 0) return null;
  const item = (m: Mark) => {
    const go = h("button", { type: "button", class: "plain", title: "Show this moment" }, duration(m.time_ns));
    go.addEventListener("click", () => page.set({ window: inside([m.time_ns - whole[1] / 20, m.time_ns + whole[1] / 20], whole, 1) }));
    return h("li", {}, go, " ", h("b", { class: severe.includes(m.kind) ? "critical" : "warning" }, m.kind), m.text && m.text !== m.kind ? ` ${m.text}` : null);
  };
  return h("details", { class: "events", ...(some.length <= 4 ? { open: "" } : {}) }, h("summary", {}, some.length === 1 ? "1 event" : `${some.length} events`), h("ol", {}, ...some.map(item)));
}

/** Arrow keys move, plus and minus zoom, 0 shows everything. */
function keys(box: HTMLElement, page: PageStore, whole: [number, number]): void {
  box.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const [from, to] = page.get().window ?? whole, width = to - from, middle = page.get().cursor ?? (from + to) / 2;
    const moves: Record<string, [number, number] | null> = {
      ArrowLeft: [from - width / 5, to - width / 5], ArrowRight: [from + width / 5, to + width / 5],
      "+": [middle - (middle - from) / 2, middle + (to - middle) / 2], "-": [middle - (middle - from) * 2, middle + (to - middle) * 2], "0": null, Escape: null,
    };
    const next = moves[e.key === "=" ? "+" : e.key];
    if (next === undefined) return;
    e.preventDefault();
    const held = next && inside(next, whole, whole[1] * 1e-5);
    page.set({ window: held && held[1] - held[0] < whole[1] * 0.9999 ? held : null });
  });
}
