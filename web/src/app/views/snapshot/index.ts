// A snapshot: the answer in one breath with its key figures, its blocks to explore, what else is to
// be said by the views of the one-file report, and the way to what other settings would do.

import "../../../style/forms.css";
import type { Report } from "../../../api";
import { complete } from "../../../state/report";
import { views } from "../../../views";
import { courses } from "../../../views/course";
import { reserved, segments } from "../../../views/segments";
import { cards } from "../../../views/cards";
import { h } from "../../../views/dom";
import { header, remedy } from "../../../views/header";
import { get, query } from "../../api";
import { busy, failure } from "../../parts";
import { chosen } from "../../../state/selection";
import { sameOn, type App } from "../../state";
import type { Shown } from "../page";
import { explorer } from "../explorer";

/** The explorer has the course of the memory and the segments. */
const others = views
  .filter((view) => view !== header && view !== cards && view !== courses)
  .map((view) => (view === segments ? reserved : view));

export function snapshotPage(app: App, part: string): Shown {
  const asking = new AbortController(),
    id = decodeURIComponent(part),
    answer = h("div", { class: "answer-first" }, busy(3, 64)),
    body = h("div", {});
  const ask = () =>
    void get<Report>(
      query(`/snapshots/${encodeURIComponent(id)}/report`, { page: "true" }),
      asking.signal,
    ).then(
      (raw) => {
        const report = complete(raw);
        document.title = `${report.run.name || id} · hightide`;
        if (remedy(report)) {
          whatIf.classList.add("primary");
          whatIf.textContent = "What would avoid it?";
        }
        answer.replaceChildren(...[header, cards].flatMap((view) => view(report) ?? []));
        body.replaceChildren(...others.flatMap((view) => view(report, app) ?? []));
      },
      (e: unknown) => {
        if (asking.signal.aborted) return;
        answer.replaceChildren();
        body.replaceChildren(failure(e, ask));
      },
    );
  // the report takes a server longer than the blocks, which are to be there first
  const blocks = explorer(app, id, ask);
  const whatIf = h(
    "a",
    { class: "button" },
    "What if the allocator were set otherwise, or the GPU another?",
  );
  app.follow([...chosen], (state) => {
    whatIf.setAttribute("href", sameOn(state, `/snapshots/${encodeURIComponent(id)}/whatif`));
  }); // the same moment and block there
  return {
    element: h(
      "div",
      { class: "job-page" },
      answer,
      h("p", { class: "ways" }, whatIf),
      blocks.element,
      body,
    ),
    ...(blocks.keys ? { keys: blocks.keys } : {}),
    ...(blocks.commands ? { commands: blocks.commands } : {}),
    close: () => {
      asking.abort();
      blocks.close?.();
    },
  };
}
