// From a run that ran out of memory to what was in it: the snapshot of that moment, and what other
// settings would have made of it.

import type { OpenedSnapshot } from "../../../api";
import { h } from "../../../views/dom";
import { get, query } from "../../api";
import { givenUp } from "../../parts";
import type { PartOf } from "./part";

export const rescue: PartOf = (feed) => {
  const element = h("p", { class: "ways", hidden: "" });
  let asked = false;
  feed.report(({ findings }) => {
    if (asked || !findings.some((f) => f.kind === "oom")) return;
    asked = true;
    void get<{ snapshots: OpenedSnapshot[] | null }>(
      query("/snapshots", { run: feed.id }),
      feed.closed,
    ).then(
      ({ snapshots }) => {
        // the one that was taken as memory ran out
        const of = snapshots?.find((s) => s.name.startsWith("oom")) ?? snapshots?.at(-1);
        if (!of) return;
        const at = `/snapshots/${encodeURIComponent(of.id)}`;
        element.replaceChildren(
          h("a", { class: "button primary", href: `${at}/whatif` }, "What would avoid it?"),
          h("a", { class: "button", href: at }, "The memory as it ran out, block by block"),
        );
        element.hidden = false;
      },
      (e: unknown) => {
        if (!givenUp(e)) asked = false;
      },
    );
  });
  return { element };
};
