// The canvas of stacked blocks: events to the right, bytes upwards. It draws the last tile in whatever window is looked at, so it follows
// the hand before the next tile is there.

import { faint, theme } from "../../../draw/theme";
import { byteTick, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { hit, type Range, type Shape, type Tile } from "./tile";

export interface Look { events: Range; bytes: Range; at: number; block: number | null; dim: boolean; ink: (s: Shape) => string }

export interface Picture {
  canvas: HTMLCanvasElement;
  show(tile: Tile, all: Shape[]): void;
  look(to: Look): void;
  hover(n: number | null): void;
  place(x: number, y: number): { point: number; bytes: number; shape: Shape | undefined };
  /** Whether something was allocated at a point and an offset. */
  covered(point: number, bytes: number): boolean;
}

export function picture(): Picture {
  const canvas = h("canvas", { role: "img", tabindex: "0", "aria-label": "Blocks of the trace, stacked, event by event. Plus and minus zoom, F shows everything, the arrows move by one event." });
  let tile: Tile | null = null, all: Shape[] = [], now: Look = { events: [0, 1], bytes: [0, 1], at: 0, block: null, dim: false, ink: () => "" }, over: number | null = null, asked = 0;
  const redraw = () => { asked ||= requestAnimationFrame(() => { asked = 0; if (canvas.isConnected) draw(); }); };
  const draw = () => {
    const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1, colour = theme(), ctx = canvas.getContext("2d")!;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    ctx.scale(ratio, ratio);
    const { events: [from, to], bytes: [low, high] } = now, x = (p: number) => ((p - from) / (to - from)) * width, y = (b: number) => height - ((b - low) / (high - low)) * height;
    if (!tile || !width) return;
    levels(ctx, tile, x, y, height, colour);
    for (const s of all) body(ctx, s, x, y, width, now.dim && !s.found ? faint(colour("muted"), 0.25) : now.ink(s), height);
    for (const [n, ink] of [[over, "muted"], [now.block, "text"]] as const) {
      const s = all.find((one) => one.n === n);
      if (s) outline(ctx, s, x, y, colour(ink));
    }
    ctx.fillStyle = colour("accent");
    ctx.fillRect(x(now.at) - 0.75, 0, 1.5, height);
    ctx.font = "12px system-ui, sans-serif";
    label(ctx, colour, byteTick(high), 4, 14, "left");
    if (low > 0) label(ctx, colour, byteTick(low), 4, height - 24, "left");
    label(ctx, colour, `event ${count(from)}`, 4, height - 6, "left");
    label(ctx, colour, count(to), width - 4, height - 6, "right");
  };
  addEventListener("hightide:theme", redraw);
  new ResizeObserver(redraw).observe(canvas);
  return {
    canvas,
    show: (t, s) => { [tile, all] = [t, s]; redraw(); },
    look: (to) => { now = to; redraw(); },
    covered: (point, bytes) => tile !== null && bytes >= 0 && bytes < (tile.at[Math.floor((point - tile.from) / tile.step)] ?? 0),
    hover: (n) => { if (n !== over) { over = n; redraw(); } },
    place: (px, py) => {
      const { events: [from, to], bytes: [low, high] } = now;
      const point = from + (px / canvas.clientWidth) * (to - from), bytes = low + (1 - py / canvas.clientHeight) * (high - low);
      return { point, bytes, shape: hit(all, point, bytes) };
    },
  };
}

type Scale = (v: number) => number;

/** What was allocated, as an area: what no block covers are blocks too small to draw. What was reserved, as a line. */
function levels(ctx: CanvasRenderingContext2D, t: Tile, x: Scale, y: Scale, height: number, colour: (name: string) => string): void {
  const column = (i: number) => x(t.from + i * t.step);
  ctx.fillStyle = faint(colour("muted"), 0.45);
  ctx.beginPath();
  ctx.moveTo(column(0), Math.max(y(0), height));
  t.at.forEach((bytes, i) => { ctx.lineTo(column(i), y(bytes)); ctx.lineTo(column(i + 1), y(bytes)); });
  ctx.lineTo(column(t.at.length), Math.max(y(0), height));
  ctx.fill();
  ctx.strokeStyle = colour("reserved");
  ctx.beginPath();
  t.reserved.forEach((bytes, i) => { ctx.lineTo(column(i), y(bytes)); ctx.lineTo(column(i + 1), y(bytes)); });
  ctx.stroke();
}

function body(ctx: CanvasRenderingContext2D, s: Shape, x: Scale, y: Scale, width: number, ink: string, height: number): void {
  ctx.fillStyle = ink;
  const tall = y(0) - y(s.bytes), gap = tall > 3 ? 0.6 : 0;
  s.offset.forEach((offset, i) => {
    const left = Math.max(x(s.point[i]!), 0), right = Math.min(x(s.point[i + 1]!), width), top = y(offset) - tall;
    if (right > left && top < height && top + tall > 0) ctx.fillRect(left, top + gap, Math.max(right - left - (right - left > 4 && i === s.offset.length - 1 ? 0.5 : 0), 0.4), Math.max(tall - gap, 0.4));
  });
}

function outline(ctx: CanvasRenderingContext2D, s: Shape, x: Scale, y: Scale, ink: string): void {
  const tall = y(0) - y(s.bytes), last = s.offset.length - 1;
  ctx.strokeStyle = ink;
  ctx.lineWidth = 2;
  ctx.beginPath();
  s.offset.forEach((offset, i) => { ctx.lineTo(x(s.point[i]!), y(offset)); ctx.lineTo(x(s.point[i + 1]!), y(offset)); });
  for (let i = last; i >= 0; i--) { ctx.lineTo(x(s.point[i + 1]!), y(s.offset[i]!) - tall); ctx.lineTo(x(s.point[i]!), y(s.offset[i]!) - tall); }
  ctx.closePath();
  ctx.stroke();
  ctx.lineWidth = 1;
}

function label(ctx: CanvasRenderingContext2D, colour: (name: string) => string, text: string, x: number, y: number, align: CanvasTextAlign): void {
  ctx.textAlign = align;
  ctx.lineWidth = 3;
  ctx.strokeStyle = colour("panel");
  ctx.strokeText(text, x, y);
  ctx.lineWidth = 1;
  ctx.fillStyle = colour("text");
  ctx.fillText(text, x, y);
}
