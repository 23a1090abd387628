// The contents of a page: a row of links to its sections, which stays in view and says which of
// them is looked at.

import { h } from "../dom";
import "./contents.css";

export interface Contents {
  element: HTMLElement;
  /** Goes so many sections on. */ step(by: number): void;
}

const fewest = 4,
  tables = /^table-/;

interface Entry {
  id: string;
  title: string;
  at: HTMLElement;
  link: HTMLAnchorElement;
}

/**
 * Follows what sections a place has; names are short ones by their ids. Where there are fewer than
 * four it is hidden.
 */
export function contents(place: HTMLElement, names: ReadonlyMap<string, string>): Contents {
  const element = h("nav", { class: "contents", "aria-label": "On this page", hidden: "" });
  let entries: Entry[] = [],
    drawn = 0,
    looked = "";
  const build = () => {
    drawn = 0;
    const found = sectionsOf(place, names),
      of = found.map(({ id, title }) => `${id} ${title}`).join("\n");
    if (of === looked) return mark();
    looked = of;
    entries = found.map((s) => ({ ...s, link: h("a", { href: `#${s.id}` }, s.title) }));
    for (const { link, at } of entries)
      link.addEventListener("click", (e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey) return;
        e.preventDefault();
        to(at);
      });
    if (entries.length < fewest) entries = [];
    element.replaceChildren(...entries.map((e) => e.link));
    element.hidden = entries.length === 0;
    mark();
  };
  const soon = () => {
    if (!drawn) drawn = requestAnimationFrame(build);
  };
  const current = () => {
    const covered = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0,
      end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    return end && scrollY > 0
      ? entries.length - 1
      : entries.findLastIndex(({ at }) => at.getBoundingClientRect().top <= covered + 12);
  };
  const mark = () => {
    const now = current();
    entries.forEach(({ link }, i) => {
      if (i === now) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    });
    const link = entries[now]?.link;
    if (link && element.scrollWidth > element.clientWidth)
      element.scrollTo({ left: link.offsetLeft - (element.clientWidth - link.offsetWidth) / 2 });
    else if (now < 0) element.scrollTo({ left: 0 });
  };
  let marking = 0;
  addEventListener(
    "scroll",
    () => {
      if (!marking)
        marking = requestAnimationFrame(() => {
          marking = 0;
          mark();
        });
    },
    { passive: true },
  );
  new MutationObserver(soon).observe(place, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ["hidden"],
  });
  build();
  return {
    element,
    step: (by) => {
      const to_ = entries[Math.min(Math.max(current() + by, 0), entries.length - 1)];
      if (to_) to(to_.at);
    },
  };
}

/** The sections that are shown and lie in no other, tables as one. */
function sectionsOf(
  place: HTMLElement,
  names: ReadonlyMap<string, string>,
): { id: string; title: string; at: HTMLElement }[] {
  const all = [...place.querySelectorAll<HTMLElement>("section[id]")].filter(
    (s) => !s.parentElement?.closest("section") && s.checkVisibility(),
  );
  const first = all.findIndex((s) => tables.test(s.id));
  return all
    .filter((s, i) => !tables.test(s.id) || i === first)
    .map((at) => ({
      id: at.id,
      title: tables.test(at.id)
        ? "Tables"
        : (names.get(at.id) ?? at.querySelector("h1, h2")?.textContent ?? at.id),
      at,
    }));
}

const settlingMs = 2_000;
let settling = new AbortController();

/**
 * Shows a section, which the keyboard goes on from. Panels on the way are drawn as they come into
 * view: it stays where it was led to meanwhile.
 */
function to(section: HTMLElement): void {
  const title = section.querySelector<HTMLElement>("h1, h2") ?? section;
  title.tabIndex = -1;
  section.scrollIntoView({ block: "start" });
  title.focus({ preventScroll: true });
  settling.abort();
  const { signal } = (settling = new AbortController());
  const again = new ResizeObserver(() =>
    section.scrollIntoView({ block: "start", behavior: "instant" }),
  );
  again.observe(document.body);
  signal.addEventListener("abort", () => again.disconnect());
  for (const by of ["wheel", "touchstart", "keydown", "pointerdown"])
    addEventListener(by, () => settling.abort(), { signal, passive: true });
  setTimeout(() => {
    if (!signal.aborted) settling.abort();
  }, settlingMs);
}
