import uPlot from "uplot";
import type { Report, Series } from "../api";
import { axis, chart, timeAxis } from "../draw/chart";
import { theme } from "../draw/theme";
import { align, rate, type Columns } from "../lib/columns";
import { quantity } from "../lib/format";
import { fromZero } from "../lib/scales";
import { fullTitle, span } from "../state/report";
import type { PageStore } from "../state/store";
import { h, section } from "./dom";

const mostCurves = 8, height = 120;

/** Everything over time that is not memory: use of the device, temperature, power, faults. Same time, same cursor. */
export function others(report: Report, page: PageStore): HTMLElement | null {
  const all = report.series.filter((s) => s.unit !== "bytes" && s.x_unit === "ns" && s.x.length > 2 && s.y.some((v) => v !== s.y[0]));
  const names = [...new Set(all.map((s) => s.name))];
  if (names.length === 0) return null;
  return section("others", "Beside memory: processor, faults and other counters", ...names.map((name) => small(all.filter((s) => s.name === name).slice(0, mostCurves), report, page)));
}

const isCounter = (s: Series) => s.unit === "count" && s.y.every((v, i) => i === 0 || v >= s.y[i - 1]!);

function small(series: Series[], report: Report, page: PageStore): HTMLElement {
  const counter = series.every(isCounter), unit = series[0]!.unit, whole = span(report);
  const columns: Columns[] = series.map((s) => counter ? rate(s) : s);
  const show = (v: number) => counter ? `${Number(v.toPrecision(3))} /s` : quantity(Math.round(v), unit);
  const box = h("div", { class: "chart", role: "img", "aria-label": series.map(fullTitle).join(", ") });
  const make = () => {
    const colour = theme(), { x, ys } = align(columns);
    const window = page.get().window ?? whole;
    const options: Omit<uPlot.Options, "width" | "height"> = {
      padding: [8, 26, 0, 0], legend: { show: false }, cursor: { y: false, sync: { key: "time", setSeries: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, auto: false, min: window[0] / 1e9, max: window[1] / 1e9 }, y: { range: (_, low, high) => fromZero(low, high) } },
      axes: [timeAxis(), axis({ values: (_, ticks) => ticks.map(show), size: 72, gap: 8, space: 36 })],
      series: [{}, ...series.map((_, i): uPlot.Series => ({ stroke: colour(`curve-${i % 8}`), width: 1.25, spanGaps: true, points: { show: false } }))],
    };
    return { options, data: [x.map((t) => t / 1e9), ...ys] as uPlot.AlignedData };
  };
  queueMicrotask(() => {
    const drawn = chart(box, height, make);
    page.follow(["window"], ({ window }) => { const [from, to] = window ?? whole; drawn.plot()?.setScale("x", { min: from / 1e9, max: to / 1e9 }); });
  });
  const title = series.length === 1 ? series[0]!.title : series[0]!.title.replace(/( on |, ).*$/, "");
  return h("figure", {}, h("figcaption", {}, title, counter && " per second",
    series.length > 1 && h("span", { class: "phases" }, ...series.map((s, i) => h("span", {}, h("i", { style: `background:var(--curve-${i % 8})` }), s.title.replace(/^.*?( on |, )/, ""))))), box);
}
