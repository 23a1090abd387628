// Two curves of memory over each other, as a picture that can be saved.

import { canvas, fitted, s } from "../draw/svg";
import { theme } from "../draw/theme";
import type { Courses } from "../lib/bothcourses";
import { byteTick, bytes, count } from "../lib/format";
import { moment, ticks } from "../lib/scales";
import { savedPicture } from "./saved";

const tall = 250, left = 66, foot = 34, head = 8;
const words = { time: "time since each began", step: "optimizer steps", event: "events of the allocator" };

export function bothCourses(of: Courses, name: string): HTMLElement {
  return savedPicture(() => `courses-${name}`, () => `${name}: memory by ${words[of.along]}`, (width) => drawn(of, width)).element;
}

function drawn({ along, before, after }: Courses, width: number): SVGSVGElement {
  const colour = theme(), scale = along === "time" ? 1e9 : 1, xs = [before, after].flatMap((c) => [c.x[0] ?? 0, c.x[c.x.length - 1] ?? 0]);
  const [from, to] = [along === "step" ? Math.min(...xs) : 0, Math.max(...xs, 1)], top = Math.max(1, [before, after].reduce((n, c) => c.y.reduce((m, v) => Math.max(m, v), n), 0)) * 1.04;
  const x = (v: number) => left + ((v - from) / (to - from || 1)) * (width - left - 14), y = (v: number) => head + (1 - v / top) * (tall - head - foot);
  const svg = canvas(width, tall, `${before.title} before, at most ${bytes(before.y.reduce((n, v) => Math.max(n, v), 0))}, and after, at most ${bytes(after.y.reduce((n, v) => Math.max(n, v), 0))}, by ${words[along]}`);
  for (const t of ticks(top, "bytes", 5)) svg.append(s("line", { x1: left, x2: width - 14, y1: y(t), y2: y(t), stroke: colour("grid") }), s("text", { x: left - 8, y: y(t) + 4, fill: colour("muted"), "font-size": 11, "text-anchor": "end" }, byteTick(t)));
  const steps = ticks(to - from, along === "time" ? "ns" : "count", Math.max(2, width / 150)).map((t) => t / scale), apart = (steps[1] ?? 1) - (steps[0] ?? 0);
  for (const t of steps) svg.append(s("text", { x: x(from + t * scale), y: tall - 16, fill: colour("muted"), "font-size": 11, "text-anchor": "middle" }, along === "time" ? moment(t, apart) : count(from + t)));
  svg.append(s("text", { x: width - 14, y: tall - 2, fill: colour("muted"), "font-size": 11, "text-anchor": "end" }, words[along]));
  [before, after].forEach((c, i) => svg.append(s("path", { d: c.x.map((v, k) => `${k ? "L" : "M"}${x(v).toFixed(1)} ${y(c.y[k]!).toFixed(1)}`).join(""), fill: "none", stroke: colour(i ? "curve-0" : "curve-7"), "stroke-width": 1.75, "stroke-linejoin": "round", ...(i ? {} : { "stroke-dasharray": "6 3" }) })));
  [before, after].forEach((c, i) => svg.append(s("line", { x1: left + i * 0.5 * (width - left), x2: left + i * 0.5 * (width - left) + 18, y1: tall - 5, y2: tall - 5, stroke: colour(i ? "curve-0" : "curve-7"), "stroke-width": 2, ...(i ? {} : { "stroke-dasharray": "6 3" }) }),
    fitted(`${i ? "after" : "before"}: ${c.title}`, Math.max(60, (width - left) * (i ? 0.5 : 0.46) - 24 - (i ? 150 : 0)), { x: left + i * 0.5 * (width - left) + 24, y: tall - 1, fill: colour("text"), "font-size": 11 })));
  return svg;
}
