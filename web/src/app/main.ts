// The live web UI:  address ──▶ state ──▶ one page ──▶ its panels, which follow the state.

import "uplot/dist/uPlot.min.css";
import "../style/theme.css";
import "../style/page.css";
import "../style/print.css";
import "../style/app.css";
import { painted } from "../draw/paint";
import { h } from "../views/dom";
import { bar } from "./bar";
import { appState, fromAddress } from "./state";
import { pages, type Shown } from "./views";

const app = appState();
painted(app);
const place = document.getElementById("app")!;
place.before(bar(app));

let shown: Shown | null = null;
app.follow(["path", "params"], ({ path }) => {
  shown?.close?.();
  document.title = "hightide";
  shown = show(path);
  place.replaceChildren(shown.element);
});

function show(path: string): Shown {
  for (const page of pages) {
    const match = page.path.exec(path);
    if (match) return page.show(app, ...match.slice(1));
  }
  return { element: h("section", {}, h("h1", {}, "There is no such page"), h("p", {}, h("a", { href: "/" }, "To the runs"))) };
}

// Links within the app change the state and load nothing.
addEventListener("click", (e) => {
  const link = (e.target as Element).closest?.("a[href^='/']");
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || link.hasAttribute("download") || link.getAttribute("target")) return;
  const to = new URL((link as HTMLAnchorElement).href);
  if (to.pathname.startsWith("/api/")) return;
  e.preventDefault();
  app.set({ ...fromAddress(to.pathname, to.search), cursor: null, shown: {} });
  scrollTo(0, 0);
});
