// The panels of a report as parts of a run's page. A panel is drawn again when something that it
// reads has changed; the others stay as they are.

import type { Report } from "../../../api";
import { branch, type Branch } from "../../../state/store";
import { h } from "../../../views/dom";
import type { View } from "../../../views";
import type { App, State } from "../../state";
import type { Feed } from "./feed";
import type { PartOf } from "./part";

/** A part that shows what a view of the report shows. */
export const panel =
  (view: View): PartOf =>
  (feed: Feed, app: App) => {
    const element = h("div", { class: "panel" });
    let read = new Map<keyof Report, unknown>(),
      of: Branch<State> | null = null;
    feed.report((report) => {
      if (of && [...read].every(([key, before]) => report[key] === before)) return;
      of?.close();
      read = new Map();
      replace(element, view(noting(report, read), (of = branch(app))));
    });
    return { element };
  };

/**
 * A report that notes which of its fields are read, and what was there. Later readings count too: a
 * chart reads when it is drawn.
 */
function noting(report: Report, read: Map<keyof Report, unknown>): Report {
  return new Proxy(report, {
    get(of, key: keyof Report) {
      if (!read.has(key)) read.set(key, of[key]);
      return of[key];
    },
  });
}

const focusable = "button, a[href], input, select, summary, [tabindex]";

/**
 * Puts a panel drawn anew in the place of the one before: what is unfolded or typed stays so, the
 * focus stays where it was.
 */
function replace(place: HTMLElement, fresh: HTMLElement | null): void {
  const all = <T extends HTMLElement>(selector: string) => [...place.querySelectorAll<T>(selector)];
  const open = all<HTMLDetailsElement>("details").map((d) => d.open),
    typed = all<HTMLInputElement>("input").map((i) => i.value),
    focus = all(focusable).indexOf(document.activeElement as HTMLElement);
  // what is below stays where it is while it is drawn again
  place.style.minHeight = `${place.offsetHeight}px`;
  place.replaceChildren(...(fresh ? [fresh] : []));
  requestAnimationFrame(() => {
    place.style.minHeight = "";
  });
  all<HTMLDetailsElement>("details").forEach((d, i) => {
    if (open[i] !== undefined) d.open = open[i];
  });
  all<HTMLInputElement>("input").forEach((field, i) => {
    if (typed[i]) {
      field.value = typed[i];
      field.dispatchEvent(new Event("input"));
    }
  });
  if (focus >= 0) all(focusable)[focus]?.focus({ preventScroll: true });
}
