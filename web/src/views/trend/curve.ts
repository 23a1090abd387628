// The curve of a trend: a point a commit, how far its runs lie apart, and within which band a
// change may be noise. The band stands around the commit before: a point outside it has changed.

import type { Commit } from "../../api";
import { byteTick, bytes } from "../../lib/format";

const height = 240,
  left = 76,
  right = 12,
  top = 12,
  bottom = 28,
  mostPoints = 300; // beyond that only changes have points of their own

const space = "http://www.w3.org/2000/svg";

function shape(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, `${value}`);
  if (text) element.textContent = text;
  return element;
}

/** Round bytes between two values, three or so. */
export function ticks(low: number, high: number): number[] {
  const step = 2 ** Math.ceil(Math.log2(Math.max((high - low) / 4, 1))),
    first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, i) => first + i * step);
}

/** The lowest and highest that a curve has to show. */
export function extent(commits: readonly Commit[]): [low: number, high: number] {
  let low = Infinity,
    high = -Infinity;
  for (const [i, c] of commits.entries()) {
    const around = commits[i - 1]?.mean_bytes ?? c.mean_bytes,
      noise = i > 0 ? (c.noise_bytes ?? 0) : 0;
    low = Math.min(low, c.lowest_bytes, around - noise);
    high = Math.max(high, c.highest_bytes, around + noise);
  }
  const room = Math.max((high - low) * 0.08, high * 0.01, 1);
  return [Math.max(0, low - room), high + room];
}

/** Draws a trend as wide as its place, and says which commit was chosen. */
export function curve(
  commits: readonly Commit[],
  width: number,
  chosen: number,
  choose: ((i: number) => void) | null,
): SVGElement {
  const [low, high] = extent(commits),
    x = (i: number) => left + ((width - left - right) * (i + 0.5)) / commits.length,
    half = (width - left - right) / commits.length / 2,
    y = (v: number) => top + (height - top - bottom) * (1 - (v - low) / (high - low)),
    svg = shape("svg", { class: "trend", width, height, "aria-hidden": "true" });
  for (const v of ticks(low, high))
    svg.append(
      shape("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }),
      shape("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, byteTick(v)),
    );
  for (const [i, c] of commits.entries()) {
    const before = commits[i - 1];
    if (before && c.noise_bytes !== undefined)
      svg.append(
        shape("rect", {
          class: "noise",
          x: x(i) - half,
          width: 2 * half,
          y: y(before.mean_bytes + c.noise_bytes),
          height: Math.max(
            1,
            y(before.mean_bytes - c.noise_bytes) - y(before.mean_bytes + c.noise_bytes),
          ),
        }),
      );
  }
  const points = commits.map((c, i) => `${x(i)},${y(c.mean_bytes)}`);
  svg.append(shape("polyline", { class: "mean", points: points.join(" ") }));
  for (const [i, c] of commits.entries()) {
    svg.append(
      shape("line", {
        class: "spread",
        x1: x(i),
        x2: x(i),
        y1: y(c.lowest_bytes),
        y2: y(c.highest_bytes),
      }),
    );
    const changed = c.verdict === "changed",
      failed = isFailed(c);
    if (commits.length > mostPoints && !changed && !failed && i !== chosen) continue;
    const point = shape("circle", {
      class: ["point", changed && "is-changed", i === chosen && "is-chosen"]
        .filter(Boolean)
        .join(" "),
      cx: x(i),
      cy: y(c.mean_bytes),
      r: changed ? 6 : 4,
    });
    const checks = (c.statuses ?? []).map((s) => `\n${s.context}: ${s.state} ${s.description}`);
    point.append(shape("title", {}, `${short(c)}: ${bytes(c.mean_bytes)}${checks.join("")}`));
    if (choose && c.before_run) {
      point.classList.add("leads");
      point.addEventListener("click", () => choose(i));
    }
    svg.append(point);
    if (failed)
      svg.append(
        shape("circle", { class: "is-failed", cx: x(i), cy: y(c.mean_bytes), r: changed ? 10 : 8 }),
      );
  }
  const every = Math.ceil((commits.length * 84) / (width - left - right));
  for (let i = 0; i < commits.length; i += every)
    svg.append(
      shape("text", { x: x(i), y: height - 8, "text-anchor": "middle" }, short(commits[i]!)),
    );
  return svg;
}

/** Whether a check of it failed, such as of its budgets. */
export const isFailed = (c: Commit) =>
  (c.statuses ?? []).some((s) => s.state === "failure" || s.state === "error");

/** A commit as people know it; + says that files differed from it. */
export const short = (c: Commit) => c.commit.slice(0, 10) + (c.dirty ? "+" : "");
