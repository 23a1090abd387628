// The list of runs as its page shows it: filtered, ordered, and in words. Everything here is pure.

import { commandLine } from "../lib/format";
import type { Run } from "./api";

/** How a run ended, as a filter has it. */
export type Outcome = "live" | "done" | "failed" | "cut off";

export function outcome(run: Run): Outcome {
  if (run.state === "running") return "live";
  if (run.state === "cut off") return "cut off";
  return !run.stopped && (run.signal || run.exit_code) || run.ooms > 0 ? "failed" : "done";
}

/** The memory that a run's line speaks of: the device's where there is one. */
export const peakOf = (run: Run): number | undefined =>
  run.peak_device_used_bytes ?? run.peak_reserved_bytes ?? run.peak_allocated_bytes ?? run.headline_peak_host_bytes ?? run.peak_host_pss_bytes ?? run.peak_host_rss_bytes;

/** What the reader asked for; empty texts ask for nothing. */
export interface Asked { words: string; outcome: string; verb: string; tag: string; sort: string }

export const sorts: Record<string, { title: string; by: (run: Run) => number | string | undefined; down: boolean }> = {
  started: { title: "Started", by: (r) => r.start_wall_ns, down: true },
  name: { title: "Name", by: (r) => (r.name || r.id).toLowerCase(), down: false },
  peak: { title: "Peak", by: peakOf, down: true },
  findings: { title: "Findings", by: (r) => r.findings, down: true },
  steps: { title: "Steps", by: (r) => r.steps, down: true },
  duration: { title: "Duration", by: (r) => r.duration_ns, down: true },
};

/** A sort as the address has it: a name, with - before it where it is turned round. */
export function sortOf(text: string): { name: string; down: boolean } {
  const name = text.replace(/^-/, ""), known = sorts[name];
  return known ? { name, down: text.startsWith("-") ? !known.down : known.down } : { name: "started", down: true };
}

/** The runs that are asked for, in their order; runs without the figure stand last. */
export function chosen(runs: Run[], asked: Asked): Run[] {
  const words = asked.words.toLowerCase().split(/\s+/).filter(Boolean), { name, down } = sortOf(asked.sort), by = sorts[name]!.by;
  return runs.filter((run) => (!asked.outcome || outcome(run) === asked.outcome) && (!asked.verb || run.verb === asked.verb) && (!asked.tag || tagsOf(run).includes(asked.tag)) && words.every((w) => textOf(run).includes(w)))
    .sort((a, b) => {
      const [l, r] = [by(a), by(b)];
      if (l === undefined || r === undefined) return Number(l === undefined) - Number(r === undefined) || b.start_wall_ns - a.start_wall_ns;
      return (l < r ? -1 : l > r ? 1 : 0) * (down ? -1 : 1) || b.start_wall_ns - a.start_wall_ns;
    });
}

const textOf = (run: Run) => [run.name, run.id, run.verb, run.host, commandLine(run.command ?? []), ...tagsOf(run)].join(" ").toLowerCase();

/** Tags as people write them: name=value, or name alone. */
export const tagsOf = (run: Run): string[] => Object.entries(run.tags ?? {}).map(([name, value]) => value ? `${name}=${value}` : name).sort();

/** Tags from what somebody typed, apart by commas or spaces. */
export function readTags(text: string): Record<string, string> {
  return Object.fromEntries(text.split(/[\s,]+/).filter(Boolean).map((tag) => { const [name = "", ...value] = tag.split("="); return [name, value.join("=")] as const; }).filter(([name]) => name));
}

/** A moment (ns since 1970) as people say it, seen from now (ms since 1970). */
export function when(ns: number, now: number): string {
  const seconds = Math.round(now / 1000 - ns / 1e9), date = new Date(ns / 1e6), two = (n: number) => String(n).padStart(2, "0");
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`, today = new Date(now);
  if (date.toDateString() === today.toDateString()) return `today ${clock}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}
