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

export function fitCurve(seen: FitSeen, width: number): SVGSVGElement {
  const colour = theme(),
    total = seen.total ?? seen.trials.find((t) => t.total_bytes)?.total_bytes,
    tall = 300;
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
    left: 66,
    top: key.height + 8,
    width: width - 66 - 14,
    height: tall,
    top_value: highest,
    unit: "bytes",
  };
  const x = (batch: number) => f.left + (batch / farthest) * f.width,
    floor = f.top + f.height;
  svg.append(key.element, grid(f, true));
  for (const v of ticks(farthest, "count", Math.max(3, f.width / 80)))
    svg.append(
      s(
        "text",
        { x: x(v), y: floor + 18, "text-anchor": "middle", fill: colour("muted") },
        tick(v, "count"),
      ),
    );
  svg.append(
    s(
      "text",
      {
        x: f.left + f.width,
        y: floor + 36,
        "text-anchor": "end",
        fill: colour("muted"),
        "font-size": 11,
      },
      "batch",
    ),
  );
  if (total) {
    const y = up(f, total),
      tight = seen.tight ? up(f, total - seen.tight) : y;
    if (seen.tight)
      svg.append(
        s("rect", {
          x: f.left,
          y,
          width: f.width,
          height: Math.max(0, tight - y),
          fill: colour("warning"),
          "fill-opacity": 0.16,
        }),
      );
    svg.append(
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
        `${bytes(total)} of the device${seen.tight ? `; shaded: too little room to be sure` : ""}`,
        f.width - 10,
        { x: f.left + 6, y: y - 7, fill: colour("limit"), "font-size": 11, "font-weight": 600 },
      ),
    );
  }
  const line = through(seen.trials);
  if (line) {
    // up to where it meets the limit, or to the last batch
    const end =
      line.slope > 0 && total ? Math.min(farthest, (total - line.at(0)) / line.slope) : farthest;
    svg.append(
      s("line", {
        x1: x(0),
        y1: up(f, line.at(0)),
        x2: x(end),
        y2: up(f, line.at(end)),
        stroke: colour("accent"),
        "stroke-width": 1.75,
        "stroke-dasharray": "4 4",
      }),
    );
  }
  for (const t of seen.trials) {
    const at = x(t.batch),
      value = used(t);
    if (t.ok && value !== undefined)
      svg.append(
        s(
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
        ),
      );
    else
      svg.append(
        s(
          "text",
          {
            x: at,
            y: up(f, total ?? highest) + 5,
            "text-anchor": "middle",
            "font-size": 13,
            "font-weight": 700,
            fill: colour("critical"),
          },
          "▲",
          s("title", {}, `batch ${count(t.batch)}: ${t.problem ?? "does not fit"}`),
        ),
      );
  }
  if (seen.largest) {
    const at = x(seen.largest),
      text = count(seen.largest),
      left = at + wide(text, 13, 700) + 10 > f.left + f.width;
    svg.append(
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
    );
  }
  return svg;
}
