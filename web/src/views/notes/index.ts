import type { Report } from "../../api";
import { wallClock } from "../../lib/format";
import { h, rich, section } from "../dom";

/** What was not seen, and how the rest was. */
export function notes(report: Report): HTMLElement | null {
  return report.notes.length
    ? section(
        "notes",
        "What was not observed, and how the rest was",
        h("ul", { class: "notes" }, ...report.notes.map((n) => h("li", {}, ...rich(n)))),
      )
    : null;
}

/** What made this page, and of which run. */
export function footer({ run, version }: Report): HTMLElement {
  const facts = [
    run.version ? `hightide ${run.version}` : "hightide",
    run.id && `run ${run.id}`,
    run.start_wall_ns > 1e15 && wallClock(run.start_wall_ns),
    run.host?.cpu,
    run.host?.kernel && `Linux ${run.host.kernel}`,
    `report version ${version}`,
    "keys: t light or dark; in a picture ← → + − 0",
  ];
  return h("footer", {}, facts.filter(Boolean).join(" · "));
}
