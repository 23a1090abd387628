// A page that is not of a run, as a file: the course of a peak, or what machines hold.

import type { Overview, Trend } from "./api";
import { wallClock } from "./lib/format";
import { h } from "./views/dom";
import { holdings, unknown } from "./views/fleet";
import { course, leftOut } from "./views/trend";

/** What such a file has. */
export interface Saved {
  trend?: Trend;
  fleet?: Overview;
  of?: string;
  made_wall_ns: number;
}

const emptyOf = (text: string, more: HTMLElement | null) => [h("p", {}, text), more];

/** Its parts, their names for the contents, and its title. */
export function savedPage({ trend, fleet, of = "", made_wall_ns: made }: Saved): {
  title: string;
  element: HTMLElement;
  names: Map<string, string>;
} {
  const title = trend ? "The peak, from commit to commit" : "What our machines hold",
    parts = trend
      ? trend.commits.length
        ? course(trend, "", null).parts
        : emptyOf("There is no run that can be compared.", leftOut(trend))
      : fleet!.machines.length
        ? holdings(fleet!, (id) => h("code", {}, id))
        : emptyOf("No machine was heard of.", unknown(fleet!)),
    whose = trend ? (of ? `Of runs ${of}. ` : "Of all runs that its maker saw. ") : "";
  return {
    title,
    element: h(
      "div",
      { class: trend ? "job-page" : "job-page fleet" },
      h("h1", {}, title),
      h(
        "p",
        { class: "hint" },
        `${whose}As it was at ${wallClock(made)}; this file does not change.`,
      ),
      ...parts,
    ),
    names: new Map([
      ["trend", "Course"],
      ["commits", "Commits"],
      ["look", "To look at"],
      ["machines", "Machines"],
      ["people", "People"],
      ["held-by-jobs", "Jobs"],
      ["costs", "Costs"],
      ["unknown", "Not known"],
    ]),
  };
}
