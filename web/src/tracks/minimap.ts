// The whole run in small, with a brush over what the tracks show.

import { overview } from "../draw/overview";
import { faint, theme } from "../draw/theme";
import { shape } from "../lib/columns";
import { duration } from "../lib/format";
import type { Span } from "./look";
import { clean, extent, inkOf, paintEventLines } from "./paint";
import type { Source } from "./source";

export interface Minimap {
  element: HTMLElement;
  draw(source: Source, shown: Span): void;
}

const high = 44;

/** move is told each stretch while a hand drags; it is at least a few pixels. */
export function minimap(end: () => number, move: (to: Span) => void): Minimap {
  const { element, canvas, show } = overview(end, move, {
    from: "Beginning of what is shown",
    to: "End of what is shown",
    at: duration,
  });
  let drawn = "";

  const draw = (source: Source, now: Span) => {
    const whole: Span = [0, end()],
      width = element.clientWidth;
    show(now);
    if (width === 0) return;
    const lead =
      source.curves.find((c) => c.name === source.main && c.readings.shown.x.length > 1) ??
      source.curves.find((c) => c.readings.shown.x.length > 1);
    const of = [
      width,
      whole[1],
      lead?.key,
      lead?.readings.shown.x.length,
      source.marks.length,
      document.documentElement.dataset.theme,
      devicePixelRatio,
    ].join("|");
    if (of === drawn) return; // only the brush has moved
    drawn = of;
    const ctx = clean(canvas, { width, height: high }),
      colour = theme();
    if (lead) {
      const { x, y } = shape(lead.readings.shown, Math.max(50, width / 2)),
        [, top] = extent([{ columns: { x, y }, ink: "", dash: false, fill: false }], whole) ?? [
          0, 1,
        ];
      const path = new Path2D(),
        at = (t: number) => (t / whole[1]) * width,
        up = (v: number) => high - 2 - (Math.max(v, 0) / (top || 1)) * (high - 8);
      x.forEach((t, i) => path.lineTo(at(t), up(y[i]!)));
      const area = new Path2D(path);
      area.lineTo(at(x.at(-1)!), high);
      area.lineTo(at(x[0]!), high);
      area.closePath();
      ctx.fillStyle = faint(colour(lead.colour), 0.2);
      ctx.fill(area);
      ctx.strokeStyle = colour(lead.colour);
      ctx.lineWidth = 1;
      ctx.stroke(path);
    }
    paintEventLines(ctx, source.marks, whole, { width, height: high });
    for (const m of source.marks) {
      ctx.fillStyle = colour(inkOf(m));
      ctx.fillRect((m.time_ns / whole[1]) * width - 1.5, 0, 3, 4);
    }
  };
  return { element, draw };
}
