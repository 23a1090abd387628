// How the peak of a program changed from commit to commit, and which lines a change is made of.

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
    { search = "", tag = "", at = "", by = "" } = app.get().params,
    body = h("div", {}, busy()),
    text = field("Text in the name or command", search),
    tags = field("Tag, as project=ranker", tag);
  const set = (change: Record<string, string>) =>
    app.set({
      params: Object.fromEntries(
        Object.entries({ ...app.get().params, ...change }).filter(([, v]) => v),
      ),
    });
  text.addEventListener("change", () => set({ search: text.value.trim(), at: "" }));
  tags.addEventListener("change", () => set({ tag: tags.value.trim(), at: "" }));
  void projects(tags, asking.signal);
  let stop = () => {};
  const ask = () => {
    body.replaceChildren(busy());
    get<Trend>(query("/trend", { search, tag }), asking.signal).then(
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
      h("h1", {}, "The peak, from commit to commit"),
      h("div", { class: "tools trend-tools" }, text, tags),
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

/** Offers the projects of a team's server as tags. */
async function projects(tags: HTMLInputElement, signal: AbortSignal): Promise<void> {
  const list = await get<ProjectList>("/projects", signal).catch(() => null);
  if (!list?.projects.length) return;
  tags.setAttribute("list", "trend-projects");
  tags.after(
    h(
      "datalist",
      { id: "trend-projects" },
      ...list.projects.map((p) => h("option", { value: `project=${p.name}` })),
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
