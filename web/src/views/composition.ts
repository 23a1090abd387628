import type { Report } from "../api";
import { h } from "../lib/dom";
import { bytes } from "../lib/format";
import { table as wrap } from "./tables";

/** Who held the memory at the peak: the table "composition" under a bar of its parts. */
export function composition(report: Report): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "composition");
  const column = table?.columns.findIndex((c) => c.unit === "bytes") ?? -1;
  if (!table || column < 0) return null;
  const parts = table.rows.flatMap((r) => typeof r[column] === "number" && r[column] > 0 ? [{ name: String(r[0] ?? ""), bytes: r[column] }] : []);
  const total = parts.reduce((sum, p) => sum + p.bytes, 0);
  if (parts.length < 2) return wrap(table);
  return wrap(table, h("div", { class: "stack-bar", role: "img", "aria-label": parts.map((p) => `${p.name} ${bytes(p.bytes)}`).join(", ") },
    ...parts.map((p, i) => h("span", { style: `flex:${p.bytes};background:var(--curve-${i % 8})`, title: `${p.name}: ${bytes(p.bytes)}` },
      p.bytes / total > 0.12 ? `${p.name.split(" (")[0]} ${bytes(p.bytes)}` : null))));
}
