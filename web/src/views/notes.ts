import type { Report } from "../api";
import { h } from "../lib/dom";
import { count } from "../lib/format";

/** What was not seen, how it was sampled, and what made this page. */
export function notes(report: Report): HTMLElement {
  const { run } = report;
  return h("footer", {},
    report.notes.length > 0 && h("section", { id: "notes" }, h("h2", {}, "How this was seen"), h("ul", {}, ...report.notes.map((n) => h("li", {}, n)))),
    report.dropped > 0 && h("p", {}, `${count(report.dropped)} records were dropped on the way.`),
    h("p", { class: "hint" }, `hightide ${run.version} · run ${run.id} · ${new Date(run.start_wall_ns / 1e6).toISOString().replace("T", " ").slice(0, 19)} UTC`));
}
