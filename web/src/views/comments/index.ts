// What people say of a run: on the server's page, and in a file.

import type { Comment, Report } from "../../api";
import { duration, wallClock } from "../../lib/format";
import type { PageStore } from "../../state/page";
import { h, section } from "../dom";
import "./comments.css";

/** A report as a file has it, with what people said of the run until it was written. */
export type Commented = Report & { comments?: Comment[] };

export function comments(report: Commented, page: PageStore): HTMLElement | null {
  if (!report.comments?.length) return null;
  const all = report.comments.map((c) => comment(c, (at) => page.set({ at }), null));
  return section("comments", "Comments", h("ol", { class: "comments" }, ...all));
}

/** One comment: who, when, of what, and the text as it was written. */
export function comment(
  c: Comment,
  go: (at: number) => void,
  drop: (() => void) | null,
): HTMLElement {
  const moment =
      c.at_ns !== undefined &&
      h("button", { type: "button", class: "plain" }, `at ${duration(c.at_ns)}`),
    gone = drop && h("button", { type: "button", class: "plain" }, "Delete");
  if (moment) moment.addEventListener("click", () => go(c.at_ns!));
  gone?.addEventListener("click", drop!);
  return h(
    "li",
    {},
    h(
      "p",
      { class: "hint" },
      h("b", {}, c.by),
      ` ${wallClock(c.made_wall_ns)} `,
      moment,
      c.finding ? ` on ${c.finding} ` : " ",
      gone,
    ),
    h("p", { class: "said" }, c.text),
  );
}
