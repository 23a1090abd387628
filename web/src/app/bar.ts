// The bar that stays: the name, the pages, light or dark.

import { bar as pageBar } from "../views/header";
import type { App } from "./state";
import { h } from "../views/dom";
import { pages } from "./views";

export function bar(app: App): HTMLElement {
  const element = pageBar(app, []);
  const nav = element.querySelector("nav")!;
  nav.setAttribute("aria-label", "Pages");
  const links = pages.filter((p) => p.title).map((p) => ({ at: p.at, link: h("a", { href: p.at }, p.title) }));
  nav.append(...links.map((l) => l.link));
  app.follow(["path"], ({ path }) => {
    for (const { at, link } of links) {
      if (at === path) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  });
  return element;
}
