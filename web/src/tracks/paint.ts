// Draws one track: its curves as the lowest and the highest of each column of pixels, lanes of
// phases with their steps, or events.

import type { Mark, StepPoint } from "../api";
import { severe } from "../draw/marks";
import { paintLane } from "../draw/strip";
import { readable } from "../draw/svg";
import { faint, theme } from "../draw/theme";
import { count, quantity, tick } from "../lib/format";
import type { Columns } from "../lib/columns";
import { called, phaseNames, shares, type Stay } from "../lib/phases";
import { byteSteps, moment, secondSteps } from "../lib/scales";
import type { Span } from "./look";
import type { Track } from "./model";
import { at } from "./readings";

export interface Box {
  width: number;
  height: number;
}
export interface Line {
  columns: Columns;
  ink: string;
  dash: boolean;
  fill: boolean;
}

const font = "11px system-ui, sans-serif";

/** A canvas made ready for a picture of so many pixels of the page. */
export function clean(canvas: HTMLCanvasElement, { width, height }: Box): CanvasRenderingContext2D {
  const ratio = devicePixelRatio,
    [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  const ctx = canvas.getContext("2d")!;
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  else {
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, w, h);
  }
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.font = font;
  return ctx;
}

/** A value of a track for people. */
export function valueText(t: Pick<Track, "family" | "rate" | "unit">, v: number): string {
  if (t.family === "cpu" || t.family === "owncpu") {
    const cores = v / 1e9;
    return cores > 0 && cores < 0.095 ? String(Number(cores.toPrecision(2))) : cores.toFixed(2);
  }
  if (t.rate) return `${v >= 100 ? count(v) : Number(v.toPrecision(3))} /s`;
  return quantity(Math.round(v), t.unit);
}

/** A figure of a track's axis. */
export const axisText = (t: Pick<Track, "family" | "rate" | "unit">, v: number) =>
  t.family === "cpu" || t.family === "owncpu"
    ? String(Number((v / 1e9).toPrecision(3)))
    : t.rate
      ? v === 0
        ? "0"
        : `${tick(v, "count")} /s`
      : tick(v, t.unit);

/** The lowest and the highest that is drawn of some lines in a stretch; null where nothing is. */
export function extent(lines: Line[], [from, to]: Span): Span | null {
  let low = Infinity,
    high = -Infinity;
  for (const {
    columns: { x, y },
  } of lines) {
    const last = Math.min(x.length, at(x, to) + 1);
    for (let i = Math.max(0, at(x, from) - 1); i < last; i++) {
      const v = y[i]!;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  return low <= high ? [low, high] : null;
}

/**
 * The scale of a track: from zero, or fitted to what is in view. Limits near the values are in it.
 */
export function scaleOf([low, high]: Span, fitted: boolean, limits: number[]): Span {
  if (fitted) {
    const room = Math.max((high - low) * 0.08, Math.abs(high) * 1e-6, 1e-9);
    return [low - room, high + room];
  }
  return [
    Math.min(0, low * 1.1),
    Math.max(high, ...limits.filter((l) => l <= 2.5 * high), 1e-9) * 1.12,
  ];
}

const stepsOf = (unit: string, rate: boolean) =>
  unit === "bytes" && !rate
    ? byteSteps
    : secondSteps
        .slice(0, 28)
        .concat(
          Array.from({ length: 36 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** (1 + Math.floor(i / 3))),
        );

export function paintCurves(
  ctx: CanvasRenderingContext2D,
  track: Track,
  lines: Line[],
  limits: number[],
  [from, to]: Span,
  [low, high]: Span,
  { width, height }: Box,
): void {
  const colour = theme(),
    x = (t: number) => ((t - from) / (to - from)) * width,
    y = (v: number) => height - ((v - low) / (high - low)) * height;
  const step =
      stepsOf(track.unit, track.rate).find((s) => (high - low) / s <= Math.max(2, height / 21)) ??
      high - low,
    marks: [string, number][] = [];
  ctx.strokeStyle = colour("grid");
  ctx.lineWidth = 1;
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
    const at = Math.round(y(v)) - 0.5;
    ctx.beginPath();
    ctx.moveTo(0, at);
    ctx.lineTo(width, at);
    ctx.stroke();
    if (at > 13 && at < height - 3)
      marks.push([axisText(track, Math.abs(v) < step / 1e6 ? 0 : v), at]);
  }
  for (const line of lines) paintLine(ctx, line, from, to, x, y, width, height);
  ctx.setLineDash([5, 4]);
  ctx.strokeStyle = colour("limit");
  ctx.lineWidth = 1;
  for (const limit of limits)
    if (limit <= high) {
      const at = Math.round(y(limit)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(0, at);
      ctx.lineTo(width, at);
      ctx.stroke();
    }
  ctx.setLineDash([]);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.lineWidth = 3;
  ctx.strokeStyle = faint(colour("panel"), 0.9);
  ctx.fillStyle = colour("muted");
  ctx.lineJoin = "round";
  for (const [text, at] of marks) {
    const above = Math.max(at - 7, 7);
    ctx.strokeText(text, 5, above);
    ctx.fillText(text, 5, above);
  } // on its line, not through it
}

function paintLine(
  ctx: CanvasRenderingContext2D,
  { columns, ink, dash, fill }: Line,
  from: number,
  to: number,
  x: (t: number) => number,
  y: (v: number) => number,
  width: number,
  height: number,
): void {
  const xs = columns.x,
    ys = columns.y,
    first = Math.max(0, at(xs, from) - 1),
    last = Math.min(xs.length, at(xs, to) + 1),
    n = last - first;
  if (n <= 0) return;
  ctx.strokeStyle = ctx.fillStyle = ink;
  ctx.lineWidth = 1.5;
  ctx.lineJoin = "round";
  const path = new Path2D();
  if (n <= 3 * width) for (let i = first; i < last; i++) path.lineTo(x(xs[i]!), y(ys[i]!));
  else {
    // as many readings as would hide each other: what a column of pixels has from first to last,
    // and its lowest and highest
    for (let i = first; i < last;) {
      const column = Math.floor(x(xs[i]!)),
        open = ys[i]!;
      let low = open,
        high = open,
        close = open;
      for (; i < last && Math.floor(x(xs[i]!)) === column; i++) {
        close = ys[i]!;
        if (close < low) low = close;
        if (close > high) high = close;
      }
      path.lineTo(column, y(open));
      if (high > low) {
        path.lineTo(column + 0.25, y(high));
        path.lineTo(column + 0.5, y(low));
      }
      path.lineTo(column + 0.75, y(close));
    }
  }
  if (fill && n > 1) {
    const area = new Path2D(path);
    area.lineTo(x(xs[last - 1]!), height);
    area.lineTo(x(xs[first]!), height);
    area.closePath();
    ctx.fillStyle = faint(ink, 0.14);
    ctx.fill(area);
    ctx.fillStyle = ink;
  }
  if (dash) ctx.setLineDash([5, 4]);
  ctx.stroke(path);
  ctx.setLineDash([]);
  if (!dash && (n * 14 < width || n === 1))
    for (let i = first; i < last; i++) {
      ctx.beginPath();
      ctx.arc(x(xs[i]!), y(ys[i]!), n < 12 ? 2.75 : 2, 0, 7);
      ctx.fill();
    } // single readings
}

export const laneHeight = 18;
/** What a lane's text is written in: the one that its colour lets read. */
export const laneText = ["#0c1117", "#ffffff"] as const;

/** Phases as a lane, and below it where steps ended, with their numbers where there is room. */
export function paintPhases(
  ctx: CanvasRenderingContext2D,
  stays: Stay[],
  steps: StepPoint[],
  [from, to]: Span,
  { width, height }: Box,
  alone = "",
): void {
  const colour = theme(),
    ratio = devicePixelRatio,
    x = (t: number) => ((t - from) / (to - from)) * width,
    tall = Math.min(laneHeight, height);
  const seen = stays.slice(Math.max(0, lastBefore(stays, from)), lastBefore(stays, to) + 1);
  ctx.save();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  paintLane(
    ctx,
    seen,
    [from, to],
    { left: 0, top: 0, width: Math.round(width * ratio), height: tall * ratio },
    ratio,
    colour,
    alone,
  );
  ctx.restore();
  ctx.textBaseline = "middle";
  ctx.textAlign = "center";
  ctx.font = `600 ${font}`;
  if (seen.length < 200)
    for (const s of seen) {
      const a = Math.max(x(s.from), 0),
        b = Math.min(x(s.to), width),
        text = called(s);
      if (s.name && b - a > 3) {
        // spans have one colour: a line stands between two
        ctx.fillStyle = colour("track");
        ctx.fillRect(Math.round(b) - 1, 0, 1, tall);
      }
      if (!(b - a > 24 && b - a > ctx.measureText(text).width + 10)) continue;
      ctx.fillStyle =
        alone && s.phase !== alone
          ? colour("muted")
          : readable(colour(`phase-${s.phase}`), ...laneText);
      ctx.fillText(text, (a + b) / 2, tall / 2 + 0.5);
    }
  if (height <= tall + 8) return;
  ctx.font = font;
  ctx.fillStyle = ctx.strokeStyle = colour("muted");
  ctx.lineWidth = 1;
  const times = steps.map((s) => s.time_ns),
    first = Math.max(0, at(times, from) - 1),
    last = Math.min(steps.length, at(times, to) + 1);
  const digit = ctx.measureText("0").width;
  let free = -Infinity,
    tickFree = -Infinity;
  for (let i = first; i < last; i++) {
    const here = x(times[i]!);
    if (here - tickFree >= 3) {
      ctx.beginPath();
      ctx.moveTo(here, tall + 2);
      ctx.lineTo(here, tall + 6);
      ctx.stroke();
      tickFree = here;
    }
    if (here < free) continue;
    const text = count(steps[i]!.step + 1),
      long = digit * text.length;
    if (here - long / 2 > free && here - long / 2 >= 0 && here + long / 2 <= width) {
      ctx.fillText(text, here, tall + 13);
      free = here + long / 2 + 14;
    }
  }
}

/** Where one phase was, behind a track's curves: the deeper, the more of a column it takes. */
export function paintPhase(
  ctx: CanvasRenderingContext2D,
  stays: Stay[],
  phase: string,
  [from, to]: Span,
  { width, height }: Box,
): void {
  const kind = (phaseNames as readonly string[]).indexOf(phase),
    ink = theme()(`phase-${phase}`),
    wide = 2;
  if (kind < 0) return;
  shares(
    stays.slice(Math.max(0, lastBefore(stays, from)), lastBefore(stays, to) + 1),
    from,
    to,
    Math.max(1, Math.ceil(width / wide)),
  ).forEach((part, i) => {
    if (part[kind]! < 0.02) return;
    ctx.fillStyle = faint(ink, 0.05 + 0.2 * part[kind]!);
    ctx.fillRect(i * wide, 0, wide, height);
  });
}

/** The place of the last stay that begins before a moment. */
export function lastBefore(stays: Stay[], time: number): number {
  let low = 0,
    high = stays.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stays[middle]!.from <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export const inkOf = (mark: Mark) => (severe.includes(mark.kind) ? "critical" : "warning");

/** A thin line through a track for each event. */
export function paintEventLines(
  ctx: CanvasRenderingContext2D,
  marks: Mark[],
  [from, to]: Span,
  { width, height }: Box,
): void {
  const colour = theme();
  ctx.setLineDash([3, 3]);
  ctx.lineWidth = 1;
  for (const m of marks) {
    if (m.time_ns < from || m.time_ns > to) continue;
    const x = Math.round(((m.time_ns - from) / (to - from)) * width) + 0.5;
    ctx.strokeStyle = faint(colour(inkOf(m)), 0.55);
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, height);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

/** Events as pins with the kind beside them where there is room; gives where each was drawn. */
export function paintEvents(
  ctx: CanvasRenderingContext2D,
  marks: Mark[],
  [from, to]: Span,
  { width, height }: Box,
): { x: number; mark: Mark }[] {
  const colour = theme(),
    placed: { x: number; mark: Mark }[] = [];
  let free = -Infinity;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const mark of marks.toSorted((a, b) => a.time_ns - b.time_ns)) {
    if (mark.time_ns < from || mark.time_ns > to) continue;
    const x = ((mark.time_ns - from) / (to - from)) * width,
      y = height / 2;
    ctx.fillStyle = colour(inkOf(mark));
    ctx.beginPath();
    if (severe.includes(mark.kind))
      ctx.rect(x - 4.5, y - 4.5, 9, 9); // the shape tells what the colour does
    else {
      ctx.moveTo(x, y - 6);
      ctx.lineTo(x + 6, y);
      ctx.lineTo(x, y + 6);
      ctx.lineTo(x - 6, y);
    }
    ctx.fill();
    placed.push({ x, mark });
    const long = ctx.measureText(mark.kind).width;
    if (x - 6 > free && x + 10 + long < width) {
      ctx.fillStyle = colour("text");
      ctx.fillText(mark.kind, x + 10, y + 0.5);
      free = x + 16 + long;
    }
  }
  return placed;
}

/** The figures of the time axis. */
export function paintAxis(
  ctx: CanvasRenderingContext2D,
  [from, to]: Span,
  { width, height }: Box,
): void {
  const colour = theme(),
    seconds = (to - from) / 1e9,
    step = secondSteps.find((s) => (seconds / s) * 84 <= width) ?? seconds;
  ctx.fillStyle = colour("muted");
  ctx.strokeStyle = colour("edge");
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let k = Math.ceil(from / 1e9 / step); k * step <= to / 1e9; k++) {
    const x = ((k * step * 1e9 - from) / (to - from)) * width,
      text = moment(k * step, step),
      half = ctx.measureText(text).width / 2;
    ctx.beginPath();
    ctx.moveTo(x, height - 4);
    ctx.lineTo(x, height);
    ctx.stroke();
    ctx.fillText(text, Math.min(Math.max(x, half + 1), width - half - 1), height / 2 - 1);
  }
}
