import type { Cell, Column, Report, Table } from "../../api";
import { sorted } from "../../lib/columns";
import { count, heading, quantity } from "../../lib/format";
import { processName } from "../../state/report";
import { followed, standing, toggle, type Standing } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { h, section, sideways } from "../dom";
import { told } from "../rows";
import { savedTable } from "../saved";
import { sitemap } from "./sitemap";

const rowsAtFirst = 12,
  worthFiltering = 15;

/** Tables of figures that a picture above has, or that seldom matter: folded, below the others. */
const further = new Set(["growth", "shapes", "faults", "devices", "efficiency"]),
  fewRows = 8;

/** Every table of the report, in its order. Those that belong to a picture stand below that. */
export function tables(report: Report, page: PageStore): HTMLElement | null {
  const pictured = (report.allocators ?? []).some((a) => a.fragmentation && a.segment_map?.length),
    below = [
      "composition",
      ...(pictured ? ["reserved"] : []),
      ...(report.imagined?.peak_device_used_bytes === undefined ? [] : ["imagined", "categories"]),
    ];
  const shown = report.tables.filter((t) => t.rows.length > 0 && !below.includes(t.name)),
    folded = shown.filter((t) => further.has(t.name) && t.rows.length <= fewRows),
    part = (t: Table) =>
      section(
        `table-${[t.name, t.file, t.device_number].filter((p) => p !== undefined).join("-")}`,
        t.title,
        t.note && h("p", { class: "hint" }, t.note),
        t.name === "sites" && sitemap(report, page),
        byProcess(report, t, page),
      );
  if (shown.length === 0) return null;
  return h(
    "div",
    { id: "tables" },
    ...shown.filter((t) => !folded.includes(t)).map(part),
    folded.length > 0 &&
      h(
        "details",
        { class: "further" },
        h("summary", {}, h("b", {}, "More figures"), ` ${folded.map((t) => t.title).join(" · ")}`),
        ...folded.map(part),
      ),
  );
}

/** The tables of these names below their picture, folded; null where there are none. */
export function allFigures(report: Report, page: PageStore, names: string[]): HTMLElement | null {
  const of = report.tables.filter((t) => t.rows.length > 0 && names.includes(t.name));
  return of.length
    ? h(
        "details",
        { class: "calls" },
        h("summary", {}, "All figures"),
        ...of.flatMap((t) =>
          [
            h("h3", {}, t.title),
            t.note && h("p", { class: "hint" }, t.note),
            selecting(t, page, report).element,
          ].filter((e): e is HTMLElement => e instanceof HTMLElement),
        ),
      )
    : null;
}

/** A table whose rows are of processes shows those of the selected one alone. */
function byProcess(report: Report, t: Table, page: PageStore): HTMLElement {
  const of = t.columns.findIndex((c) => c.name === "process_id");
  if (of < 0 || new Set(t.rows.map((r) => r[of])).size < 2)
    return selecting(t, page, report).element;
  const table = selecting(t, page, report),
    said = h("p", { class: "hint" });
  page.follow(["process"], ({ process }) => {
    const rows = process ? t.rows.filter((r) => r[of] === process) : t.rows,
      one = report.processes.find((p) => p.id === process);
    table.show(rows);
    said.hidden = !process;
    said.textContent = one
      ? `Of ${processName(one, report.processes)} alone, as it is selected.`
      : "";
  });
  return h("div", {}, said, table.element);
}

/** A table whose rows select what they are of, and show what is selected. */
export function selecting(t: Table, page: PageStore, report?: Report): Live {
  const rows = told(t, report),
    live = liveTable(t, {
      pick: (row) => {
        const what = rows.picks(row);
        if (what) toggle(page, what);
      },
      picks: (row) => rows.picks(row) !== null,
      stands: (row) => {
        const { at } = (rows.picks(row) as { at?: number } | null) ?? {};
        return at !== undefined && page.get().at === at
          ? "picked"
          : standing(page.get(), rows.thing(row));
      },
    });
  page.follow([...followed, "at"], live.refresh);
  return live;
}

/** A table that sorts by a click on a heading, shows long ones in part, and filters the longest. */
export const tableBody = (t: Table): HTMLElement => liveTable(t).element;

/**
 * What a click on a row does, which rows have something to do, and how each stands to what is
 * chosen; the order, where it outlives the table.
 */
export interface Choosing {
  pick(row: Cell[]): void;
  picks?(row: Cell[]): boolean;
  stands(row: Cell[]): Standing;
  order?: Order;
}

export interface Live {
  element: HTMLElement;
  show(rows: Cell[][]): void;
  refresh(): void;
}

/** The column that rows are ordered by, by its name, or none; and how that is remembered. */
export interface Order {
  by: string;
  down: boolean;
  chosen(by: string, down: boolean): void;
}

/**
 * The column of bytes that has a bar, -1 for none, and the largest figure in it. A difference has
 * one for its change.
 */
function barOf(t: Table): { bar: number; largest: number } {
  const bar = t.columns.findIndex(
    (c, i) =>
      c.unit === "bytes" &&
      c.name !== "low" &&
      c.name !== "high" &&
      tells(t.rows.map((r) => r[i] ?? null)),
  );
  const change = t.columns[bar]?.name === "delta",
    size = (v: Cell | undefined) => (typeof v === "number" ? (change ? Math.abs(v) : v) : 0);
  return { bar, largest: bar < 0 ? 0 : Math.max(...t.rows.map((r) => size(r[bar]))) };
}

/** A row that says something in place of others. */
const said = (t: Table, text: string): HTMLElement =>
  h("tr", {}, h("td", { colspan: String(t.columns.length) }, text));

/** Shows how a row stands to what is chosen. */
function stand(row: HTMLElement, is: Standing): void {
  row.classList.toggle("picked", is === "picked");
  row.classList.toggle("dim", is === "dim");
  row.querySelector(".pick")?.setAttribute("aria-pressed", String(is === "picked"));
}

/** A heading with the button that sorts by its column; down is null where rows are not. */
function headOf(c: Table["columns"][number], down: boolean | null) {
  const sort = h("button", { type: "button", title: "Sort by this column" }, heading(c.title!));
  const head = h(
    "th",
    {
      scope: "col",
      class: c.unit ? "number" : "text",
      ...(down === null ? {} : { "aria-sort": down ? "descending" : "ascending" }),
    },
    sort,
    c.label && c.label !== "measured" ? h("small", {}, c.label) : null,
  );
  return { head, sort };
}

/** The field that filters a long table; told has the words in small letters. */
function filterOf(t: Table, told: (words: string) => void): HTMLElement | false {
  if (t.rows.length <= worthFiltering) return false;
  const filter = h("input", {
    type: "search",
    placeholder: `Filter ${count(t.rows.length)} rows`,
    "aria-label": `Filter ${t.title}`,
  });
  filter.addEventListener("input", () => told(filter.value.trim().toLowerCase()));
  return filter;
}

/** A table whose rows can change, and be chosen. */
export function liveTable(t: Table, choosing?: Choosing, none = "There is no such row."): Live {
  const body = h("tbody");
  let drawn: [Cell[], HTMLElement][] = [];
  const { bar, largest } = barOf(t);
  const order = choosing?.order;
  let given = t.rows,
    words = "",
    all = given.length <= rowsAtFirst + 3,
    by = order?.by ? t.columns.findIndex((c) => c.name === order.by) : -1,
    down = order?.down ?? true;
  let rows = by < 0 ? given : sorted(given, by, down);
  const more = h("button", { type: "button", class: "plain more" });
  const fill = () => {
    const kept = words
      ? rows.filter((r) => r.some((c) => typeof c === "string" && c.toLowerCase().includes(words)))
      : rows;
    drawn = (all ? kept : kept.slice(0, rowsAtFirst)).map((r) => [
      r,
      row(t.columns, r, bar, largest, choosing),
    ]);
    body.replaceChildren(...drawn.map(([, element]) => element));
    if (kept.length === 0) body.append(said(t, words ? "No row contains these words." : none));
    more.hidden = all || kept.length <= rowsAtFirst;
    refresh();
  };
  /** How the rows stand to what is chosen; they stay the same elements, so that the focus does. */
  const refresh = () => {
    for (const [cells, element] of drawn) stand(element, choosing?.stands(cells) ?? "");
    const below =
      choosing && !more.hidden
        ? rows.slice(drawn.length).filter((r) => choosing.stands(r) === "picked").length
        : 0;
    const selected = below ? `, ${below} of them selected` : "";
    more.textContent = `Show all ${count(rows.length)} rows${selected}`;
  };
  more.addEventListener("click", () => {
    all = true;
    fill();
  });
  const heads = t.columns.flatMap((c, i) => {
    if (!c.title) return []; // for programs
    const { head, sort } = headOf(c, i === by ? down : null);
    sort.addEventListener("click", () => {
      down = by === i ? !down : Boolean(c.unit);
      by = i;
      rows = sorted(given, i, down);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      order?.chosen(c.name, down);
      fill();
    });
    return [head];
  });
  const filter = filterOf(t, (wanted) => {
    words = wanted;
    fill();
  });
  fill();
  const element = h(
    "div",
    {},
    h(
      "div",
      { class: "table-tools" },
      filter,
      savedTable(t, () => rows),
    ),
    sideways(
      { "aria-label": t.title },
      h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body),
    ),
    more,
  );
  const show = (changed: Cell[][]) => {
    given = changed;
    rows = by < 0 ? given : sorted(given, by, down);
    fill();
  };
  return { element, show, refresh };
}

/** A bar tells something where the figures differ. */
function tells(column: Cell[]): boolean {
  const figures = column.filter((v): v is number => typeof v === "number" && v > 0);
  return figures.length > 1 && Math.max(...figures) > 1.5 * Math.min(...figures);
}

/** The verdicts of a plan, by their tone. */
const verdicts: Readonly<Record<string, string>> = {
  fits: "good",
  likely: "unsure",
  unlikely: "unsure",
  no: "bad",
};
/** Words one after the other, as of a reason; not a name, a path or a command. */
const sentence = /(?:\p{L}+,? ){4}\p{L}/u;
const labels = ["measured", "sampled", "estimated", "imagined", "replayed"];

function row(
  columns: Column[],
  cells: Cell[],
  bar: number,
  largest: number,
  choosing?: Choosing,
): HTMLElement {
  const first = columns.findIndex((c) => c.title),
    pickable = choosing && (choosing.picks?.(cells) ?? true);
  const element = h(
    "tr",
    pickable ? { class: "pickable" } : {},
    ...columns.flatMap((c, i) => {
      if (!c.title) return [];
      const value = cells[i] ?? null,
        change = c.name === "delta" && typeof value === "number",
        text = `${change && value > 0 ? "+" : ""}${quantity(value, c.unit)}`;
      const share =
        i === bar && largest > 0 && typeof value === "number" && (value > 0 || change)
          ? (Math.abs(value) / largest) * 100
          : 0;
      const kind = c.unit
        ? "number"
        : c.name === "file"
          ? "text path"
          : i !== first && sentence.test(text)
            ? "text prose"
            : "text";
      const attributes: Record<string, string> = {
        class: value === null || value === "" ? `${kind} absent` : kind,
      };
      if (share) {
        const ink = change ? `;--bar:var(--${value > 0 ? "more" : "less"})` : "";
        attributes.style = `--share:${share.toFixed(1)}%${ink}`;
      }
      if (typeof value === "string" && value.length > 24) attributes.title = value;
      if (typeof value === "number" && c.unit === "bytes")
        attributes.title = `${count(value)} bytes`;
      if (c.name === "verdict" && text in verdicts)
        return h("td", attributes, h("span", { class: `outcome ${verdicts[text]}` }, text));
      if (c.name === "label" && labels.includes(text))
        return h("td", attributes, h("span", { class: `badge ${text}` }, text));
      return h(
        "td",
        attributes,
        pickable && i === first
          ? h("button", { type: "button", class: "pick", "aria-pressed": "false" }, text)
          : c.name === "file"
            ? h("bdi", {}, text)
            : text,
      );
    }),
  );
  if (pickable)
    element.addEventListener("click", (e) => {
      // the first cell is a button, for the keyboard; who marks a text of the row to copy it
      // selects nothing
      if (getSelection()?.isCollapsed !== false || (e.target as Element).closest("button"))
        choosing.pick(cells);
    });
  return element;
}
