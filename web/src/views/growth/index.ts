import uPlot from "uplot";
import type { Report, StepPoint } from "../../api";
import { axis, byteAxis, chart } from "../../draw/chart";
import { faint, theme } from "../../draw/theme";
import { line } from "../../lib/columns";
import { bytes, count } from "../../lib/format";
import { fromZero } from "../../lib/scales";
import { choices, leader, processName } from "../../state/report";
import { toggle } from "../../state/selection";
import type { Page, PageStore } from "../../state/page";
import { h, section } from "../dom";

interface Figure {
  title: string;
  colour: string;
  get: (s: StepPoint) => number | undefined;
}

const figures: Figure[] = [
  { title: "allocated on the device", colour: "allocated", get: (s) => s.device_bytes },
  { title: "live heap (sampled)", colour: "heap", get: (s) => s.heap_bytes },
  { title: "resident (RSS)", colour: "rss", get: (s) => s.rss_bytes },
  { title: "resident, without mapped files", colour: "uss", get: (s) => s.kept_bytes },
];
const least = 8; // steps, for a picture that says something

/**
 * Memory at the end of each step against the step, with the line through it: what a leak looks
 * like.
 */
export function growth(report: Report, page: PageStore): HTMLElement | null {
  if (!report.processes.some((p) => shown(report, p.id).some((f) => f.points.length >= least)))
    return null;
  const box = h("div", { class: "chart", role: "img" }),
    legend = h("p", { class: "phases" }),
    whose = h("span", { class: "hint" }),
    of = () => leader(report, page.get().process);
  const describe = () => {
    const some = shown(report, of()),
      p = report.processes.find((o) => o.id === of()),
      every = page.get().process === 0 && report.processes.length > 1;
    whose.textContent = every && p ? processName(p, report.processes) : "";
    legend.replaceChildren(
      ...some.map(({ figure, fit, label }) =>
        h(
          "span",
          {},
          h("i", { style: `background:var(--${figure.colour})` }),
          figure.title,
          fit && h("b", {}, ` ${label}`),
        ),
      ),
    );
    const figures = some.map((s) => `${s.figure.title} ${s.label}`).join(", ");
    box.setAttribute("aria-label", `Memory at the end of each step: ${figures}`);
  };
  queueMicrotask(() => {
    const drawn = chart(box, 270, () => plotted(report, page, of()));
    page.follow(["process"], () => {
      describe();
      drawn.redraw();
    });
    page.follow(["at", "range"], () => drawn.plot()?.redraw(false));
  });
  return section(
    "growth",
    "Memory at the end of each step",
    h("div", { class: "tools" }, chooser(report, page), legend, whose),
    box,
    h(
      "p",
      { class: "hint" },
      "Lines are least-squares fits of every step after the first fifth, the warm-up. " +
        "A finding needs more than a slope: memory that is kept, and grows steadily.",
    ),
  );
}

/** The chart of a process: dots for the steps of each figure, and the line through them. */
function plotted(report: Report, page: PageStore, process: number) {
  const colour = theme(),
    some = shown(report, process),
    own = report.steps.filter((s) => s.process === process);
  const x = [...new Set(some.flatMap((f) => f.points.map((p) => p[0])))].sort((a, b) => a - b);
  const series: uPlot.Series[] = [{}],
    data: (number | null)[][] = [x];
  for (const { figure, points, fit } of some) {
    const at = new Map(points),
      ink = colour(figure.colour);
    series.push({
      stroke: faint(ink, 0.75),
      width: 0,
      paths: () => null,
      points: { show: true, size: points.length > 400 ? 3 : 5, width: 0, fill: faint(ink, 0.55) },
    });
    data.push(x.map((s) => at.get(s) ?? null));
    if (fit) {
      series.push({ stroke: ink, width: 2, points: { show: false } });
      data.push(x.map((s) => (s >= fit.from ? fit.at(s) : null)));
    }
  }
  const options: Omit<uPlot.Options, "width" | "height"> = {
    padding: [10, 26, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, y: false, points: { show: false } },
    scales: { x: { time: false }, y: { range: (_, low, high) => fromZero(low, high) } },
    axes: [
      axis({
        values: (_, ticks) => ticks.map((t) => (Number.isInteger(t) ? count(t) : "")),
        space: 64,
        gap: 7,
        size: 30,
        label: "optimizer steps completed",
        labelSize: 18,
        labelFont: "12px system-ui, sans-serif",
      }),
      byteAxis(),
    ],
    series,
    hooks: {
      draw: [(u) => selected(u, own, page.get())],
      ready: [(u) => u.over.addEventListener("click", (e) => choose(u, own, e, page))],
    },
  };
  return { options, data: data as uPlot.AlignedData };
}

/** A click chooses the moment of the nearest step. */
function choose(u: uPlot, steps: StepPoint[], e: MouseEvent, page: PageStore): void {
  if (u.select.width > 0) return; // it ends a drag, which zooms
  const wanted = u.posToVal(e.offsetX, "x"),
    away = (s: StepPoint) => Math.abs(s.step - wanted);
  const near = steps.reduce<StepPoint | null>((a, s) => (a && away(a) <= away(s) ? a : s), null);
  if (near) toggle(page, { at: near.time_ns });
}

/**
 * The moment and the stretch that are selected, in steps: that in which the moment lies, and those
 * that ended in the stretch.
 */
function selected(u: uPlot, steps: StepPoint[], { at, range }: Page): void {
  const { ctx } = u,
    { left, top, width, height } = u.bbox,
    colour = theme(),
    x = (step: number) => Math.min(Math.max(u.valToPos(step, "x", true), left), left + width);
  const inside = range ? steps.filter((s) => s.time_ns >= range[0] && s.time_ns <= range[1]) : [],
    step = at === null ? undefined : steps.find((s) => s.time_ns >= at);
  ctx.save();
  if (inside.length) {
    ctx.fillStyle = faint(colour("accent"), 0.15);
    ctx.fillRect(
      x(inside[0]!.step - 0.5),
      top,
      Math.max(x(inside.at(-1)!.step + 0.5) - x(inside[0]!.step - 0.5), 1),
      height,
    );
  }
  if (step) {
    ctx.strokeStyle = colour("accent");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x(step.step), top);
    ctx.lineTo(x(step.step), top + height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Whose steps are shown; nothing to choose where there is one process. */
function chooser(report: Report, page: PageStore): HTMLElement | null {
  const some = choices(report);
  if (some.length < 2) return null;
  const select = h(
    "select",
    { "aria-label": "Process" },
    h("option", { value: "0" }, `all processes (${report.processes.length})`),
    ...some.map((p) => h("option", { value: String(p.id) }, processName(p, report.processes))),
  );
  select.addEventListener("change", () => page.set({ process: Number(select.value) }));
  page.follow(["process"], ({ process }) => {
    select.value = String(process);
  });
  return h("label", { class: "choose" }, "Process ", select);
}

/** The figures that a process has at the end of its steps, each with the line through them. */
function shown(report: Report, process: number) {
  const steps = report.steps.filter((s) => s.process === process);
  return figures.flatMap((figure) => {
    const points = steps.flatMap((s): [number, number][] => {
      const v = figure.get(s);
      return v === undefined ? [] : [[s.step, v]];
    });
    if (points.length < 2 || points.every((p) => p[1] === 0)) return [];
    const fit = line(points);
    return [{ figure, points, fit, label: fit ? slope(fit, points) : "" }];
  });
}

/** A line that changes the memory by less than a hundredth over all steps is level. */
function slope(fit: { slope: number }, points: [number, number][]): string {
  const steps = points[points.length - 1]![0] - points[0]![0],
    most = Math.max(...points.map((p) => p[1]));
  return Math.abs(fit.slope) * steps < most / 100
    ? "level"
    : `${fit.slope > 0 ? "+" : ""}${bytes(Math.round(fit.slope))} per step`;
}
