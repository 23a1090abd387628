// Two recordings' memory on one axis: time since each began, optimizer steps, or events of the
// allocator. Everything here is pure.

import type { Label, Report } from "../api";
import { curves, type Curve } from "../state/curves";

export interface Course {
  title: string;
  label?: Label;
  x: number[];
  y: number[];
}
export type Along = "time" | "step" | "event";
export interface Courses {
  along: Along;
  before: Course;
  after: Course;
}

/** The ways in which two can be laid over each other; none where they share no curve. */
export function courses(p: Report, q: Report): Courses[] {
  const found: Courses[] = [],
    same = sameCurve(p, q),
    events = [p, q].map(ofEvents);
  if (same) {
    found.push({ along: "time", before: same[0], after: same[1] });
    const [a, b] = [inSteps(p, same[0]), inSteps(q, same[1])];
    if (a && b) found.push({ along: "step", before: a, after: b });
  }
  if (events[0] && events[1]) found.push({ along: "event", before: events[0], after: events[1] });
  // no kernel ran on an imagined device: its time is not the program's, so what it did step by step
  // comes first
  return p.imagined || q.imagined
    ? found.sort((a, b) => Number(a.along === "time") - Number(b.along === "time"))
    : found;
}

/** The first curve of one that the other has too. */
function sameCurve(p: Report, q: Report): [Course, Course] | null {
  const others = curves(q, 0).filter((c) => !c.limit);
  for (const c of curves(p, 0)) {
    const other = others.find((o) => o.name === c.name);
    if (!c.limit && other) return [course(p, c), course(q, other)];
  }
  return null;
}

const course = (of: Report, { title, name, x, y }: Curve): Course => {
  const { label } = of.series.find((s) => s.name === name) ?? {};
  return { title, ...(label ? { label } : {}), x: [...x], y: [...y] };
};

/**
 * A curve over time as one over the steps of the process that took the most; null: there are too
 * few.
 */
export function inSteps(report: Report, course: Course): Course | null {
  const of = new Map<number, [step: number, time: number][]>();
  for (const s of report.steps)
    of.set(s.process, [...(of.get(s.process) ?? []), [s.step, s.time_ns]]);
  const steps = [...of.values()]
    .sort((a, b) => b.length - a.length)[0]
    ?.sort((a, b) => a[1] - b[1]);
  if (!steps || steps.length < 2) return null;
  const x: number[] = [],
    y: number[] = [];
  let k = 0;
  course.x.forEach((t, i) => {
    while (k + 2 < steps.length && steps[k + 1]![1] < t) k++;
    const [[s0, t0], [s1, t1]] = [steps[k]!, steps[k + 1]!],
      at = t1 > t0 ? s0 + ((t - t0) / (t1 - t0)) * (s1 - s0) : s0;
    if (at >= s0 - 1 && t <= steps[steps.length - 1]![1]) {
      x.push(at);
      y.push(course.y[i]!);
    } // what is before the first step and after the last belongs to none
  });
  return x.length > 1 ? { ...course, x, y } : null;
}

/** What tensors held after each event, on the device that held most. */
function ofEvents(report: Report): Course | null {
  const fullest = [...(report.allocators ?? [])]
    .filter((a) => a.timeline && a.timeline.events.length > 1)
    .sort((a, b) => b.peak.allocated_bytes - a.peak.allocated_bytes)[0];
  if (!fullest) return null;
  const t = fullest.timeline!;
  return {
    label: fullest.label,
    title: `allocated on ${fullest.name ?? `device ${fullest.device}`}`,
    x: t.events,
    y: t.events.map((_, i) => t.by_category.reduce((n, band) => n + (band.bytes[i] ?? 0), 0)),
  };
}
