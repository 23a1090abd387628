// The rows of the list. Only those in view are in the document, all of one height, so a thousand
// runs cost what thirty do.

import { bytes, commandLine, count, programOf, toneOf, wallClock } from "../../../lib/format";
import { badge, h } from "../../../views/dom";
import {
  columnOf,
  kindOfPeak,
  peakOf,
  sortOf,
  tagsOf,
  titleOf,
  type Row as Run,
} from "../../runlist";

const tagsAtFirst = 3; // of a row
const beside = 6; // rows above and below the view that are there already
const narrowColumns = ["ended", "peak"]; // what a telephone has room for

export interface Doing {
  order(column: string): void;
  pick(id: string, on: boolean, range: boolean): void;
  pickAll(on: boolean): void;
  tag(text: string): void;
  edit(id: string, what: "name" | "tags"): void;
  spark(run: Run): SVGElement | null;
  view(runs: Run[]): void; // those that are in view now
}

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

/** A word of the search, also where it has blanks. */
const quoted = (word: string) => (/\s/.test(word) ? `"${word}"` : word);

export function runTable(doing: Doing): Table {
  const head = h("thead"),
    body = h("tbody"),
    table = h("table", { class: "runs" }, head, body);
  const element = h(
    "div",
    { class: "scroll rows", tabindex: "0", role: "group", "aria-label": "List of runs" },
    table,
  );
  const allTags = h("div", {
    class: "all-tags",
    popover: "auto",
    role: "group",
    "aria-label": "All tags",
  });
  element.append(allTags);
  const rows = new Map<string, { row: HTMLTableRowElement; run: Run; picked: boolean }>();
  let what: Shown = { runs: [], columns: [], sort: "", picked: new Set() },
    most = { device: 1, host: 1 },
    drawnFor = "",
    from = 0,
    to = 0,
    whole = false;

  const rowHeight = () => parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 58;
  const space = (count: number) =>
    count > 0
      ? [
          h(
            "tr",
            { class: "space", "aria-hidden": "true" },
            h("td", {
              colspan: String(what.columns.length + 2),
              style: `height:${count * rowHeight()}px`,
            }),
          ),
        ]
      : [];
  const put = () => {
    const tall = rowHeight(),
      all = what.runs.length;
    from = whole
      ? 0
      : Math.max(
          0,
          Math.min(Math.floor((element.scrollTop - head.offsetHeight) / tall) - beside, all - 1),
        );
    to = whole
      ? all
      : Math.min(
          all,
          Math.ceil((element.scrollTop + Math.max(element.clientHeight, 300)) / tall) + beside,
        );
    const now = what.runs.slice(from, to),
      keep = new Set(now.map((r) => r.id));
    for (const [id, { row }] of rows)
      if (!keep.has(id) && !row.contains(document.activeElement)) rows.delete(id);
    const elements = now.map((run, i) => {
      const old = rows.get(run.id),
        picked = what.picked.has(run.id);
      if (old && ((old.run === run && old.picked === picked) || old.row.querySelector(".editing")))
        return numbered(old.row, from + i);
      const row = old ? renewed(old.row, draw(run, picked), picked) : draw(run, picked);
      rows.set(run.id, { row, run, picked });
      return numbered(row, from + i);
    });
    const next = [...space(from), ...elements, ...space(all - to)];
    if (next.length !== body.children.length || next.some((e, i) => e !== body.children[i]))
      arrange(next);
    doing.view(now);
  };
  /** Moves only what is not in its place: an element that is moved loses the focus. */
  const arrange = (next: HTMLElement[]) => {
    const here = new Set<Element>(next);
    for (const old of [...body.children]) if (!here.has(old)) old.remove();
    next.forEach((e, i) => {
      if (body.children[i] !== e) body.insertBefore(e, body.children[i] ?? null);
    });
  };
  const draw = (run: Run, picked: boolean): HTMLTableRowElement => {
    const box = h("input", { type: "checkbox", "aria-label": `Select ${run.name || run.id}` });
    box.checked = picked;
    box.addEventListener("click", (e) => doing.pick(run.id, box.checked, e.shiftKey));
    return h(
      "tr",
      { class: picked ? "run picked" : "run", "data-id": run.id },
      h("td", {}, !run.trials && box),
      h("td", { class: "text" }, run.trials ? trialsOf(run) : nameOf(run)),
      ...what.columns.map((name, i) => cell(name, run, i)),
    );
  };
  const tagButton = (t: string) => {
    const button = h("button", { type: "button", class: "tag", title: `Only runs with ${t}` }, t);
    button.addEventListener("click", () => {
      allTags.hidePopover();
      doing.tag(t);
    });
    return button;
  };
  /** Opens all tags of a run beside the row, whose height stays. */
  const moreTags = (run: Run) => {
    const tags = tagsOf(run),
      button = h(
        "button",
        {
          type: "button",
          class: "tag",
          "aria-haspopup": "true",
          "aria-label": `+${tags.length - tagsAtFirst} more tags of ${run.name || run.id}`,
          title: tags.slice(tagsAtFirst).join("\n"),
        },
        `+${tags.length - tagsAtFirst}`,
      );
    button.popoverTargetElement = allTags;
    button.addEventListener("click", () => {
      const { left, bottom } = button.getBoundingClientRect();
      allTags.replaceChildren(...tags.map(tagButton));
      allTags.style.left = `${Math.max(8, Math.min(left, innerWidth - 336))}px`;
      allTags.style.top = `${bottom + 4}px`;
    });
    return button;
  };
  /** The row of a matrix leads to its trials one by one. */
  const trialsOf = (run: Run) =>
    h(
      "div",
      { class: "what-run" },
      h(
        "span",
        { class: "line" },
        h(
          "a",
          {
            class: "name",
            href: `/?${new URLSearchParams({ q: `tag:${quoted(`matrix=${run.name}`)}` })}`,
          },
          run.name,
        ),
        run.label !== "measured" && badge(run.label ?? ""),
      ),
      h("small", {}, `${count(run.trials!.length)} trials of a matrix`),
    );
  const nameOf = (run: Run) => {
    const command = commandLine(run.command ?? []),
      title = titleOf(run),
      link = h("a", { class: "name", href: `/runs/${encodeURIComponent(run.id)}` }, title);
    link.addEventListener("dblclick", (e) => e.preventDefault());
    return h(
      "div",
      { class: "what-run" },
      h(
        "span",
        { class: "line" },
        link,
        run.label !== "measured" && badge(run.label ?? ""),
        run.from &&
          h(
            "span",
            {
              class: "outcome",
              title:
                run.from === "upload"
                  ? "It was sent to this server, and goes with it"
                  : `Its recording lies elsewhere${run.file ? `: ${run.file}` : ""}`,
            },
            run.from,
          ),
        ...tagsOf(run).slice(0, tagsAtFirst).map(tagButton),
        tagsOf(run).length > tagsAtFirst && moreTags(run),
        ...(["name", "tags"] as const).map((of) => {
          const button = h(
            "button",
            {
              type: "button",
              class: "pen",
              tabindex: "-1",
              title: of === "name" ? "Rename (key r or F2)" : "Tags (key T)",
              "aria-label":
                of === "name" ? `Rename ${run.name || run.id}` : `Tags of ${run.name || run.id}`,
            },
            of === "name" ? "✎" : "#",
          );
          button.addEventListener("click", () => doing.edit(run.id, of));
          return button;
        }),
      ),
      h(
        "small",
        { title: command },
        [
          title === run.name || title === run.id ? "" : run.id,
          commandLine(programOf(run.command ?? [])),
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    );
  };
  const spare = (name: string, i: number) =>
    what.columns.some((c) => narrowColumns.includes(c)) ? !narrowColumns.includes(name) : i > 1;
  const cell = (name: string, run: Run, i: number): HTMLElement => {
    const column = columnOf(name)!,
      kind = `${column.number ? "number" : "word"}${spare(name, i) ? " spare" : ""}`;
    if (name === "curve") return h("td", { class: `${kind} curve` }, doing.spark(run));
    if (name === "ended") {
      return h(
        "td",
        { class: kind },
        h("span", { class: `outcome ${toneOf(run.ended)}`, title: run.ended.text }, run.ended.text),
      );
    }
    if (name === "peak") {
      const peak = peakOf(run);
      return h(
        "td",
        { class: `${kind} peak` },
        peak === undefined
          ? "–"
          : h("span", {}, `${bytes(peak)} `, h("small", {}, run.figure!.what)),
        peak !== undefined &&
          h("i", {
            class: `meter ${kindOfPeak(run)}`,
            style: `width:${Math.round((peak / most[kindOfPeak(run)]) * 100)}%`,
          }),
      );
    }
    const text = column.text(run, Date.now());
    return h(
      "td",
      { class: kind, title: name === "started" ? wallClock(run.start_wall_ns) : text },
      text,
    );
  };
  const headings = () => {
    const now = sortOf(what.sort),
      all = h("input", { type: "checkbox", "aria-label": "Select all that are shown" });
    const count = what.runs.filter((r) => what.picked.has(r.id)).length;
    all.checked = count > 0 && count === what.runs.length;
    all.indeterminate = count > 0 && count < what.runs.length;
    all.addEventListener("click", () => doing.pickAll(all.checked));
    const titles = ["name", ...what.columns].map((name, i) => {
      const column = columnOf(name)!,
        button = h("button", { type: "button" }, column.title);
      button.addEventListener("click", () => doing.order(name));
      const curve = name === "curve";
      return h(
        "th",
        {
          scope: "col",
          class:
            (column.number && !curve ? "number" : "") +
            (i > 0 && spare(name, i - 1) ? " spare" : ""),
          ...(now.name === name && !curve
            ? { "aria-sort": now.down ? "descending" : "ascending" }
            : {}),
        },
        curve ? column.title : button,
      );
    });
    const focused = head.contains(document.activeElement)
      ? [...head.querySelectorAll("button, input")].indexOf(document.activeElement!)
      : -1;
    head.replaceChildren(h("tr", {}, h("th", { scope: "col" }, all), ...titles));
    if (focused >= 0)
      head.querySelectorAll<HTMLElement>("button, input")[focused]?.focus({ preventScroll: true });
  };
  let waiting = 0;
  const soon = () => {
    if (!waiting)
      waiting = requestAnimationFrame(() => {
        waiting = 0;
        put();
      });
  };
  element.addEventListener("scroll", soon, { passive: true });
  const size = new ResizeObserver(soon),
    print = new AbortController();
  size.observe(element);
  for (const [event, on] of [
    ["beforeprint", true],
    ["afterprint", false],
  ] as const)
    addEventListener(
      event,
      () => {
        whole = on;
        put();
      },
      { signal: print.signal },
    );
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
      headings();
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
      const run = what.runs[place],
        tall = rowHeight(),
        top = place * tall;
      if (!run) return;
      if (top < element.scrollTop) element.scrollTop = top;
      if (top + tall + head.offsetHeight > element.scrollTop + element.clientHeight)
        element.scrollTop = top + tall + head.offsetHeight - element.clientHeight;
      put();
      const row = rows.get(run.id)?.row;
      row?.querySelector<HTMLElement>("a.name")?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: "nearest" });
    },
    cell: (id) => rows.get(id)?.row.querySelector<HTMLElement>("td.text") ?? null,
    close: () => {
      size.disconnect();
      print.abort();
      cancelAnimationFrame(waiting);
    },
  };
}

/**
 * A row as it is to be, with the cells that stay: what is pointed at or has the focus is not taken
 * away.
 */
function renewed(
  row: HTMLTableRowElement,
  next: HTMLTableRowElement,
  picked: boolean,
): HTMLTableRowElement {
  row.className = next.className;
  row.querySelector("input")!.checked = picked;
  [...next.cells].forEach((cell, i) => {
    const old = row.cells[i]!;
    if (i > 0 && !old.isEqualNode(cell)) {
      const focused = old.contains(document.activeElement);
      old.replaceWith(cell);
      if (focused) cell.querySelector<HTMLElement>("a.name")?.focus({ preventScroll: true });
    }
  });
  return row;
}

const numbered = (row: HTMLTableRowElement, place: number) => {
  row.setAttribute("aria-rowindex", String(place + 2));
  return row;
};
