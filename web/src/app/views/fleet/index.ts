// What every machine of a team holds: who is idle, what leaks, what is far too large;
// by GPU, person and job.

import type { Overview } from "../../../api";
import { h } from "../../../views/dom";
import { holdings, unknown } from "../../../views/fleet";
import { get } from "../../api";
import { busy, empty, failure } from "../../parts";
import type { App } from "../../state";
import type { Shown } from "../page";

/** How often the page asks again: machines tell every 30 s. */
const again = 15_000;

export function fleetPage(_: App): Shown {
  const asking = new AbortController(),
    body = h("div", {}, busy());
  let timer = 0;
  const ask = () => {
    get<Overview>("/fleet", asking.signal).then(
      (v) => {
        body.replaceChildren(...show(v));
        timer = window.setTimeout(ask, again);
      },
      (e: unknown) => {
        if (!asking.signal.aborted) body.replaceChildren(failure(e, ask));
      },
    );
  };
  ask();
  return {
    element: h("div", { class: "job-page fleet" }, h("h1", {}, "What our machines hold"), body),
    close: () => {
      asking.abort();
      clearTimeout(timer);
    },
  };
}

const link = (id: string) => h("a", { href: `/runs/${id}` }, id);

function show(v: Overview): HTMLElement[] {
  if (v.machines.length) return holdings(v, link);
  const nobody = empty(
    "No machine was heard of",
    "hightide watch, as a service on each machine, tells what it holds. Its key is of an " +
      "account that stands in machines of [fleet] in the team's file.",
    "hightide watch --server https://… --machine NAME",
  );
  return [nobody, unknown(v)].filter((part) => part !== null);
}
