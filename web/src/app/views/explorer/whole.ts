// The whole trace in small below the picture: what was allocated and reserved, with a brush over
// what is looked at, and the moment.

import type { Blocks } from "../../../api";
import { whileShown } from "../../../draw/chart";
import { overview } from "../../../draw/overview";
import { faint, theme } from "../../../draw/theme";
import { count } from "../../../lib/format";
import type { Range } from "./tile";

const high = 44;

export interface Whole {
  element: HTMLElement;
  show(tile: Blocks): void;
  look(events: Range, at: number): void;
}

export function wholeTrace(end: () => number, move: (to: Range) => void): Whole {
  const { element, canvas, show } = overview(end, move, {
    from: "First event of what is shown",
    to: "Last event of what is shown",
    at: (place) => `event ${count(Math.round(place))}`,
  });
  let tile: Blocks | null = null,
    at = 0,
    asked = 0;
  const draw = () => {
    const width = element.clientWidth,
      ratio = devicePixelRatio || 1,
      colour = theme(),
      ctx = canvas.getContext("2d")!;
    if (!tile || !width) return;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(high * ratio)];
    ctx.scale(ratio, ratio);
    const { at: used, reserved, from, step } = tile,
      top = Math.max(1, ...used, ...reserved),
      x = (i: number) => ((from + i * step) / end()) * width,
      y = (v: number) => high - (Math.max(v, 0) / top) * (high - 4);
    const course = (values: number[]) => {
      const path = new Path2D();
      values.forEach((v, i) => {
        path.lineTo(x(i), y(v));
        path.lineTo(x(i + 1), y(v));
      });
      return path;
    };
    const line = course(used),
      area = new Path2D(line);
    area.lineTo(x(used.length), high);
    area.lineTo(x(0), high);
    area.closePath();
    ctx.fillStyle = faint(colour("block-0"), 0.25);
    ctx.fill(area);
    ctx.lineWidth = 1;
    ctx.strokeStyle = colour("reserved");
    ctx.stroke(course(reserved));
    ctx.strokeStyle = colour("block-0");
    ctx.stroke(line);
    ctx.fillStyle = colour("accent");
    ctx.fillRect((at / end()) * width - 0.75, 0, 1.5, high);
  };
  const redraw = () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      if (canvas.isConnected) draw();
    });
  };
  whileShown(canvas, "hightide:theme", redraw);
  new ResizeObserver(redraw).observe(canvas);
  return {
    element,
    show: (to) => {
      tile = to;
      redraw();
    },
    look: (events, moment) => {
      show(events);
      if (moment !== at) {
        at = moment;
        redraw();
      }
    },
  };
}
