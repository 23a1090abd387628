import uPlot from "uplot";
import { theme } from "../lib/dom";

/** A chart fills its parent's width and is drawn again when the theme or the width changes. */
export function chart(parent: HTMLElement, height: number, make: () => { options: Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData }): () => void {
  let plot: uPlot | null = null;
  const width = () => Math.max(280, Math.floor(parent.clientWidth));
  const draw = () => {
    plot?.destroy();
    const { options, data } = make();
    plot = new uPlot({ ...options, width: width(), height }, data, parent);
  };
  new ResizeObserver(() => plot?.setSize({ width: width(), height })).observe(parent);
  window.addEventListener("hightide:theme", draw);
  draw();
  return draw;
}

/** Axes in the colours of the page. */
export function axis(extra: uPlot.Axis): uPlot.Axis {
  const colour = theme();
  return { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif", ...extra };
}
