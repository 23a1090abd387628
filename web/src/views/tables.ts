import type { Cell, Column, Report, Table } from "../api";
import { compare } from "../lib/columns";
import { h } from "../lib/dom";
import { quantity } from "../lib/format";

/** Every table of the report, in its order. A click on a heading sorts; large figures carry a bar. */
export function tables(report: Report): HTMLElement | null {
  const shown = report.tables.filter((t) => t.rows.length > 0 && t.name !== "composition"); // it has its own view
  return shown.length ? h("div", { id: "tables" }, ...shown.map((t) => table(t))) : null;
}

const rowsAtFirst = 15;

export function table(t: Table, above: HTMLElement | null = null): HTMLElement {
  const body = h("tbody");
  const bar = t.columns.findIndex((c, i) => c.unit === "bytes" && tells(t.rows.map((r) => r[i] ?? null)));
  const largest = bar < 0 ? 0 : Math.max(...t.rows.map((r) => typeof r[bar] === "number" ? r[bar] : 0));
  let rows = t.rows, all = t.rows.length <= rowsAtFirst + 3, by = -1, down = true;
  const fill = () => body.replaceChildren(...(all ? rows : rows.slice(0, rowsAtFirst)).map((r) => row(t.columns, r, bar, largest)));
  const heads = t.columns.map((c, i) => {
    const sort = h("button", { type: "button" }, c.title);
    const head = h("th", { scope: "col", class: c.unit ? "number" : "" }, sort, c.label && c.label !== "measured" ? h("small", {}, ` ${c.label}`) : null);
    sort.addEventListener("click", () => {
      down = by === i ? !down : Boolean(c.unit);
      by = i;
      rows = t.rows.toSorted((a, b) => a[i] === null || b[i] === null ? compare(a[i] ?? null, b[i] ?? null) : compare(a[i] ?? null, b[i] ?? null) * (down ? -1 : 1));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      fill();
    });
    return head;
  });
  fill();
  const more = all ? null : h("button", { type: "button", class: "more" }, `All ${t.rows.length} rows`);
  more?.addEventListener("click", () => { all = true; fill(); more.remove(); });
  return h("section", { id: `table-${t.name}` }, h("h2", {}, t.title), t.note && h("p", { class: "hint" }, t.note), above,
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body)), more);
}

/** A bar tells something where the figures differ. */
function tells(column: Cell[]): boolean {
  const figures = column.filter((v): v is number => typeof v === "number" && v > 0);
  return figures.length > 1 && Math.max(...figures) > 1.5 * Math.min(...figures);
}

function row(columns: Column[], cells: Cell[], bar: number, largest: number): HTMLElement {
  return h("tr", {}, ...columns.map((c, i) => {
    const value = cells[i] ?? null;
    const share = i === bar && largest > 0 && typeof value === "number" && value > 0 ? (value / largest) * 100 : 0;
    const attributes: Record<string, string> = { class: c.unit ? "number" : "text" };
    if (share) attributes.style = `--share:${share.toFixed(1)}%`;
    if (typeof value === "string") attributes.title = value;
    return h("td", attributes, quantity(value, c.unit));
  }));
}
