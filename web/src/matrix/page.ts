// The sections of a matrix and the view that its address holds: the one-file page and the live one
// have the same.

import { store } from "../state/store";
import type { Model } from "./model";
import { first, read, written, type Page, type View } from "./state";
import { bars } from "./views/bars";
import { baseline } from "./views/baseline";
import { cells } from "./views/cells";
import { drill } from "./views/drill";
import { filters } from "./views/filters";
import { advice, footer, header, notes } from "./views/header";
import { heat } from "./views/heat";
import { ratios } from "./views/ratios";
import { scaling } from "./views/scaling";

/** The sections in the order in which the page has them. Add yours here. */
const sections: ((model: Model, page: Page, closed: AbortSignal) => HTMLElement | null)[] = [
  header,
  advice,
  filters,
  baseline,
  bars,
  scaling,
  heat,
  ratios,
  cells,
  drill,
  notes,
  footer,
];
/** Those that a bar links to. */
export const parts: [id: string, title: string][] = [
  ["advice", "What follows"],
  ["filters", "Filters"],
  ["baseline", "Baseline"],
  ["bars", "Bars"],
  ["scaling", "Growth"],
  ["heat", "Heat map"],
  ["ratios", "Ratios"],
  ["cells", "Cells"],
  ["notes", "Notes"],
];

export interface Opened {
  page: Page;
  start: View;
  elements: HTMLElement[];
  close(): void;
}

/** The sections of a matrix with the view that the address holds, which they follow and change. */
export function opened(model: Model, dark: boolean): Opened {
  const start = first(model, dark),
    page: Page = store(read(location.hash, start, model));
  const end = new AbortController(),
    elements = sections.flatMap((section) => section(model, page, end.signal) ?? []);
  kept(model, page, start, end.signal);
  return { page, start, elements, close: () => end.abort() };
}

export const go = (id: string, behavior: ScrollBehavior = "auto") => {
  if (id) document.getElementById(id)?.scrollIntoView({ behavior });
};

/** The address holds the view. */
function kept(model: Model, page: Page, start: View, signal: AbortSignal): void {
  const fields = Object.keys(start).filter((k) => k !== "dark") as (keyof View)[];
  page.follow(fields, (view) => {
    const hash = written(view, start);
    if (!signal.aborted && hash !== location.hash.slice(1))
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  });
  addEventListener(
    "hashchange",
    () => {
      const { dark, ...view } = read(location.hash, start, model);
      page.set(view);
      go(view.at);
    },
    { signal },
  );
}

/** A bar's links to parts of the page: where the reader is belongs to the view too. */
export function linked(bar: HTMLElement, page: Page): void {
  bar.addEventListener("click", (e) => {
    const id =
      e.target instanceof Element
        ? e.target.closest("a")?.getAttribute("href")?.slice(1)
        : undefined;
    if (id === undefined) return;
    e.preventDefault();
    page.set({ at: id });
    go(id);
  });
}
