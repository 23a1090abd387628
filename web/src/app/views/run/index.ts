// The page of one run: its parts in their order. Each part draws itself again when something that
// it shows has changed.

import type { Process, Report, StackSet } from "../../../api";
import { processName } from "../../../state/report";
import { capacity } from "../../../views/capacity";
import { cards } from "../../../views/cards";
import { change } from "../../../views/change";
import { composition } from "../../../views/composition";
import { courses } from "../../../views/course";
import { h } from "../../../views/dom";
import { findings } from "../../../views/findings";
import { flames, heapFlames, type Again } from "../../../views/flames";
import { growth } from "../../../views/growth";
import { header } from "../../../views/header";
import { footer, notes } from "../../../views/notes";
import { ranks } from "../../../views/ranks";
import { segments } from "../../../views/segments";
import { tables } from "../../../views/tables";
import { waterfall } from "../../../views/waterfall";
import { get, query } from "../../api";
import { busy, failure } from "../../parts";
import type { App } from "../../state";
import type { Shown } from "../page";
import { feed } from "./feed";
import { output } from "./output";
import { panel } from "./panels";
import type { PartOf } from "./part";
import { rescue } from "./rescue";
import { tracksPart } from "./tracks";

/** The heap by call stack follows the moment or the stretch that is chosen on the timelines. */
const heap: PartOf = (feed, app) => {
  const again: Again = {
    heapAt: (process, at_ns, from_ns) =>
      get<StackSet>(query(`${feed.path}/heap`, { process, at_ns, from_ns }), feed.closed),
    looks: new Map(),
  };
  return panel((report, page) => heapFlames(report, page, again))(feed, app);
};

/** The parts in the order in which the page has them. Add yours here. */
const parts: PartOf[] = [
  panel(header),
  rescue,
  panel(cards),
  panel(capacity),
  panel(findings),
  panel(waterfall),
  panel(change),
  tracksPart,
  panel(ranks),
  panel(growth),
  output,
  panel(composition),
  heap,
  panel(courses),
  panel(flames),
  panel(segments),
  panel(tables),
  panel(notes),
  panel(footer),
];

export function runPage(app: App, part: string): Shown {
  const id = decodeURIComponent(part),
    state = h("p", { class: "live-state", role: "status" }),
    waiting = h("div", {}, busy()),
    place = h("div", { class: "run", hidden: "" });
  let all: Process[] = [];
  const fed = feed(id, {
    live: () => {
      place.classList.add("going-on");
      state.replaceChildren(h("span", { class: "outcome live" }, "live"), " recorded just now");
    },
    ended: (text) => {
      place.classList.remove("going-on");
      state.textContent = text;
    },
    gone: () => {
      place.classList.remove("going-on");
      state.replaceChildren(
        h("span", { class: "outcome bad" }, "deleted"),
        " The run was deleted: what is shown here was read before. ",
        h("a", { href: "/" }, "To the runs"),
      );
    },
    failed: (problem, again) => {
      waiting.replaceChildren(failure(problem, again));
    },
    shown: ({ run, processes }: Report) => {
      document.title = `${run.name || run.id} · hightide`;
      all = processes;
      dispatchEvent(new Event("hightide:named"));
      void Promise.all(made.map((p) => p.ready)).then(() => {
        waiting.replaceChildren();
        place.hidden = false;
      });
    },
  });
  const made = parts.map((make) => make(fed, app));
  place.append(...made.map((p) => p.element)); // shown together, so that none pushes down another
  fed.start();
  return {
    element: h("div", {}, state, waiting, place),
    close: () => {
      fed.close();
      for (const p of made) p.close?.();
    },
    process: (of) => {
      const p = all.find((o) => o.id === of);
      return p ? processName(p, all) : "";
    },
    keys: made.flatMap((p) => p.keys ?? []),
    commands: () => made.flatMap((p) => p.commands?.() ?? []),
  };
}
