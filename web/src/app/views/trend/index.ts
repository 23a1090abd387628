// How the peak of a program changed from commit to commit, and which lines a change is made of.

import type { Commit, ProjectList, Trend } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { copier, h, section } from "../../../views/dom";
import { get, query } from "../../api";
import { busy, empty, failure } from "../../parts";
import type { App } from "../../state";
import { difference } from "../diff";
import type { Shown } from "../page";
import { curve, short } from "./curve";
import "./trend.css";

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
        const shown = show(trend, at, (c) => set({ at: c.first_run }));
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

/** What is known of the commits: a sentence, the curve, the table, and what is left out. */
function show(trend: Trend, at: string, choose: (c: Commit) => void) {
  const { commits, left_out } = trend,
    left = left_out.length ? h("p", { class: "hint" }, `Left out: ${left_out.join(", ")}.`) : null;
  if (!commits.length) {
    const nothing = empty(
      "No run that can be compared",
      "Runs are compared by the commit that was checked out where they began. " +
        "Run each commit twice, so that the noise is known.",
      "hightide run --tag project=ranker -- python train.py",
      left,
    );
    return { parts: [nothing], stop: () => {} };
  }
  const place = h("div", { class: "trend-place" }),
    draw = () => {
      const chosen = commits.findIndex((c) => c.first_run === at);
      place.replaceChildren(
        curve(commits, Math.max(place.clientWidth, 320), chosen, (i) => {
          if (commits[i]!.before_run) choose(commits[i]!);
        }),
      );
    },
    sized = new ResizeObserver(draw);
  sized.observe(place);
  const course = section(
    "trend",
    "Course",
    h("p", { class: "answer" }, answer(trend)),
    place,
    h(
      "p",
      { class: "hint" },
      `A point is the mean of ${trend.what} of a commit's runs, ${trend.label}; the stroke ` +
        "through it reaches from their lowest to their highest. The band stands around the " +
        "commit before: within it a change may be noise.",
    ),
  );
  return {
    parts: [course, section("commits", "Commits", table(commits, at, choose), left)],
    stop: () => sized.disconnect(),
  };
}

/** What the trend says, in one sentence. */
function answer({ commits, noise_unknown }: Trend): string {
  const changed = commits.filter((c) => c.verdict === "changed");
  if (changed.length)
    return (
      `${changed.length === 1 ? "1 commit" : `${count(changed.length)} commits`} of ` +
      `${count(commits.length)} changed the peak by more than its noise: ` +
      `${changed
        .map((c) => `${short(c)} by ${signed(c.change_bytes!)}`)
        .slice(-3)
        .join(", ")}.`
    );
  if (commits.length === 1) return "There is one commit, and nothing to hold it against.";
  if (noise_unknown) return `The noise is not known: ${noise_unknown}.`;
  return "No commit changed the peak by more than its noise, where that is known.";
}

const signed = (v: number) => (v < 0 ? `−${bytes(-v)}` : `+${bytes(v)}`);

function table(commits: readonly Commit[], at: string, choose: (c: Commit) => void): HTMLElement {
  const head = ["Commit", "Runs", "Peak", "Lowest", "Highest", "Change", "Noise", "Verdict", "Why"];
  const rows = commits.map((c) => {
    const why = h("button", { type: "button", class: "button" }, "Lines");
    why.setAttribute("aria-label", `Which lines ${short(c)} changed`);
    why.addEventListener("click", () => choose(c));
    return h(
      "tr",
      {
        class: c.verdict === "changed" ? "is-changed" : "",
        "aria-current": `${c.first_run === at}`,
      },
      h("td", { class: "text" }, h("a", { href: `/runs/${c.first_run}` }, short(c))),
      h("td", {}, count(c.runs)),
      ...[c.mean_bytes, c.lowest_bytes, c.highest_bytes].map((v) => h("td", {}, bytes(v))),
      h("td", {}, c.change_bytes === undefined ? "" : signed(c.change_bytes)),
      h("td", {}, c.noise_bytes === undefined ? "" : `±${bytes(c.noise_bytes)}`),
      h("td", { class: "text" }, c.verdict ?? ""),
      h("td", {}, c.before_run ? why : null),
    );
  });
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "commits" },
      h("thead", {}, h("tr", {}, ...head.map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, ...rows.reverse()),
    ),
  );
}

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
