// A report as the views want it: no lists missing, and the questions that several views ask.

import type { Process, Report, Series } from "../api";

/** Whose memory something shows; empty: the whole run's, or the machine's. */
export type Subject = Pick<
  Series,
  "process" | "device" | "framework" | "file" | "device_number" | "of"
>;

/** Fills what an empty run leaves out, so that views need not ask. */
export function complete(raw: Report): Report {
  return {
    ...raw,
    processes: raw.processes ?? [],
    findings: raw.findings ?? [],
    series: raw.series ?? [],
    phases: raw.phases ?? [],
    steps: raw.steps ?? [],
    marks: raw.marks ?? [],
    notes: raw.notes ?? [],
    dropped: raw.dropped ?? 0,
    headline: { ...raw.headline, clauses: raw.headline.clauses ?? [] },
    tables: (raw.tables ?? []).map((t) => ({ ...t, columns: t.columns ?? [], rows: t.rows ?? [] })),
  };
}

/** The whole of the timeline, ns since the run began: never empty, and no curve ends outside it. */
export function span(report: Report): [number, number] {
  const ends = report.series.filter((s) => s.x_unit === "ns").map((s) => s.x[s.x.length - 1] ?? 0);
  return [0, Math.max(report.headline.duration_ns, ...ends, 1)];
}

/** A curve's title with whose it is: "allocated, main on cuda:0 (torch)". */
export const fullTitle = (s: Series) =>
  !s.of ? s.title : `${s.title}${s.process ? ", " : " on "}${s.of}`;

/** A process by the name that people know it by. */
export function processName(p: Process, all: Process[]): string {
  const role = p.rank !== undefined ? `rank ${p.rank}` : p.role || "process";
  const alone =
    all.filter((o) => (o.rank !== undefined ? `rank ${o.rank}` : o.role || "process") === role)
      .length === 1;
  return alone ? role : `${role} · pid ${p.pid}`;
}

/** Processes that have curves or steps of their own, the one at the peak first. */
export function choices(report: Report): Process[] {
  const seen = new Set([
    ...report.series.map((s) => s.process ?? 0),
    ...report.steps.map((s) => s.process),
  ]);
  const main = report.headline.peak.process;
  return report.processes
    .filter((p) => seen.has(p.id))
    .sort((a, b) => Number(b.id === main) - Number(a.id === main) || a.id - b.id);
}

/**
 * The process that phases and steps are shown of when all are chosen: the one that leads the
 * training.
 */
export function leader(report: Report, chosen: number): number {
  if (chosen !== 0) return chosen;
  const tally = new Map<number, number>();
  for (const s of report.steps) tally.set(s.process, (tally.get(s.process) ?? 0) + 1);
  if (tally.size === 0)
    for (const b of report.phases) tally.set(b.process, (tally.get(b.process) ?? 0) + 1);
  const peak = report.headline.peak.process;
  if (peak !== undefined && tally.has(peak)) return peak;
  return [...tally].sort((a, b) => b[1] - a[1])[0]?.[0] ?? peak ?? report.processes[0]?.id ?? 0;
}
