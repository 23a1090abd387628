// Jobs: what was asked for since the server began, and the form for a matrix.

import "../../../style/forms.css";
import { duration, wallClock } from "../../../lib/format";
import { h, section } from "../../../views/dom";
import { jobs, over, toneOfJob, wordOfJob, type Job } from "../../jobs";
import { empty, failure } from "../../parts";
import type { App } from "../../state";
import type { Shown } from "../page";
import { jobPanel } from "../../panels/job";

const again = 2000;

/** Where a job is shown with what its kind has to show. */
const pageOf = (j: Job) =>
  ["imagine", "fit", "tune"].includes(j.kind) ? `/${j.kind}?job=${j.id}` : `/jobs?job=${j.id}`;

export function jobsPage(app: App): Shown {
  const asking = new AbortController(),
    list = h("div", {}),
    { job } = app.get().params;
  const panel = job ? jobPanel(job, { done: () => ask() }) : null;
  let timer = 0;
  const ask = () => {
    clearTimeout(timer);
    void jobs(asking.signal).then(
      (all) => {
        list.replaceChildren(
          all.length
            ? table(all)
            : empty(
                "No job was asked for yet",
                "Imagined GPUs, searches of a batch and matrices stand here while they run, " +
                  "and until the server ends.",
                "hightide ui --allow-exec",
              ),
        );
        if (all.some((j) => !over(j.state))) timer = window.setTimeout(ask, again);
      },
      (e: unknown) => {
        if (!asking.signal.aborted) list.replaceChildren(failure(e, ask));
      },
    );
  };
  ask();
  return {
    element: h(
      "div",
      { class: "job-page" },
      h("h1", {}, "Jobs"),
      panel?.element,
      section("jobs", "Since the server began", list),
    ),
    close: () => {
      asking.abort();
      clearTimeout(timer);
      panel?.close();
    },
  };
}

function table(all: Job[]): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "Jobs" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...["What", "State", "Asked", "Took"].map((t) =>
            h("th", { scope: "col", class: t === "Took" ? "number" : "" }, t),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        ...all.map((j) =>
          h(
            "tr",
            {},
            h("td", { class: "text" }, h("a", { href: pageOf(j), title: j.title }, j.title)),
            h("td", {}, h("span", { class: `outcome ${toneOfJob(j)}` }, wordOfJob(j))),
            h("td", {}, wallClock(j.asked_ns)),
            h(
              "td",
              { class: "number" },
              j.started_ns ? duration((j.ended_ns ?? Date.now() * 1e6) - j.started_ns) : "–",
            ),
          ),
        ),
      ),
    ),
  );
}
