// What people say of a run, of a moment of it or of a finding, and a form to say more.

import type { Comment, CommentList, Report } from "../../../api";
import { duration } from "../../../lib/format";
import { comment } from "../../../views/comments";
import { h, section } from "../../../views/dom";
import { get, post, Problem, remove, status } from "../../api";
import { toast } from "../../frame/toast";
import { givenUp } from "../../parts";
import type { App } from "../../state";
import type { PartOf } from "./part";

const told = (e: unknown) => {
  if (!givenUp(e)) toast(e instanceof Error ? e.message : String(e), { bad: true });
};

/** What comments call a finding. */
const nameOf = (f: Report["findings"][number]) =>
  f.file ? `${f.kind} ${f.file}:${f.line ?? 0}` : f.kind;

export const comments: PartOf = (feed, app) => {
  const element = h("div", { class: "panel" }),
    at = `${feed.path}/comments`,
    list = h("ol", { class: "comments" }),
    on = h("select", { "aria-label": "What it is about" });
  let findings: string[] = [],
    may = false;
  const draw = (all: Comment[]) => {
    list.replaceChildren(
      ...all.map((c) => comment(c, (at) => app.set({ at }), may ? () => drop(c) : null)),
    );
    element.hidden = !may && all.length === 0;
  };
  const drop = (c: Comment) =>
    void remove<CommentList>(`${at}/${c.id}`).then((left) => draw(left.comments), told);
  const ask = () => get<CommentList>(at, feed.closed).then(({ comments: all }) => draw(all));
  const choices = () => {
    const moment = app.get().at,
      chosen = on.value;
    on.replaceChildren(
      h("option", { value: "" }, "on the whole run"),
      ...(moment === null
        ? []
        : [h("option", { value: "at" }, `on the moment ${duration(moment)}`)]),
      ...findings.map((f) => h("option", { value: `f${f}` }, `on ${f}`)),
    );
    if ([...on.options].some((o) => o.value === chosen)) on.value = chosen;
  };
  feed.report((report) => {
    findings = [...new Set(report.findings.map(nameOf))];
    choices();
  });
  app.follow(["at"], choices);
  element.hidden = true;
  const begin = (): Promise<void> =>
    Promise.all([status(), ask()]).then(
      ([is]) => {
        may = is.comments ?? false;
        element.append(section("comments", "Comments", list, may && form(at, app, on, ask)));
        return ask();
      },
      (e: unknown) => {
        // a link shows no comments, and what goes wrong here does not hold up the page
        const status = e instanceof Problem ? e.status : 404;
        if (status === 0 || status === 503)
          addEventListener("hightide:back", () => void begin(), {
            once: true,
            signal: feed.closed,
          });
        else if (status !== 404 || !(e instanceof Problem)) told(e);
      },
    );
  return { element, ready: begin() };
};

function form(
  at: string,
  app: App,
  on: HTMLSelectElement,
  again: () => Promise<void>,
): HTMLElement {
  const text = h("textarea", {
      rows: "2",
      maxlength: "4000",
      required: "",
      "aria-label": "Comment",
      placeholder: "What others should know of this run",
    }),
    send = h("button", { type: "submit", class: "button" }, "Comment"),
    element = h("form", { class: "comment-form" }, text, h("p", {}, on, " ", send));
  element.addEventListener("submit", (e) => {
    e.preventDefault();
    const moment = app.get().at;
    void post<Comment>(at, {
      text: text.value,
      ...(on.value === "at" && moment !== null ? { at_ns: Math.round(moment) } : {}),
      ...(on.value.startsWith("f") ? { finding: on.value.slice(1) } : {}),
    })
      .then(() => {
        text.value = "";
        return again();
      })
      .catch(told);
  });
  return element;
}
