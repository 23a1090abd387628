import type uPlot from "uplot";
import type { Mark, PhaseBar } from "../api";
import { theme } from "../lib/dom";

export const phaseNames = ["data", "forward", "backward", "optimizer", "evaluation", "checkpoint", "user"];
export const stripHeight = 16;

/** A uPlot plugin: a strip of phases below the curves, and a line for each mark. */
export function phaseStrip(bars: PhaseBar[], marks: Mark[]): uPlot.Plugin {
  const shown = bars.filter((b) => phaseNames.includes(b.phase));
  return { hooks: { draw: (u) => {
    const colour = theme(), { ctx } = u, ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    const y = top + height - stripHeight * ratio;
    for (const bar of shown) {
      const from = u.valToPos(bar.start_ns / 1e9, "x", true), to = u.valToPos(bar.end_ns / 1e9, "x", true);
      if (to < left || from > left + width) continue;
      ctx.fillStyle = colour(`phase-${bar.phase}`);
      ctx.fillRect(from, y, Math.max(to - from, 0.75 * ratio), stripHeight * ratio);
    }
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    for (const mark of marks) {
      const x = u.valToPos(mark.time_ns / 1e9, "x", true);
      if (x < left || x > left + width) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(mark.kind === "oom" || mark.kind === "kill" ? "critical" : "warning");
      ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, y); ctx.stroke();
      ctx.fillText(mark.kind, Math.min(x + 4 * ratio, left + width - 40 * ratio), top + 12 * ratio);
    }
    ctx.restore();
  } } };
}
