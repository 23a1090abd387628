// Memory against batch, trial by trial, with the device's limit; as SVG, so that it can be saved.

import { canvas, fitted, grid, legend, s, up, wide, type Frame } from "../../../draw/svg";
import { theme } from "../../../draw/theme";
import { bytes, count, tick } from "../../../lib/format";
import { ticks } from "../../../lib/scales";
import type { FitTrial } from "../../jobs";

export interface FitSeen {
  trials: FitTrial[];
  total?: number | undefined;
  tight?: number | undefined;
  current?: number | undefined;
  largest?: number | undefined;
}

const used = (t: FitTrial) =>
  t.device_used_bytes ?? t.peak_reserved_bytes ?? t.peak_allocated_bytes;

/**
 * Slope and beginning of the straight line through two batches that fit, the two farthest apart;
 * null: there are none.
 */
function through(trials: FitTrial[]): { slope: number; at: (batch: number) => number } | null {
  const known = trials
      .filter((t) => t.ok && used(t) !== undefined)
      .sort((a, b) => a.batch - b.batch),
    first = known[0],
    last = known[known.length - 1];
  if (!first || !last || first.batch === last.batch) return null;
  const slope = (used(last)! - used(first)!) / (last.batch - first.batch);
  return { slope, at: (batch) => used(first)! + slope * (batch - first.batch) };
}

/** What the marks of the picture share: its frame, and where a batch lies. */
interface Plan {
  f: Frame;
  x(batch: number): number;
  farthest: number;
  total: number | undefined;
}

const frameLeft = 66,
  frameRight = 14,
  tall = 300;

export function fitCurve(seen: FitSeen, width: number): SVGSVGElement {
  const colour = theme(),
    total = seen.total ?? seen.trials.find((t) => t.total_bytes)?.total_bytes;
  const highest = Math.max(total ?? 0, ...seen.trials.map((t) => used(t) ?? 0), 1) * 1.12,
    farthest = Math.max(...seen.trials.map((t) => t.batch), seen.current ?? 0, 1) * 1.08;
  const key = legend(
    [
      { ink: colour("fine"), text: "fits" },
      { ink: colour("critical"), text: "does not fit", mark: "▲" },
      { ink: colour("accent"), text: "straight line", dash: true },
    ],
    width,
  );
  const svg = canvas(
    width,
    key.height + tall + 48,
    "Memory against batch: " +
      seen.trials
        .map((t) => `${t.batch} ${t.ok ? bytes(used(t) ?? 0) : "does not fit"}`)
        .join(", "),
  );
  const f: Frame = {
    left: frameLeft,
    top: key.height + 8,
    width: width - frameLeft - frameRight,
    height: tall,
    top_value: highest,
    unit: "bytes",
  };
  const plan: Plan = { f, x: (batch) => f.left + (batch / farthest) * f.width, farthest, total };
  svg.append(
    key.element,
    grid(f, true),
    ...batches(plan),
    ...(total ? limit(plan, total, seen.tight) : []),
    ...straight(plan, seen.trials),
    ...seen.trials.map((t) => trialMark(plan, t)),
    ...(seen.largest ? largest(plan, seen.largest) : []),
  );
  return svg;
}

/** The axis of batches. */
function batches({ f, x, farthest }: Plan): SVGElement[] {
  const fill = theme()("muted"),
    floor = f.top + f.height;
  return [
    ...ticks(farthest, "count", Math.max(3, f.width / 80)).map((v) =>
      s("text", { x: x(v), y: floor + 18, "text-anchor": "middle", fill }, tick(v, "count")),
    ),
    s(
      "text",
      { x: f.left + f.width, y: floor + 36, "text-anchor": "end", fill, "font-size": 11 },
      "batch",
    ),
  ];
}

/** The device's memory, and below it what is too little room to be sure. */
function limit({ f }: Plan, total: number, tight: number | undefined): SVGElement[] {
  const colour = theme(),
    y = up(f, total);
  const shade =
    tight &&
    s("rect", {
      x: f.left,
      y,
      width: f.width,
      height: Math.max(0, up(f, total - tight) - y),
      fill: colour("warning"),
      "fill-opacity": 0.16,
    });
  return [
    ...(shade ? [shade] : []),
    s("line", {
      x1: f.left,
      x2: f.left + f.width,
      y1: y,
      y2: y,
      stroke: colour("limit"),
      "stroke-width": 1.5,
      "stroke-dasharray": "6 4",
    }),
    fitted(
      `${bytes(total)} of the device${tight ? `; shaded: too little room to be sure` : ""}`,
      f.width - 10,
      { x: f.left + 6, y: y - 7, fill: colour("limit"), "font-size": 11, "font-weight": 600 },
    ),
  ];
}

/** The straight line, up to where it meets the limit, or to the last batch. */
function straight({ f, x, farthest, total }: Plan, trials: FitTrial[]): SVGElement[] {
  const line = through(trials);
  if (!line) return [];
  const end =
    line.slope > 0 && total ? Math.min(farthest, (total - line.at(0)) / line.slope) : farthest;
  return [
    s("line", {
      x1: x(0),
      y1: up(f, line.at(0)),
      x2: x(end),
      y2: up(f, line.at(end)),
      stroke: theme()("accent"),
      "stroke-width": 1.75,
      "stroke-dasharray": "4 4",
    }),
  ];
}

function trialMark({ f, x, total }: Plan, t: FitTrial): SVGElement {
  const colour = theme(),
    at = x(t.batch),
    value = used(t);
  if (t.ok && value !== undefined)
    return s(
      "circle",
      {
        cx: at,
        cy: up(f, value),
        r: 5,
        fill: colour("fine"),
        stroke: colour("panel"),
        "stroke-width": 1.5,
      },
      s("title", {}, `batch ${count(t.batch)}: ${bytes(value)}`),
    );
  return s(
    "text",
    {
      x: at,
      y: up(f, total ?? f.top_value) + 5,
      "text-anchor": "middle",
      "font-size": 13,
      "font-weight": 700,
      fill: colour("critical"),
    },
    "▲",
    s("title", {}, `batch ${count(t.batch)}: ${t.problem ?? "does not fit"}`),
  );
}

/** The largest batch that fits. */
function largest({ f, x }: Plan, batch: number): SVGElement[] {
  const colour = theme(),
    at = x(batch),
    floor = f.top + f.height,
    text = count(batch),
    left = at + wide(text, 13, 700) + 10 > f.left + f.width;
  return [
    s("line", {
      x1: at,
      x2: at,
      y1: f.top,
      y2: floor,
      stroke: colour("fine"),
      "stroke-dasharray": "2 3",
    }),
    s(
      "text",
      {
        x: at + (left ? -8 : 8),
        y: floor - 10,
        "text-anchor": left ? "end" : "start",
        "font-size": 13,
        "font-weight": 700,
        fill: colour("fine"),
      },
      text,
    ),
  ];
}
