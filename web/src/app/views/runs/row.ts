// One row of the list of runs: its name with its tags, and a cell for each column.

import { bytes, commandLine, count, programOf, toneOf, wallClock } from "../../../lib/format";
import { badge, h } from "../../../views/dom";
import { columnOf, kindOfPeak, peakOf, tagsOf, titleOf, type Row as Run } from "../../runlist";

const tagsAtFirst = 3; // of a row
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

/** What all rows share: the columns, the scale of each kind of peak, where all tags are shown. */
export interface Look {
  columns: string[];
  most: { device: number; host: number };
  allTags: HTMLElement;
  doing: Doing;
}

/** Whether a column is left out where there is little room. */
export const isSpare = (columns: string[], name: string, i: number): boolean =>
  columns.some((c) => narrowColumns.includes(c)) ? !narrowColumns.includes(name) : i > 1;

export function rowOf(look: Look, run: Run, picked: boolean): HTMLTableRowElement {
  const box = h("input", { type: "checkbox", "aria-label": `Select ${run.name || run.id}` });
  box.checked = picked;
  box.addEventListener("click", (e) => look.doing.pick(run.id, box.checked, e.shiftKey));
  return h(
    "tr",
    { class: picked ? "run picked" : "run", "data-id": run.id },
    h("td", {}, !run.trials && box),
    h("td", { class: "text" }, run.trials ? trialsOf(run) : nameOf(look, run)),
    ...look.columns.map((name, i) => cell(look, name, run, i)),
  );
}

function cell({ columns, most, doing }: Look, name: string, run: Run, i: number): HTMLElement {
  const column = columnOf(name)!,
    spare = isSpare(columns, name, i) ? " spare" : "",
    kind = `${column.number ? "number" : "word"}${spare}`;
  if (name === "curve") return h("td", { class: `${kind} curve` }, doing.spark(run));
  if (name === "ended") {
    const { text } = run.ended,
      outcome = h("span", { class: `outcome ${toneOf(run.ended)}`, title: text }, text);
    return h("td", { class: kind }, outcome);
  }
  if (name === "peak") return peakCell(run, kind, most);
  const text = column.text(run, Date.now());
  return h(
    "td",
    { class: kind, title: name === "started" ? wallClock(run.start_wall_ns) : text },
    text,
  );
}

function peakCell(run: Run, kind: string, most: Look["most"]): HTMLElement {
  const peak = peakOf(run);
  if (peak === undefined) return h("td", { class: `${kind} peak` }, "–");
  const of = kindOfPeak(run);
  return h(
    "td",
    { class: `${kind} peak` },
    h("span", {}, `${bytes(peak)} `, h("small", {}, run.figure!.what)),
    h("i", {
      class: `meter ${of}`,
      style: `width:${Math.round((peak / most[of]) * 100)}%`,
    }),
  );
}

/** A word of the search, also where it has blanks. */
const quoted = (word: string) => (/\s/.test(word) ? `"${word}"` : word);

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

function nameOf(look: Look, run: Run): HTMLElement {
  const title = titleOf(run),
    link = h("a", { class: "name", href: `/runs/${encodeURIComponent(run.id)}` }, title),
    tags = tagsOf(run);
  link.addEventListener("dblclick", (e) => e.preventDefault());
  const program = commandLine(programOf(run.command ?? [])),
    id = title === run.name || title === run.id ? "" : run.id;
  return h(
    "div",
    { class: "what-run" },
    h(
      "span",
      { class: "line" },
      link,
      run.label !== "measured" && badge(run.label ?? ""),
      run.from && whence(run),
      ...tags.slice(0, tagsAtFirst).map((t) => tagButton(look, t)),
      tags.length > tagsAtFirst && moreTags(look, run),
      pen(look, run, "name"),
      pen(look, run, "tags"),
    ),
    h(
      "small",
      { title: commandLine(run.command ?? []) },
      [id, program].filter(Boolean).join(" · "),
    ),
  );
}

/** Where a recording lies that is not of this server. */
function whence({ from, file }: Run): HTMLElement {
  const title =
    from === "upload"
      ? "It was sent to this server, and goes with it"
      : `Its recording lies elsewhere${file ? `: ${file}` : ""}`;
  return h("span", { class: "outcome", title }, from!);
}

/** The button that begins to edit the name or the tags. */
function pen({ doing }: Look, run: Run, of: "name" | "tags"): HTMLElement {
  const [title, label, sign] =
      of === "name" ? ["Rename (key r or F2)", "Rename", "✎"] : ["Tags (key T)", "Tags of", "#"],
    button = h(
      "button",
      {
        type: "button",
        class: "pen",
        tabindex: "-1",
        title,
        "aria-label": `${label} ${run.name || run.id}`,
      },
      sign,
    );
  button.addEventListener("click", () => doing.edit(run.id, of));
  return button;
}

function tagButton({ allTags, doing }: Look, t: string): HTMLElement {
  const button = h("button", { type: "button", class: "tag", title: `Only runs with ${t}` }, t);
  button.addEventListener("click", () => {
    allTags.hidePopover();
    doing.tag(t);
  });
  return button;
}

/** Opens all tags of a run beside the row, whose height stays. */
function moreTags(look: Look, run: Run): HTMLElement {
  const { allTags } = look;
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
    allTags.replaceChildren(...tags.map((t) => tagButton(look, t)));
    allTags.style.left = `${Math.max(8, Math.min(left, innerWidth - 336))}px`;
    allTags.style.top = `${bottom + 4}px`;
  });
  return button;
}

/**
 * A row as it is to be, with the cells that stay: what is pointed at or has the focus is not taken
 * away.
 */
export function renewed(
  row: HTMLTableRowElement,
  next: HTMLTableRowElement,
  picked: boolean,
): HTMLTableRowElement {
  row.className = next.className;
  const box = row.querySelector("input"); // the trials of a matrix have none
  if (box) box.checked = picked;
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

export const numbered = (row: HTMLTableRowElement, place: number) => {
  row.setAttribute("aria-rowindex", String(place + 2));
  return row;
};
