// The page of a matrix:  columns in the page ──▶ model ──▶ view, which the address holds ──▶ sections, which follow it.

import "../style/theme.css";
import "../style/page.css";
import "../style/print.css";
import "../style/matrix.css";
import { darkAtFirst, elsewhere, painted } from "../draw/paint";
import { embedded } from "../lib/embedded";
import { store } from "../state/store";
import { h } from "../views/dom";
import { bar } from "../views/header";
import { Model, type Packed } from "./model";
import { first, read, written, type Page } from "./state";
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
const sections: ((model: Model, page: Page) => HTMLElement | null)[] = [header, advice, filters, baseline, bars, scaling, heat, ratios, cells, drill, notes, footer];
/** Those that the bar links to. */
const parts: [id: string, title: string][] = [["advice", "What follows"], ["filters", "Filters"], ["baseline", "Baseline"], ["bars", "Bars"], ["scaling", "Growth"], ["heat", "Heat map"], ["ratios", "Ratios"], ["cells", "Cells"], ["notes", "Notes"]];

const app = document.getElementById("app")!;
const packed = await embedded<Packed>("hightide-matrix");
if (packed) open(new Model(packed));
else app.append(h("p", {}, "This page has no matrix in it. Make one with: hightide bench matrix.yaml --html matrix.html"));

function open(model: Model): void {
  const start = first(model, darkAtFirst()), page: Page = store(read(location.hash, start, model));
  document.title = `${model.packed.name || "matrix"} · hightide`;
  painted(page);
  app.append(...sections.flatMap((section) => section(model, page) ?? []));
  const top = bar(page, parts.filter(([id]) => document.getElementById(id)));
  app.before(top);
  kept(model, page, start, top);
  addEventListener("keydown", (e) => { // one key for all charts: what is this?
    if (e.key !== "i" || elsewhere(e)) return;
    const buttons = [...document.querySelectorAll<HTMLButtonElement>("button.info")], open = buttons.some((b) => b.getAttribute("aria-expanded") === "false");
    for (const b of buttons) if ((b.getAttribute("aria-expanded") === "false") === open) b.click();
  });
  setTimeout(() => go(page.get().at, "instant")); // once the charts have their height
}

const go = (id: string, behavior: ScrollBehavior = "auto") => { if (id) document.getElementById(id)?.scrollIntoView({ behavior }); };

/** The address holds the view, so links to parts of the page are a part of it too. */
function kept(model: Model, page: Page, start: ReturnType<typeof first>, top: HTMLElement): void {
  const fields = Object.keys(start).filter((k) => k !== "dark") as (keyof typeof start)[];
  page.follow(fields, (view) => {
    const hash = written(view, start);
    if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  });
  addEventListener("hashchange", () => {
    const { dark, ...view } = read(location.hash, start, model);
    page.set(view);
    go(view.at);
  });
  top.addEventListener("click", (e) => {
    const id = e.target instanceof Element ? e.target.closest("a")?.getAttribute("href")?.slice(1) : undefined;
    if (id === undefined) return;
    e.preventDefault();
    page.set({ at: id });
    go(id);
  });
}
