// uPlot in the page's colours: as wide as its parent, drawn again when theme or width change, and
// narrow enough for paper while printing.

import uPlot from "uplot";
import { byteTick } from "../lib/format";
import { byteSteps } from "../lib/scales";
import { whileShown } from "./shown";
import { theme } from "./theme";

export type Made = { options: Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData };

export interface Chart {
  plot(): uPlot | null;
  redraw(): void;
}

export const paper = 650; // CSS pixels between the margins of A4 and of US Letter

export function chart(parent: HTMLElement, height: number, make: () => Made): Chart {
  let plot: uPlot | null = null,
    printing = false;
  const width = () =>
    printing
      ? Math.min(paper, parent.clientWidth || paper)
      : Math.max(240, Math.floor(parent.clientWidth));
  const redraw = () => {
    plot?.destroy();
    const { options, data } = make();
    plot = new uPlot({ ...options, width: width(), height }, data, parent);
  };
  new ResizeObserver(() => {
    if (plot && plot.width !== width()) plot.setSize({ width: width(), height });
  }).observe(parent);
  whileShown(parent, "hightide:theme", redraw);
  whileShown(parent, "beforeprint", () => {
    printing = true;
    redraw();
  });
  whileShown(parent, "afterprint", () => {
    printing = false;
    redraw();
  });
  redraw();
  return { plot: () => plot, redraw };
}

export { whileShown };

/** Axes in the colours of the page. */
export function axis(extra: uPlot.Axis): uPlot.Axis {
  const colour = theme();
  return {
    stroke: colour("muted"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    ...extra,
  };
}

export const byteAxis = (): uPlot.Axis =>
  axis({
    values: (_, ticks) => ticks.map(byteTick),
    incrs: byteSteps,
    size: 72,
    gap: 8,
    space: 44,
  });

/** A fill that fades towards the axis. */
export function fade(colour: string, from: number, to: number): uPlot.Series.Fill {
  return (u) => {
    const { top, height } = u.bbox;
    if (!Number.isFinite(top) || !(height > 0)) return "transparent";
    const gradient = u.ctx.createLinearGradient(0, top, 0, top + height);
    const hex = (v: number) =>
      Math.round(v * 255)
        .toString(16)
        .padStart(2, "0");
    gradient.addColorStop(0, colour + hex(from));
    gradient.addColorStop(1, colour + hex(to));
    return gradient;
  };
}
