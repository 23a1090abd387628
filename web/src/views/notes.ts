import type { Report } from "../api";
import { count, wallClock } from "../lib/format";
import { h, rich, section } from "./dom";

/** What was not seen, and how the rest was. */
export function notes(report: Report): HTMLElement | null {
  const lost = report.dropped > 0 && `${count(report.dropped)} records were lost on the way: figures that count allocations can be low by what they held.`;
  const all = [...report.notes, ...(lost && !report.notes.some((n) => n.includes("lost")) ? [lost] : [])];
  return all.length ? section("notes", "How this was seen, and what was not", h("ul", { class: "notes" }, ...all.map((n) => h("li", {}, ...rich(n))))) : null;
}

/** What made this page, and of which run. */
export function footer({ run, version }: Report): HTMLElement {
  const facts = [run.version ? `hightide ${run.version}` : "hightide", run.id && `run ${run.id}`, run.start_wall_ns > 1e15 && wallClock(run.start_wall_ns),
    run.host?.cpu, run.host?.kernel && `Linux ${run.host.kernel}`, `report form ${version}`, "keys: t colours; in the picture ← → + − 0"];
  return h("footer", {}, facts.filter(Boolean).join(" · "));
}
