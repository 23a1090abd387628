// A uPlot plugin: lanes of phases between the plot and the figures of its x axis, in the units of
// the plot. Zoomed out, a column shows the shares of the phases in it; zoomed in, the phases
// themselves.

import type uPlot from "uplot";
import { phaseNames, shares, type Stay } from "../lib/phases";
import { faint, theme } from "./theme";

export interface Lane {
  name: string;
  stays: Stay[];
} // stays that do not overlap, see exclusive

const gap = 2,
  above = 6;
const lane = (lanes: Lane[]) => (lanes.length > 1 ? 10 : 16);

/** The room that the lanes take, for the axis below them. */
export const stripHeight = (lanes: Lane[]) =>
  lanes.length === 0 ? 0 : above + lanes.length * (lane(lanes) + gap);

/**
 * Pixels in a column. Where stays have pixels of their own, one; where they are too short, a few,
 * and as many as reach from one kept step of a long run to the next.
 */
function column(stays: Stay[], from: number, to: number, width: number, ratio: number): number {
  const pixel = (to - from) / width,
    seen = stays.filter((s) => s.to >= from && s.from <= to);
  const median = (v: number[]) => v.sort((a, b) => a - b)[v.length >> 1] ?? 0;
  if (median(seen.map((s) => s.to - s.from)) >= 3 * pixel) return 1;
  const gaps = seen
    .slice(1)
    .map((s, i) => s.from - seen[i]!.to)
    .filter((g) => g > 2 * pixel);
  const apart = gaps.length > seen.length / 12 ? (1.25 * median(gaps)) / pixel : 0;
  return Math.round(Math.min(Math.max(4 * ratio, apart), 32 * ratio));
}

/**
 * Draws stays that do not overlap as one lane in a box of the canvas; ratio is pixels of the canvas
 * in one of the page. Beside the one that is looked at alone, others are faint.
 */
export function paintLane(
  ctx: CanvasRenderingContext2D,
  stays: Stay[],
  [from, to]: [number, number],
  box: { left: number; top: number; width: number; height: number },
  ratio: number,
  colour = theme(),
  alone = "",
): void {
  const { left, top, width, height } = box,
    colours = phaseNames.map((n) =>
      alone && n !== alone ? faint(colour(`phase-${n}`), 0.25) : colour(`phase-${n}`),
    );
  ctx.fillStyle = colour("track");
  ctx.fillRect(left, top, width, height);
  const wide = column(stays, from, to, width, ratio);
  shares(
    stays,
    from,
    to + ((wide - (width % wide)) % wide) * ((to - from) / width),
    Math.max(1, Math.ceil(width / wide)),
  ).forEach((part, x) => {
    let bottom = top + height;
    part.forEach((share, kind) => {
      if (share === 0) return;
      ctx.fillStyle = colours[kind]!;
      ctx.fillRect(
        left + x * wide,
        bottom - share * height,
        Math.min(wide, width - x * wide),
        share * height,
      );
      bottom -= share * height;
    });
  });
}

export function strip(lanes: Lane[]): uPlot.Plugin {
  return {
    hooks: {
      draw: (u) => {
        const colour = theme(),
          { ctx } = u,
          ratio = devicePixelRatio;
        const { left, top, width, height } = u.bbox;
        const from = u.posToVal(0, "x"),
          to = u.posToVal(width / ratio, "x");
        ctx.save();
        lanes.forEach(({ name, stays }, i) => {
          const tall = lane(lanes) * ratio,
            y = top + height + (above + i * (lane(lanes) + gap)) * ratio;
          paintLane(ctx, stays, [from, to], { left, top: y, width, height: tall }, ratio, colour);
          ctx.fillStyle = colour("muted");
          ctx.font = `${(lanes.length > 1 ? 9 : 11) * ratio}px system-ui, sans-serif`;
          ctx.textAlign = "right";
          ctx.textBaseline = "middle";
          ctx.fillText(name, left - 8 * ratio, y + tall / 2, left - 10 * ratio);
        });
        ctx.restore();
      },
    },
  };
}
