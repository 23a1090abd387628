import uPlot from "uplot";
import type { Report, Series } from "../../api";
import { axis, byteAxis, chart, fade } from "../../draw/chart";
import { theme } from "../../draw/theme";
import { bytes, count } from "../../lib/format";
import { fromZero } from "../../lib/scales";
import { h, section } from "../dom";

/** Of a model's file: what is alive while each operator of its graph runs. */
export function operators(report: Report): HTMLElement | null {
  const live = report.series.find((s) => s.name === "graph.live");
  if (!live || live.x.length < 2) return null;
  const box = h("div", { class: "chart", role: "img", "aria-label": said(live, highest(live)) }),
    reading = h("p", { class: "reading", role: "status" }),
    say = (at: number | null | undefined) => {
      reading.textContent = said(live, at ?? highest(live));
    };
  say(null);
  queueMicrotask(() => chart(box, 240, () => plotted(live, say)));
  return section("operators", "Memory of the graph, operator by operator", box, reading);
}

const highest = (s: Series): number => s.y.indexOf(Math.max(...s.y));

const said = (s: Series, at: number): string =>
  `while operator ${count(s.x[at]! + 1)} of ${count(s.x.length)} runs: ${bytes(s.y[at]!)} alive` +
  `${at === highest(s) ? ", the most" : ""} (${s.label})`;

/** Steps: each operator from its number to the next. */
function plotted(s: Series, say: (at: number | null | undefined) => void) {
  const ink = theme()("allocated"),
    stepped = uPlot.paths.stepped!({ align: 1 });
  const options: Omit<uPlot.Options, "width" | "height"> = {
    padding: [10, 26, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, y: false, points: { show: false } },
    scales: { x: { time: false }, y: { range: (_, low, high) => fromZero(low, high) } },
    axes: [
      axis({
        values: (_, ticks) =>
          ticks.map((t) => (Number.isInteger(t) && t <= s.x.length ? count(t) : "")),
        space: 64,
        gap: 7,
        size: 30,
        label: "operator",
        labelSize: 18,
        labelFont: "12px system-ui, sans-serif",
      }),
      byteAxis(),
    ],
    series: [
      {},
      {
        stroke: ink,
        width: 1.5,
        fill: fade(ink, 0.35, 0.08),
        paths: stepped,
        points: { show: false },
      },
    ],
    hooks: {
      setCursor: [
        (u) => {
          const under = u.cursor.left ?? -1;
          const at = under < 0 ? null : Math.floor(u.posToVal(under, "x")) - 1;
          say(at === null ? null : Math.min(Math.max(at, 0), s.x.length - 1));
        },
      ],
    },
  };
  const x = [...s.x.map((at) => at + 1), s.x.length + 1],
    y = [...s.y, s.y[s.y.length - 1]!];
  return { options, data: [x, y] as uPlot.AlignedData };
}
