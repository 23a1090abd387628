import uPlot from "uplot";
import type { Report, Series } from "../api";
import { axis, chart } from "../draw/chart";
import { phaseNames, phaseStrip, stripHeight } from "../draw/phases";
import { align } from "../lib/columns";
import { h, theme } from "../lib/dom";
import { bytes, duration } from "../lib/format";

const leading = ["tree.pss", "tree.rss", "torch.allocated", "torch.reserved", "device.used", "heap.live"];

/** Memory over time, phases below it; drag to zoom, double-click to see all, click a name to hide it. */
export function timeline(report: Report): HTMLElement | null {
  const curves = report.series.filter((s) => s.unit === "bytes" && s.x.length > 1);
  if (curves.length === 0) return null;
  const main = report.headline.peak.process ?? report.processes[0]?.id ?? 0;
  const visible = (s: Series) => leading.includes(s.name) && (s.process === 0 || s.process === main);
  const ordered = [...curves.filter(visible), ...curves.filter((s) => !visible(s))].slice(0, 14);
  const { x, ys } = align(ordered);
  const box = h("div", { class: "chart", role: "img", "aria-label": `Memory over ${duration(report.headline.duration_ns)}` });
  const bars = report.phases.filter((b) => b.process === main || main === 0);
  const marks = report.marks.filter((m) => ["oom", "alert", "kill", "snapshot", "signal"].includes(m.kind));
  const make = () => {
    const colour = theme();
    return {
      data: [x.map((t) => t / 1e9), ...ys] as uPlot.AlignedData,
      options: {
        cursor: { drag: { x: true, y: false } },
        scales: { x: { time: false }, y: { range: (_: uPlot, __: number, max: number): [number, number] => [-0.07 * max, max * 1.06 || 1] } },
        axes: [axis({ values: (_, v) => v.map((s) => duration(s * 1e9)), space: 90 }),
          axis({ values: (_, v) => v.map((b) => b < 0 ? "" : bytes(b)), size: 76, incrs: powers })],
        series: [{ label: "time", value: (_: uPlot, v: number | null) => v === null ? "–" : duration(v * 1e9) },
          ...ordered.map((s, i): uPlot.Series => ({
            label: s.title, stroke: colour(`curve-${i % 8}`), width: i === 0 ? 2 : 1.5, show: visible(s), spanGaps: true,
            ...(i === 0 ? { fill: colour("curve-fill") } : {}),
            points: { show: false }, value: (_, v) => v === null ? "–" : bytes(v),
          }))],
        plugins: [phaseStrip(bars, marks)],
        legend: { live: true },
      } satisfies Omit<uPlot.Options, "width" | "height">,
    };
  };
  const section = h("section", { id: "timeline" }, h("h2", {}, "Memory over time"), box, phaseLegend(bars.map((b) => b.phase)),
    h("p", { class: "hint" }, "Drag to zoom, double-click to see everything, click a name to show or hide it."));
  queueMicrotask(() => chart(box, 340 + stripHeight, make));
  return section;
}

const powers = Array.from({ length: 44 }, (_, i) => 2 ** i);

function phaseLegend(present: string[]): HTMLElement | null {
  const names = phaseNames.filter((n) => present.includes(n));
  if (names.length === 0) return null;
  return h("p", { class: "phases" }, ...names.map((n) => h("span", {}, h("i", { style: `background:var(--phase-${n})` }), n)));
}
