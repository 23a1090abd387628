// The bar that stays: the name, the pages, the palette, the keys, light or dark.

import { bar as pageBar } from "../views/header";
import type { App } from "./state";
import { h } from "../views/dom";
import { keyCap } from "./frame/sheet";
import { status } from "./api";
import { pages } from "./views";

export function bar(
  app: App,
  act: { find: () => void; keys: () => void; share: () => void },
): HTMLElement {
  const element = pageBar(app, []),
    nav = element.querySelector("nav")!,
    skip = element.querySelector(".skip")!;
  nav.setAttribute("aria-label", "Pages");
  skip.textContent = "Skip to the page";
  element
    .querySelector(".brand")!
    .replaceWith(
      h("a", { class: "brand", href: "/" }, ...element.querySelector(".brand")!.childNodes),
    );
  const links = pages
    .filter((p) => p.title)
    .map((p) => ({ page: p, link: h("a", { href: p.at }, p.title) }));
  nav.append(...links.filter((l) => !l.page.needs).map((l) => l.link));
  const asked = links.filter((l) => l.page.needs);
  if (asked.length)
    void status().then(
      (is) => {
        if (is.outside)
          nav.replaceChildren(); // a link shows one run, and there are no other pages
        else
          for (const { page, link } of asked)
            if (is[page.needs!]) nav.querySelector('a[href="/jobs"]')!.before(link);
      },
      () => {
        /* the server is away: the banner says so */
      },
    );
  app.follow(["path"], ({ path }) => {
    for (const { page, link } of links) {
      if (page.path.test(path) || (page.at === "/" && path.startsWith("/runs/")))
        link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  });
  const find = h(
    "button",
    { type: "button", class: "find", "aria-keyshortcuts": "Control+K" },
    h("span", {}, "Find or do"),
    keyCap("Ctrl+K"),
  );
  const keys = h(
    "button",
    { type: "button", class: "toggle ask", "aria-label": "Keys", title: "Keys (key ?)" },
    "?",
  );
  find.addEventListener("click", act.find);
  keys.addEventListener("click", act.keys);
  const share = h(
    "button",
    {
      type: "button",
      class: "toggle share",
      title: "A link to this page, or the page as one HTML file",
    },
    "Share",
  );
  share.addEventListener("click", act.share);
  element.querySelector(".toggle")!.before(find, share, keys);
  return element;
}
