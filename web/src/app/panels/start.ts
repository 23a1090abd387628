// The foot of a form that starts something: the line to copy, and the button where the server may
// start programs.

import { commandLine } from "../../lib/format";
import { copier, h } from "../../views/dom";
import { status } from "../api";
import { begin, type Job } from "../jobs";
import { failure } from "../parts";

/**
 * What the form asks for now: the words of the line, and the job's options; a text says what is
 * missing.
 */
export interface Asked {
  line: string[];
  options: () => object;
  missing: string;
}

export function starter(
  kind: Job["kind"],
  title: string,
  began: (job: string) => void,
): { element: HTMLElement; show(asked: Asked): void } {
  const line = h("div", {}),
    missing = h("p", { class: "hint", role: "status" }),
    problem = h("div", {}),
    where = h("p", { class: "hint" }, "\u00a0");
  const go = h("button", { type: "button", class: "button primary", disabled: "" }, title);
  const leave = h(
    "p",
    { class: "banner", role: "note", hidden: "" },
    "This server starts no programs. Copy the line, or begin the server as ",
    h("code", {}, "hightide ui --allow-exec"),
    " and open the address that it prints.",
  );
  let now: Asked | null = null,
    may = false;
  const fill = () => {
    if (!now) return;
    const text = commandLine(now.line);
    line.replaceChildren(copier(text, { class: "command" }, h("code", {}, text)));
    missing.textContent = now.missing;
    go.disabled = !may || now.missing !== "";
  };
  go.addEventListener("click", () => {
    if (!now) return;
    problem.replaceChildren();
    let options: object;
    try {
      options = now.options();
    } catch (e) {
      problem.replaceChildren(failure(e));
      return;
    }
    go.disabled = true;
    void begin(kind, options).then(
      (job) => began(job.id),
      (e: unknown) => {
        problem.replaceChildren(failure(e));
        fill();
      },
    );
  });
  void status().then(
    ({ allow_exec, folder }) => {
      may = allow_exec;
      leave.hidden = may;
      go.hidden = where.hidden = !may;
      if (folder)
        where.replaceChildren(
          "Programs start in ",
          h("code", {}, folder),
          ", where the server was started.",
        );
      fill();
    },
    (e: unknown) => problem.replaceChildren(failure(e)),
  );
  return {
    element: h(
      "div",
      { class: "start" },
      line,
      h("div", { class: "start-row" }, go, missing),
      where,
      leave,
      problem,
    ),
    show: (asked) => {
      now = asked;
      fill();
    },
  };
}
