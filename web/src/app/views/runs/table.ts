// The rows of the list. Only those in view are in the document, all of one height, so a thousand
// runs cost what thirty do.

import { h } from "../../../views/dom";
import { columnOf, kindOfPeak, peakOf, sortOf, type Row as Run } from "../../runlist";
import { wholeEvents } from "../../frame/asshown";
import { isSpare, numbered, renewed, rowOf, type Doing } from "./row";

const beside = 6; // rows above and below the view that are there already

export interface Shown {
  runs: Run[];
  columns: string[];
  sort: string;
  picked: ReadonlySet<string>;
}

export interface Table {
  element: HTMLElement;
  show(what: Shown): void;
  /** Draws rows of these runs again, as a curve of theirs has come. */
  again(ids: string[]): void;
  /** The place of the row with the focus; -1: none has it. */
  at(): number;
  /** Gives the focus to a row, which comes into view. */
  focus(place: number): void;
  /** The cell of a run in which its name and tags stand; null: it is not in view. */
  cell(id: string): HTMLElement | null;
  close(): void;
}

interface Drawn {
  row: HTMLTableRowElement;
  run: Run;
  picked: boolean;
}

/** The elements of the table, and the box that it scrolls in. */
function partsOf() {
  const head = h("thead"),
    body = h("tbody"),
    table = h("table", { class: "runs" }, head, body),
    allTags = h("div", {
      class: "all-tags",
      popover: "auto",
      role: "group",
      "aria-label": "All tags",
    });
  const element = h(
    "div",
    { class: "scroll rows", tabindex: "0", role: "group", "aria-label": "List of runs" },
    table,
    allTags,
  );
  return { element, table, head, body, allTags };
}

export function runTable(doing: Doing): Table {
  const parts = partsOf(),
    { element, table, head, body, allTags } = parts,
    rows = new Map<string, Drawn>();
  let what: Shown = { runs: [], columns: [], sort: "", picked: new Set() },
    most = { device: 1, host: 1 },
    drawnFor = "",
    whole = false; // all rows, as on paper

  /** The row of a run: the one that is there where nothing of it has changed. */
  const drawn = (run: Run) => {
    const old = rows.get(run.id),
      picked = what.picked.has(run.id);
    if (old && ((old.run === run && old.picked === picked) || old.row.querySelector(".editing")))
      return old.row;
    const next = rowOf({ columns: what.columns, most, allTags, doing }, run, picked),
      row = old ? renewed(old.row, next, picked) : next;
    rows.set(run.id, { row, run, picked });
    return row;
  };
  const put = () => {
    const all = what.runs.length,
      tall = rowHeight(element),
      [from, to] = whole ? [0, all] : inView(element, head, all);
    const now = what.runs.slice(from, to),
      keep = new Set(now.map((r) => r.id)),
      space = (n: number) => spaceOf(n * tall, what.columns.length + 2);
    for (const [id, { row }] of rows)
      if (!keep.has(id) && !row.contains(document.activeElement)) rows.delete(id);
    const elements = now.map((run, i) => numbered(drawn(run), from + i)),
      next = [...space(from), ...elements, ...space(all - to)];
    if (next.length !== body.children.length || next.some((e, i) => e !== body.children[i]))
      arrange(body, next);
    doing.view(now);
  };
  const ends = drawAgain(element, put, (is) => (whole = is));
  return {
    element,
    show(next) {
      const of = (kind: "device" | "host") =>
        // one scale for each kind
        next.runs.reduce((n, r) => (kindOfPeak(r) === kind ? Math.max(n, peakOf(r) ?? 0) : n), 1);
      const highest = { device: of("device"), host: of("host") },
        marks = `${next.columns.join()} ${highest.device} ${highest.host}`;
      if (marks !== drawnFor) rows.clear();
      [what, most, drawnFor] = [next, highest, marks];
      table.setAttribute("aria-rowcount", String(next.runs.length + 1));
      headings(head, what, doing);
      put();
    },
    again(ids) {
      for (const id of ids) {
        const known = rows.get(id),
          cell = known?.row.querySelector("td.curve"),
          picture = known && doing.spark(known.run);
        if (cell && picture) cell.replaceChildren(picture);
      }
    },
    at: () => {
      const id = document.activeElement?.closest<HTMLElement>("tr.run")?.dataset.id;
      return id === undefined ? -1 : what.runs.findIndex((r) => r.id === id);
    },
    focus(place) {
      const run = what.runs[place];
      if (!run) return;
      scrollTo(element, head, place);
      put();
      const row = rows.get(run.id)?.row;
      row?.querySelector<HTMLElement>("a.name")?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: "nearest" });
    },
    cell: (id) => rows.get(id)?.row.querySelector<HTMLElement>("td.text") ?? null,
    close: ends,
  };
}

const rowHeight = (element: HTMLElement) =>
  parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 58;

/** The first row to draw, and the one after the last: those in view, and some beside them. */
function inView(element: HTMLElement, head: HTMLElement, all: number): [from: number, to: number] {
  const tall = rowHeight(element),
    first = Math.floor((element.scrollTop - head.offsetHeight) / tall),
    last = Math.ceil((element.scrollTop + Math.max(element.clientHeight, 300)) / tall);
  return [Math.max(0, Math.min(first - beside, all - 1)), Math.min(all, last + beside)];
}

/** Scrolls as little as brings a row into view. */
function scrollTo(element: HTMLElement, head: HTMLElement, place: number): void {
  const tall = rowHeight(element),
    top = place * tall,
    foot = top + tall + head.offsetHeight;
  if (top < element.scrollTop) element.scrollTop = top;
  if (foot > element.scrollTop + element.clientHeight)
    element.scrollTop = foot - element.clientHeight;
}

/** What stands for the rows that are not drawn. */
function spaceOf(height: number, columns: number): HTMLElement[] {
  if (height <= 0) return [];
  const cell = h("td", { colspan: String(columns), style: `height:${height}px` });
  return [h("tr", { class: "space", "aria-hidden": "true" }, cell)];
}

/** Moves only what is not in its place: an element that is moved loses the focus. */
function arrange(body: HTMLElement, next: HTMLElement[]): void {
  const here = new Set<Element>(next);
  for (const old of [...body.children]) if (!here.has(old)) old.remove();
  next.forEach((e, i) => {
    if (body.children[i] !== e) body.insertBefore(e, body.children[i] ?? null);
  });
}

/** The headings, which order the list, and the box that selects all. */
function headings(head: HTMLElement, what: Shown, doing: Doing): void {
  const now = sortOf(what.sort),
    all = h("input", { type: "checkbox", "aria-label": "Select all that are shown" }),
    count = what.runs.filter((r) => what.picked.has(r.id)).length;
  all.checked = count > 0 && count === what.runs.length;
  all.indeterminate = count > 0 && count < what.runs.length;
  all.addEventListener("click", () => doing.pickAll(all.checked));
  const titles = ["name", ...what.columns].map((name, i) => {
    const column = columnOf(name)!,
      curve = name === "curve",
      spare = i > 0 && isSpare(what.columns, name, i - 1),
      button = h("button", { type: "button" }, column.title);
    button.addEventListener("click", () => doing.order(name));
    return h(
      "th",
      {
        scope: "col",
        class: (column.number && !curve ? "number" : "") + (spare ? " spare" : ""),
        ...(now.name === name && !curve
          ? { "aria-sort": now.down ? "descending" : "ascending" }
          : {}),
      },
      curve ? column.title : button,
    );
  });
  const controls = () => [...head.querySelectorAll<HTMLElement>("button, input")],
    focused = controls().indexOf(document.activeElement as HTMLElement);
  head.replaceChildren(h("tr", {}, h("th", { scope: "col" }, all), ...titles));
  if (focused >= 0) controls()[focused]?.focus({ preventScroll: true });
}

/**
 * Draws again as the box is scrolled or has another size, and for paper and files; returns what
 * ends it.
 */
function drawAgain(element: HTMLElement, put: () => void, paper: (is: boolean) => void) {
  let waiting = 0;
  const soon = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      put();
    });
  };
  element.addEventListener("scroll", soon, { passive: true });
  const size = new ResizeObserver(soon),
    closing = new AbortController();
  size.observe(element);
  for (const [event, is] of [
    ["beforeprint", true],
    ["afterprint", false],
    [wholeEvents[0], true],
    [wholeEvents[1], false],
  ] as const)
    addEventListener(
      event,
      () => {
        paper(is);
        put();
      },
      { signal: closing.signal },
    );
  return () => {
    size.disconnect();
    closing.abort();
    cancelAnimationFrame(waiting);
  };
}
