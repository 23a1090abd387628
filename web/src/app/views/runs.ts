// The list of runs.

import { bytes } from "../../lib/format";
import { h } from "../../views/dom";
import { Problem, runs } from "../api";
import type { App } from "../state";
import type { Shown } from ".";

export function runsPage(_app: App): Shown {
  const asking = new AbortController();
  const element = h("section", { id: "runs", "aria-busy": "true" }, h("h1", {}, "Runs"));
  void runs("", asking.signal).then(({ runs }) => {
    element.setAttribute("aria-busy", "false");
    element.append(h("ul", {}, ...runs.map((run) => h("li", {}, h("a", { href: `/runs/${run.id}` }, run.name || run.id), ` ${bytes(run.headline_bytes ?? run.peak_host_rss_bytes ?? 0)}`))));
  }, (problem: unknown) => { if (problem instanceof Problem) element.append(h("p", { class: "banner", role: "alert" }, problem.message)); });
  return { element, close: () => asking.abort() };
}
