// What is selected, as chips at the lower edge of the page: each says what it is, and a click takes
// it away.

import { commandLine, count, duration } from "../lib/format";
import { chosen, none, type Selection } from "../state/selection";
import type { Store } from "../state/store";
import { h } from "./dom";

/** What the moments of a page are. */
export type Moments = "time" | "step" | "event";

/** What the page's moments are, and what a process is called. */
export interface Units {
  moments: Moments;
  process?: (id: number) => string;
}

interface Chip {
  fields: (keyof Selection)[];
  title: string;
  text: string;
}

/** A moment in words. Events are counted from one before the first. */
export const momentText = (n: number, moments: Moments): string =>
  moments === "time"
    ? duration(n)
    : moments === "step"
      ? `step ${count(n)}`
      : n <= 0
        ? "before the first event"
        : `after event ${count(n - 1)}`;

/** A stretch in words. */
export const stretchText = ([from, to]: [number, number], moments: Moments): string =>
  moments === "time"
    ? `${duration(from)} to ${duration(to)}`
    : moments === "step"
      ? `step ${count(from)} to ${count(to)}`
      : `event ${count(Math.max(from - 1, 0))} to ${count(to - 1)}`;

/** What there is to say of a selection. What is in view and how it is drawn is not a selection. */
function chips(of: Selection, { moments, process }: Units): Chip[] {
  const all: [boolean, keyof Selection, string, string][] = [
    [of.range !== null, "range", "stretch", of.range ? stretchText(of.range, moments) : ""],
    [of.at !== null, "at", "moment", of.at === null ? "" : momentText(of.at, moments)],
    [of.process !== 0, "process", "process", process?.(of.process) || String(of.process)],
    [of.phase !== "", "phase", "phase", of.phase],
    [of.module !== "", "module", "module", of.module],
    [of.line !== "", "line", "line", of.line],
    [of.category !== "", "category", "category", of.category],
    [of.only !== "", "only", of.colour, of.only],
    [of.block !== null, "block", "block", of.block === null ? "" : count(of.block)],
    [of.search !== "", "search", "search", commandLine([of.search])],
  ];
  return all.flatMap(([is, field, title, text]) => (is ? [{ fields: [field], title, text }] : []));
}

/** The chips of a page. They lie over its lower edge, so nothing moves when one comes. */
export function chosenBar<S extends Selection>(
  page: Store<S>,
  units: () => Units | null,
): HTMLElement {
  const bar = h("div", {
    class: "chosen",
    role: "region",
    "aria-label": "What is selected",
    hidden: "",
  });
  let from: EventTarget | null = null; // what had the focus before a chip did
  bar.addEventListener("focusin", (e) => {
    if (!bar.contains(e.relatedTarget as Node | null) && e.relatedTarget) from = e.relatedTarget;
  });
  const away = (fields: (keyof Selection)[]) =>
    page.set(Object.fromEntries(fields.map((f) => [f, none[f]])) as Partial<S>);
  const draw = () => {
    const of = units(),
      all = of ? chips(page.get(), of) : [],
      focus = bar.contains(document.activeElement);
    bar.hidden = all.length === 0;
    document.documentElement.classList.toggle("has-chosen", all.length > 0);
    const button = (chip: Chip) => {
      const b = h(
        "button",
        { type: "button", class: "chip", title: `Take the ${chip.title} away (z undoes)` },
        h("span", {}, chip.title),
        h("b", {}, chip.text),
        h("i", { "aria-hidden": "true" }, "×"),
      );
      b.addEventListener("click", () => away(chip.fields));
      return b;
    };
    const clear = h("button", { type: "button", class: "plain" }, "Clear");
    clear.addEventListener("click", () => away(all.flatMap((c) => c.fields)));
    bar.replaceChildren(...all.map(button), ...(all.length > 1 ? [clear] : []));
    if (focus)
      (
        bar.querySelector("button") ??
        (from instanceof HTMLElement && from.isConnected ? from : document.querySelector("main"))
      )?.focus({ preventScroll: true });
  };
  page.follow([...chosen], draw);
  // what processes are called is known once their report is
  addEventListener("hightide:named", draw);
  return bar;
}
