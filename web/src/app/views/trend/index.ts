// How the peak of a program, or another figure, changed from commit to commit, and which lines a
// change is made of.

import type { Commit, ProjectList, Trend } from "../../../api";
import { copier, h, section } from "../../../views/dom";
import { course, leftOut } from "../../../views/trend";
import { short } from "../../../views/trend/curve";
import { get, query } from "../../api";
import { busy, empty, failure } from "../../parts";
import type { App } from "../../state";
import { difference } from "../diff";
import type { Shown } from "../page";

export function trendPage(app: App): Shown {
  const asking = new AbortController(),
    { search = "", tag = "", of = "", at = "", by = "" } = app.get().params,
    body = h("div", {}, busy()),
    text = field("Text in the name or command", search),
    tags = field("Tag, as project=ranker", tag),
    figure = field("Figure: peak, growth, net.py:forward …", of);
  const set = (change: Record<string, string>) =>
    app.set({
      params: Object.fromEntries(
        Object.entries({ ...app.get().params, ...change }).filter(([, v]) => v),
      ),
    });
  text.addEventListener("change", () => set({ search: text.value.trim(), at: "" }));
  tags.addEventListener("change", () => set({ tag: tags.value.trim(), at: "" }));
  figure.addEventListener("change", () => set({ of: figure.value.trim(), at: "" }));
  figure.setAttribute("list", "trend-figures");
  void projects(tags, asking.signal);
  let stop = () => {};
  const ask = () => {
    body.replaceChildren(busy());
    get<Trend>(query("/trend", { search, tag, of }), asking.signal).then(
      (trend) => {
        if (!trend.commits.length) return body.replaceChildren(nothing(trend));
        const shown = course(trend, at, (c) => set({ at: c.first_run }));
        stop = shown.stop;
        body.replaceChildren(...shown.parts);
        const chosen = trend.commits.find((c) => c.first_run === at && c.before_run);
        if (chosen) body.append(lines(app, chosen, by, asking.signal));
      },
      (e: unknown) => {
        if (!asking.signal.aborted) body.replaceChildren(failure(e, ask));
      },
    );
  };
  ask();
  return {
    element: h(
      "div",
      { class: "job-page" },
      h("h1", {}, `${!of || of === "peak" ? "The peak" : of}, from commit to commit`),
      h(
        "div",
        { class: "tools trend-tools" },
        text,
        tags,
        figure,
        offered("trend-figures", figures),
      ),
      body,
    ),
    close: () => {
      asking.abort();
      stop();
    },
  };
}

const field = (what: string, value: string) =>
  h("input", { type: "search", placeholder: what, "aria-label": what, value });

/** What a trend may be of, beside lines and functions. */
const figures = ["peak", "allocated", "reserved", "growth", "fragmentation"];

const offered = (id: string, values: readonly string[]) =>
  h("datalist", { id }, ...values.map((value) => h("option", { value })));

/** Offers the projects of a team's server as tags. */
async function projects(tags: HTMLInputElement, signal: AbortSignal): Promise<void> {
  const list = await get<ProjectList>("/projects", signal).catch(() => null);
  if (!list?.projects.length) return;
  tags.setAttribute("list", "trend-projects");
  tags.after(
    offered(
      "trend-projects",
      list.projects.map((p) => `project=${p.name}`),
    ),
  );
}

const nothing = (trend: Trend) =>
  empty(
    "No run that can be compared",
    "Runs are compared by the commit that was checked out where they began. " +
      "Run each commit twice, so that the noise is known.",
    "hightide run --tag project=ranker -- python train.py",
    leftOut(trend),
  );

/** What a commit's change is made of: the two runs beside it, as a comparison shows them. */
function lines(app: App, c: Commit, by: string, signal: AbortSignal): HTMLElement {
  const place = h("div", {}, busy()),
    a = c.before_run!,
    b = c.first_run,
    command = `hightide diff ${a} ${b}`;
  const ask = () =>
    void difference(app, a, b, by, signal).then(
      (made) => {
        place.replaceChildren(made.answer, ...made.parts);
        document.title = "Trend · hightide";
      },
      (e: unknown) => {
        if (!signal.aborted) place.replaceChildren(failure(e, ask));
      },
    );
  ask();
  return section(
    "lines",
    `What ${short(c)} changed`,
    h(
      "p",
      {},
      h("a", { href: query("/diff", { a, b }) }, "The same as a page of its own"),
      ", or ",
      copier(command, { class: "command" }, h("code", {}, command)),
    ),
    place,
  );
}
