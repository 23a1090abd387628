// The canvas of stacked blocks: events to the right, bytes upwards. It draws what it was last given
// in whatever window is looked at, so it follows the hand before the next answer is there: the
// newest tile, and around it the whole trace, which is coarser.

import { whileShown } from "../../../draw/chart";
import { faint, theme } from "../../../draw/theme";
import { h } from "../../../views/dom";
import { columns, rows } from "./axes";
import { boxOf, paint, remembered, type Drawn, type Inking } from "./paint";
import { raster, type Box } from "./raster";
import { hit, type Range, type Shape } from "./tile";

export interface Look extends Inking {
  events: Range;
  bytes: Range;
  at: number;
  peak: number;
  block: number | null;
}

export interface Picture {
  canvas: HTMLCanvasElement;
  show(newest: Drawn): void;
  /** What is drawn where the newest tile is not; null: nothing. */
  behind(whole: Drawn | null): void;
  look(to: Look): void;
  hover(n: number | null): void;
  place(x: number, y: number): { point: number; bytes: number; shape: Shape | undefined };
  /** Whether something was allocated at a point and an offset. */
  covered(point: number, bytes: number): boolean;
}

/** What a screen reader is told of the picture. */
const spoken = {
  role: "application",
  "aria-roledescription": "picture",
  tabindex: "0",
  "aria-label":
    "Blocks of the trace, stacked, event by event. " +
    "Left and right move by one event, up and down from block to block of that moment, " +
    "Enter selects one. w and s zoom, a and d pan, f shows everything.",
};

const nothing: Look = {
  events: [0, 1],
  bytes: [0, 1],
  at: 0,
  peak: 0,
  block: null,
  dim: false,
  ink: () => "#000",
};

export function picture(): Picture {
  const canvas = h("canvas", spoken);
  let newest: Drawn | null = null,
    whole: Drawn | null = null,
    now = nothing,
    over: number | null = null,
    asked = 0,
    paper = raster(0, 0);
  const redraw = () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      if (canvas.isConnected) draw();
    });
  };
  const draw = () => {
    const width = canvas.clientWidth,
      height = canvas.clientHeight,
      ratio = devicePixelRatio || 1,
      colour = remembered(theme()),
      ctx = canvas.getContext("2d")!;
    if (!newest || !width) return;
    const [wide, high] = sized(canvas, ratio);
    if (paper.width !== wide || paper.height !== high) paper = raster(wide, high);
    const {
        events: [from, to],
        bytes: [low, top],
      } = now,
      scale = { from, low, perPoint: wide / (to - from), perByte: high / (top - low), ratio };
    const everywhere: Box = { left: 0, top: 0, right: wide, bottom: high },
      box = whole ? boxOf(newest.tile, scale, paper) : everywhere;
    if (whole && (box.left > 0 || box.top > 0 || box.right < wide || box.bottom < high))
      paint(paper, everywhere, whole, scale, now, colour);
    paint(paper, box, newest, scale, now, colour);
    ctx.putImageData(new ImageData(new Uint8ClampedArray(paper.pixels.buffer), wide, high), 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const x = (p: number) => ((p - from) / (to - from)) * width,
      y = (b: number) => height - ((b - low) / (top - low)) * height;
    lines(ctx, now, { x, y, width, height }, colour);
    for (const [n, ink] of [
      [over, "muted"],
      [now.block, "text"],
    ] as const) {
      const s = n === null ? undefined : shapes(newest, whole).find((one) => one.n === n);
      if (s) outline(ctx, s, x, y, colour(ink));
    }
    moments(ctx, now, x, height, colour);
  };
  whileShown(canvas, "hightide:theme", redraw);
  new ResizeObserver(redraw).observe(canvas);
  return {
    canvas,
    show: (to) => {
      newest = to;
      redraw();
    },
    behind: (to) => {
      whole = to;
      redraw();
    },
    look: (to) => {
      now = to;
      redraw();
    },
    covered: (point, bytes) => !!newest && isUnder(newest.tile, point, bytes),
    hover: (n) => {
      if (n !== over) {
        over = n;
        redraw();
      }
    },
    place: (px, py) => {
      const [point, bytes] = spotOf(now, px / canvas.clientWidth, py / canvas.clientHeight);
      return { point, bytes, shape: hit(newest?.all ?? [], point, bytes) };
    },
  };
}

/** Whether an offset is below the top of what a tile has at a point. */
const isUnder = (tile: Drawn["tile"], point: number, bytes: number): boolean =>
  bytes >= 0 && bytes < (tile.at[Math.floor((point - tile.from) / tile.step)] ?? 0);

/** The point and the offset at a place, by its shares of the width and of the height. */
const spotOf = (
  { events: [from, to], bytes: [low, high] }: Look,
  across: number,
  down: number,
): [point: number, bytes: number] => [from + across * (to - from), low + (1 - down) * (high - low)];

/** Gives a canvas as many pixels as it takes on the screen, and says how many these are. */
function sized(canvas: HTMLCanvasElement, ratio: number): [wide: number, high: number] {
  const wide = Math.round(canvas.clientWidth * ratio),
    high = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  return [wide, high];
}

interface Scales {
  x(point: number): number;
  y(bytes: number): number;
  width: number;
  height: number;
}

function lines(
  ctx: CanvasRenderingContext2D,
  now: Look,
  { x, y, width, height }: Scales,
  colour: (name: string) => string,
): void {
  ctx.fillStyle = faint(colour("text"), 0.09);
  for (const b of rows(now.bytes, height)) ctx.fillRect(0, Math.round(y(b)) - 0.5, width, 1);
  for (const p of columns(now.events, width)) ctx.fillRect(Math.round(x(p)) - 0.5, 0, 1, height);
}

/** The chosen moment, and that of the peak. */
function moments(
  ctx: CanvasRenderingContext2D,
  { events: [from, to], peak, at }: Look,
  x: (point: number) => number,
  height: number,
  colour: (name: string) => string,
): void {
  if (peak >= from && peak < to && peak !== at) {
    ctx.strokeStyle = colour("critical");
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(x(peak), 0);
    ctx.lineTo(x(peak), height);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  ctx.fillStyle = colour("accent");
  ctx.fillRect(x(at) - 0.75, 0, 1.5, height);
}

const shapes = (newest: Drawn, whole: Drawn | null) =>
  whole ? [...newest.all, ...whole.all] : newest.all;

function outline(
  ctx: CanvasRenderingContext2D,
  s: Shape,
  x: (point: number) => number,
  y: (bytes: number) => number,
  ink: string,
): void {
  const tall = y(0) - y(s.bytes),
    last = s.offset.length - 1;
  ctx.strokeStyle = ink;
  ctx.lineWidth = 2;
  ctx.beginPath();
  s.offset.forEach((offset, i) => {
    ctx.lineTo(x(s.point[i]!), y(offset));
    ctx.lineTo(x(s.point[i + 1]!), y(offset));
  });
  for (let i = last; i >= 0; i--) {
    ctx.lineTo(x(s.point[i + 1]!), y(s.offset[i]!) - tall);
    ctx.lineTo(x(s.point[i]!), y(s.offset[i]!) - tall);
  }
  ctx.closePath();
  ctx.stroke();
  ctx.lineWidth = 1;
}
