import type { Report } from "../api";
import { h } from "../lib/dom";
import { bytes } from "../lib/format";

/** Who held the memory at the peak, as one bar: the rows of the table "composition". */
export function composition(report: Report): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "composition");
  const column = table?.columns.findIndex((c) => c.unit === "bytes") ?? -1;
  if (!table || column < 0) return null;
  const parts = table.rows.flatMap((r) => typeof r[column] === "number" && r[column] > 0 ? [{ name: String(r[0] ?? ""), bytes: r[column] }] : []);
  const total = parts.reduce((sum, p) => sum + p.bytes, 0);
  if (parts.length < 2) return null;
  return h("section", { id: "peak" }, h("h2", {}, table.title),
    h("div", { class: "stack-bar", role: "img", "aria-label": parts.map((p) => `${p.name} ${bytes(p.bytes)}`).join(", ") },
      ...parts.map((p, i) => h("span", { style: `flex:${p.bytes};background:var(--curve-${i % 8})`, title: `${p.name}: ${bytes(p.bytes)}` }))),
    h("ul", { class: "parts" }, ...parts.map((p, i) => h("li", {}, h("i", { style: `background:var(--curve-${i % 8})` }),
      h("span", {}, p.name), h("b", {}, bytes(p.bytes)), h("small", {}, `${((p.bytes / total) * 100).toFixed(0)} %`)))));
}
