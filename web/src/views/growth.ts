import uPlot from "uplot";
import type { Report, StepPoint } from "../api";
import { axis, chart } from "../draw/chart";
import { line } from "../lib/columns";
import { h, theme } from "../lib/dom";
import { bytes, count } from "../lib/format";

const figures: [string, string, (s: StepPoint) => number | undefined][] = [
  ["device", "allocated on the device", (s) => s.device_bytes], ["heap", "live heap (sampled)", (s) => s.heap_bytes], ["rss", "resident (RSS)", (s) => s.rss_bytes],
];

/** Memory at the end of each step against the step, with the line through it: what a leak looks like. */
export function growth(report: Report): HTMLElement | null {
  const main = report.steps.reduce<Record<number, number>>((n, s) => ({ ...n, [s.process]: (n[s.process] ?? 0) + 1 }), {});
  const process = Number(Object.entries(main).sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0);
  const steps = report.steps.filter((s) => s.process === process);
  const shown = figures.filter(([, , get]) => steps.filter((s) => get(s) !== undefined && get(s)! > 0).length > 3);
  if (steps.length < 8 || shown.length === 0) return null;
  const box = h("div", { class: "chart", role: "img", "aria-label": "Memory at the end of each step" });
  const x = steps.map((s) => s.step);
  const fits = shown.map(([, , get]) => line(steps.flatMap((s) => get(s) === undefined ? [] : [[s.step, get(s)!] as [number, number]])));
  const make = () => {
    const colour = theme();
    const series: uPlot.Series[] = [{ label: "step", value: (_, v) => v === null ? "–" : count(v) }];
    const data: (number | null)[][] = [x];
    shown.forEach(([, title, get], i) => {
      series.push({ label: title, stroke: colour(`curve-${i}`), width: 0, paths: () => null, points: { show: true, size: 4, fill: colour(`curve-${i}`) }, value: (_, v) => v === null ? "–" : bytes(v) });
      data.push(steps.map((s) => get(s) ?? null));
      const fit = fits[i];
      if (fit) {
        series.push({ label: `${bytes(fit.slope)} per step`, stroke: colour(`curve-${i}`), width: 1.5, dash: [6, 4], points: { show: false }, value: (_, v) => v === null ? "–" : bytes(v) });
        data.push(x.map(fit.at));
      }
    });
    return { data: data as uPlot.AlignedData, options: { cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false } }, axes: [axis({ values: (_: uPlot, v: number[]) => v.map(count) }),
        axis({ values: (_: uPlot, v: number[]) => v.map(bytes), size: 76, incrs: Array.from({ length: 44 }, (_, i) => 2 ** i) })], series } };
  };
  queueMicrotask(() => chart(box, 260, make));
  return h("section", { id: "growth" }, h("h2", {}, "Memory at the end of each step"), box);
}
