// A uPlot plugin: a line for each event, and a dot where the memory was highest.

import type uPlot from "uplot";
import { theme } from "./theme";

/** A line at a place of the x axis, in the units of the plot. */
export interface Line {
  x: number;
  kind: string;
}

/** Kinds of marks that mean that memory ran out. */
export const severe = ["oom", "kill", "exception"];

export function marks(
  events: Line[],
  summit: { x: number; y: number; text: string; colour: string } | null,
): uPlot.Plugin {
  return {
    hooks: {
      draw: (u) => {
        const colour = theme(),
          { ctx } = u,
          ratio = devicePixelRatio;
        const { left, top, width, height } = u.bbox;
        ctx.save();
        ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
        const ends: number[] = []; // where the last label of each row ends
        for (const event of events) {
          const x = u.valToPos(event.x, "x", true);
          if (x < left || x > left + width) continue;
          ctx.strokeStyle = ctx.fillStyle = colour(
            severe.includes(event.kind) ? "critical" : "warning",
          );
          ctx.lineWidth = ratio;
          ctx.setLineDash([4 * ratio, 3 * ratio]);
          ctx.beginPath();
          ctx.moveTo(x, top);
          ctx.lineTo(x, top + height);
          ctx.stroke();
          const long = ctx.measureText(event.kind).width,
            at = x + 5 * ratio + long > left + width ? x - 5 * ratio - long : x + 5 * ratio;
          const row = [0, 1, 2].find((r) => (ends[r] ?? -1) < at - 6 * ratio);
          if (row === undefined) continue;
          ends[row] = at + long;
          const foot = top + height - (3 + row * 14) * ratio;
          ctx.fillStyle = colour("panel");
          ctx.globalAlpha = 0.86;
          // as it may lie on a band of any colour
          ctx.fillRect(at - 3 * ratio, foot - 13 * ratio, long + 6 * ratio, 13 * ratio);
          ctx.globalAlpha = 1;
          ctx.fillStyle = ctx.strokeStyle;
          ctx.textAlign = "left";
          ctx.textBaseline = "bottom";
          ctx.fillText(event.kind, at, foot);
        }
        if (summit) dot(u, summit, colour);
        ctx.restore();
      },
    },
  };
}

function dot(
  u: uPlot,
  summit: { x: number; y: number; text: string; colour: string },
  colour: (name: string) => string,
): void {
  const { ctx } = u,
    ratio = devicePixelRatio,
    { left, top, width, height } = u.bbox;
  const x = u.valToPos(summit.x, "x", true),
    y = u.valToPos(summit.y, "y", true);
  if (x < left || x > left + width || y < top || y > top + height) return;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.arc(x, y, 4.5 * ratio, 0, 7);
  ctx.fillStyle = colour("panel");
  ctx.fill();
  ctx.lineWidth = 2.5 * ratio;
  ctx.strokeStyle = summit.colour;
  ctx.stroke();
  const long = ctx.measureText(summit.text).width,
    pad = 5 * ratio,
    tall = 18 * ratio;
  const at = Math.min(Math.max(x - long / 2, left + pad), left + width - long - pad);
  const high = y - 12 * ratio - tall < top ? y + 12 * ratio : y - 10 * ratio - tall;
  ctx.fillStyle = colour("panel");
  ctx.globalAlpha = 0.86;
  ctx.fillRect(at - pad, high, long + 2 * pad, tall);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour("text");
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText(summit.text, at, high + tall / 2);
}
