// The page of one run: its parts in their order. Each part draws itself again when something that
// it shows has changed.

import type { Process, Report, StackSet } from "../../../api";
import { processName } from "../../../state/report";
import { h } from "../../../views/dom";
import { views, type View } from "../../../views";
import { heapFlames, type Again } from "../../../views/flames";
import { growth } from "../../../views/growth";
import { header } from "../../../views/header";
import { timeline } from "../../../views/timeline";
import { get, query } from "../../api";
import { busy, failure } from "../../parts";
import type { App } from "../../state";
import type { Shown } from "../page";
import { comments } from "./comments";
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

/** Views that this page draws by parts of its own, and parts beside them. */
const own: ReadonlyMap<View, PartOf[]> = new Map<View, PartOf[]>([
  [header, [panel(header), rescue]],
  [timeline, [tracksPart]],
  [growth, [panel(growth), output]],
  [heapFlames, [heap]],
]);

const parts: PartOf[] = [...views.flatMap((view) => own.get(view) ?? [panel(view)]), comments];

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
