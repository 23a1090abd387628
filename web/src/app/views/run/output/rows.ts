// A window onto rows of which there may be millions: only those in view are elements.

import { ink, type Ink, type Rgb } from "../../../../lib/terminal/ink";
import type { Row, Run } from "../../../../lib/terminal/screen";
import type { Style } from "../../../../lib/terminal/style";
import { theme } from "../../../../draw/theme";
import { count } from "../../../../lib/format";
import { h } from "../../../../views/dom";

const rowHeight = 18,
  tallestPixels = 8_000_000; // browsers lay out no taller elements

export interface Shows {
  rows(): number;
  row(n: number): Row | undefined;
  picked(): [number, number] | null;
  words(): string;
  now(): number;
}

export interface RowView {
  element: HTMLElement;
  /** Draws what is in view; where the end is followed, the end. */
  draw(): void;
  goTo(row: number): void;
  by(rows: number): void;
  end(): void;
  first(): number;
  page(): number;
  following(): boolean;
  wrap(on: boolean): void;
  /** No more is to come: a short output needs no tall window. */
  settle(): void;
}

export function rowView(
  shows: Shows,
  on: { pick(row: number, more: boolean): void; moved(): void },
): RowView {
  const list = h("div", { class: "term-rows" }),
    view = h("div", { class: "term-view" }, list),
    space = h("div", { class: "term-space" }, view);
  const element = h(
    "div",
    { class: "term", tabindex: "0", role: "group", "aria-label": "Rows of the terminal output" },
    space,
  );
  const place = standing(element, () => shows.rows());
  let wraps = false,
    drawn: Drawn | null = null,
    waiting = 0;
  const later = () => {
    waiting ||= requestAnimationFrame(paint);
  };
  const paint = () => {
    waiting = 0;
    space.style.height = `${place.shown()}px`;
    view.style.height = `${place.height()}px`;
    if (place.follows()) place.end();
    const rows = shows.rows(),
      fits = Math.ceil(place.height() / rowHeight) + 1,
      from = Math.min(Math.floor(place.at() / rowHeight), Math.max(rows - fits, 0));
    const some = Array.from({ length: Math.min(fits, rows - from) }, (_, i) => shows.row(from + i)),
      picked = shows.picked();
    const dark = document.documentElement.dataset.theme,
      key = JSON.stringify([picked, shows.words(), shows.now(), dark]);
    const fresh: Drawn = { rows: some, from, key };
    if (!drawn || !same(drawn, fresh)) {
      drawn = fresh;
      const page = colours();
      list.style.setProperty("--digits", String(count(Math.max(rows, 1)).length));
      list.replaceChildren(
        ...some.map((r, i) => line(from + i, r, page, picked, shows.words(), shows.now())),
      );
    }
    const last = from + some.length >= rows;
    list.style.transform =
      wraps && last && place.follows()
        ? `translateY(${Math.min(place.height() - list.offsetHeight, 0)}px)`
        : `translateY(${from * rowHeight - place.at()}px)`;
    on.moved();
  };
  scrolls(element, place, later);
  list.addEventListener("click", (e) => {
    const number = (e.target as Element).closest<HTMLElement>(".term-number");
    if (number) on.pick(Number(number.dataset.row), e.shiftKey);
  });
  const move = (pixels: number) => {
    place.move(pixels);
    later();
  };
  new ResizeObserver(later).observe(element);
  return {
    element,
    draw: later,
    goTo: (row) => move((row + 0.5) * rowHeight - place.height() / 2),
    by: (rows) => move(place.at() + rows * rowHeight),
    end: () => {
      place.end();
      later();
    },
    first: () => Math.floor(place.at() / rowHeight),
    page: () => Math.max(Math.floor(place.height() / rowHeight) - 1, 1),
    following: () => place.follows(),
    settle: () => {
      const tall = Math.max(shows.rows(), 3) * rowHeight + 18;
      element.style.height = `min(${tall}px, ${tallOf(element)})`;
    },
    wrap: (on) => {
      element.classList.toggle("wraps", (wraps = on));
      drawn = null;
      later();
    },
  };
}

/** What is drawn: the rows from one on, and what else they depend on. */
interface Drawn {
  rows: (Row | undefined)[];
  from: number;
  key: string;
}

const same = (a: Drawn, b: Drawn): boolean =>
  a.from === b.from &&
  a.key === b.key &&
  a.rows.length === b.rows.length &&
  a.rows.every((r, i) => alike(r, b.rows[i]));

const tallOf = (element: HTMLElement): string =>
  getComputedStyle(element).getPropertyValue("--tall");

/** Where a window onto many rows stands, in pixels of them from the first. */
interface Standing {
  at(): number;
  height(): number;
  shown(): number; // pixels that the browser lays out
  exact(): boolean; // they are all there are
  follows(): boolean; // the end is what is shown, whatever is added
  end(): void;
  move(pixels: number): void;
  scrolled(): boolean; // takes over where the browser scrolled to; false: it did not
}

function standing(element: HTMLElement, rows: () => number): Standing {
  let at = 0,
    follows = true,
    set = -1;
  const height = () => element.clientHeight;
  const whole = () => rows() * rowHeight;
  const shown = () => Math.max(Math.min(whole(), tallestPixels), height());
  const most = () => Math.max(whole() - height(), 0);
  const place = (pixels: number) => {
    at = Math.min(Math.max(pixels, 0), most());
    const reach = shown() - height();
    set = most() > 0 && reach > 0 ? at * (reach / most()) : 0;
    if (Math.abs(element.scrollTop - set) >= 1) element.scrollTop = set;
    set = element.scrollTop;
  };
  return {
    at: () => at,
    height,
    shown,
    exact: () => whole() <= tallestPixels,
    follows: () => follows,
    end: () => {
      follows = true;
      place(most());
    },
    move: (pixels) => {
      place(pixels);
      follows = at >= most() - 2;
    },
    scrolled: () => {
      if (Math.abs(element.scrollTop - set) < 1) return false; // it was this view itself
      set = element.scrollTop;
      const reach = shown() - height();
      at = reach > 0 ? set * (most() / reach) : 0;
      follows = at >= most() - 2;
      return true;
    },
  };
}

/** The browser's own scrolling, and the wheel where that is not exact. */
function scrolls(element: HTMLElement, place: Standing, later: () => void): void {
  element.addEventListener(
    "scroll",
    () => {
      if (place.scrolled()) later();
    },
    { passive: true },
  );
  element.addEventListener(
    "wheel",
    (e) => {
      if (place.exact() || e.ctrlKey || e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
        return;
      e.preventDefault();
      const one = e.deltaMode === 1 ? rowHeight : e.deltaMode === 2 ? place.height() : 1;
      place.move(place.at() + e.deltaY * one);
      later();
    },
    { passive: false },
  );
}

const alike = (a: Row | undefined, b: Row | undefined) =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.text === b.text &&
    a.cut === b.cut &&
    a.runs.length === b.runs.length &&
    a.runs.every(
      (r, i) =>
        r.text === b.runs[i]!.text && JSON.stringify(r.style) === JSON.stringify(b.runs[i]!.style),
    ));

interface Page {
  dark: boolean;
  text: Rgb;
  back: Rgb;
}

function colours(): Page {
  const colour = theme(),
    rgb = (name: string): Rgb => {
      const c = colour(name);
      return [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)) as unknown as Rgb;
    };
  const dark = document.documentElement.dataset.theme === "dark";
  return { dark, text: rgb("text"), back: rgb("raised") };
}

function line(
  n: number,
  row: Row | undefined,
  page: Page,
  picked: [number, number] | null,
  words: string,
  now: number,
): HTMLElement {
  const chosen = picked !== null && n >= picked[0] && n <= picked[1];
  const number = h(
    "button",
    {
      type: "button",
      class: "term-number",
      tabindex: "-1",
      "data-row": String(n),
      "aria-label": `Row ${count(n + 1)}`,
      "aria-pressed": String(chosen),
    },
    count(n + 1),
  );
  const text = h("span", { class: "term-text" });
  if (row) text.append(...pieces(row, words, n === now, page));
  if (row?.cut)
    text.append(h("small", {}, ` ${count(row.cut)} more characters; the download has them`));
  return h("div", { class: chosen ? "term-row picked" : "term-row" }, number, text);
}

/**
 * The runs of a row as elements, cut where what was searched for begins and ends. Whatever is in
 * them is text.
 */
function pieces(row: Row, words: string, current: boolean, page: Page): Node[] {
  const edges: [number, number][] = [];
  const low = row.text.toLowerCase();
  if (words && low.length === row.text.length)
    for (let i = low.indexOf(words); i >= 0; i = low.indexOf(words, i + words.length))
      edges.push([i, i + words.length]);
  const out: Node[] = [];
  let at = 0;
  for (const run of row.runs) {
    let from = 0;
    for (const [a, b] of edges) {
      const begin = Math.max(a - at, from),
        end = Math.min(b - at, run.text.length);
      if (begin >= end) continue;
      if (begin > from) out.push(piece(run, run.text.slice(from, begin), page));
      out.push(h("mark", current ? { class: "now" } : {}, run.text.slice(begin, end)));
      from = end;
    }
    if (from < run.text.length) out.push(piece(run, run.text.slice(from), page));
    at += run.text.length;
  }
  return out;
}

const letters =
  typeof Intl.Segmenter === "function"
    ? new Intl.Segmenter("en", { granularity: "grapheme" })
    : null;

function piece(run: Run, text: string, page: Page): Node {
  const { style } = run,
    bare = Object.keys(style).length === 0;
  if (bare && !run.wide) return document.createTextNode(text);
  const element = style.link
    ? h("a", { href: style.link, target: "_blank", rel: "noopener noreferrer", title: style.link })
    : h("span");
  if (run.wide)
    element.append(
      ...[...(letters ? Array.from(letters.segment(text), (s) => s.segment) : text)].map((c) =>
        h("i", { class: "wide" }, c),
      ),
    );
  else element.textContent = text;
  if (style.bold) element.classList.add("b");
  if (style.italic) element.classList.add("i");
  if (style.underline) element.classList.add("u");
  if (style.strike) element.classList.add("s");
  const { fg, bg } = drawnIn(style, page);
  if (fg) element.style.color = css(fg);
  if (bg) element.style.backgroundColor = css(bg);
  return element;
}

const css = ([r, g, b]: Rgb) => `rgb(${r} ${g} ${b})`;

const inks = new Map<string, Ink>();
const mostInks = 4096;

function drawnIn(style: Style, page: Page): Ink {
  const key = `${page.dark}${style.fg}/${style.bg}/${style.dim}${style.inverse}`;
  let found = inks.get(key);
  if (!found) {
    if (inks.size >= mostInks) inks.clear();
    inks.set(key, (found = ink(style, page)));
  }
  return found;
}
