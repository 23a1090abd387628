// One run: what its one-file report shows, from the server.

import { complete } from "../../state/report";
import { h } from "../../views/dom";
import { views } from "../../views";
import { Problem, report } from "../api";
import type { App } from "../state";
import type { Shown } from ".";

export function runPage(app: App, id: string): Shown {
  const asking = new AbortController();
  const element = h("div", { class: "run", "aria-busy": "true" });
  void report(decodeURIComponent(id), asking.signal).then((raw) => {
    const whole = complete(raw);
    document.title = `${whole.run.name || whole.run.id} · hightide`;
    element.setAttribute("aria-busy", "false");
    element.append(...views.flatMap((view) => view(whole, app) ?? []));
  }, (problem: unknown) => { if (problem instanceof Problem) element.append(h("p", { class: "banner", role: "alert" }, problem.message)); });
  return { element, close: () => asking.abort() };
}
