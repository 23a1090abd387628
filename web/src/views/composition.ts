import type { Report } from "../api";
import { bytes, percent } from "../lib/format";
import { h, section } from "./dom";
import { tableBody } from "./tables";

interface Part { name: string; bytes: number; other: boolean }

/** What the largest process held at the peak, in one bar. */
export function composition(report: Report): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "composition");
  const column = table?.columns.findIndex((c) => c.unit === "bytes") ?? -1;
  if (!table || column < 0 || table.rows.length === 0) return null;
  const parts = table.rows.flatMap((r): Part[] => {
    const value = r[column], name = String(r[0] ?? "");
    return typeof value === "number" && value > 0 ? [{ name, bytes: value, other: name.startsWith("process ") }] : [];
  });
  const own = parts.filter((p) => !p.other), rest = parts.filter((p) => p.other);
  return section("peak", table.title, own.length > 1 && stack(own),
    rest.length > 0 && h("p", { class: "hint" }, `Beside it ${rest.length === 1 ? "1 other process" : `${rest.length} other processes`} held ${bytes(rest.reduce((n, p) => n + p.bytes, 0))} of RSS, pages they share counted each time.`),
    h("details", { class: "calls", ...(own.length > 1 ? {} : { open: "" }) }, h("summary", {}, "All figures"), tableBody(table)));
}

const inks: [RegExp, string][] = [[/^model param/, "curve-3"], [/^gradient/, "curve-1"], [/^optimizer/, "curve-4"], [/^rest\b/, "curve-7"], [/^other alloc/, "heap"]];
const ink = (p: Part, i: number) => `var(--${inks.find(([name]) => name.test(p.name))?.[1] ?? `curve-${[0, 5, 6][i % 3]}`})`;

function stack(parts: Part[]): HTMLElement {
  const total = parts.reduce((sum, p) => sum + p.bytes, 0);
  const short = (name: string) => name.split(/ \(|:/)[0]!;
  return h("figure", { class: "parts" },
    h("div", { class: "stack-bar", role: "img", "aria-label": parts.map((p) => `${p.name} ${bytes(p.bytes)}`).join(", ") },
      ...parts.map((p, i) => h("span", { style: `flex:${p.bytes / total};--ink:${ink(p, i)}`, title: `${p.name}: ${bytes(p.bytes)}` }))),
    h("ul", {}, ...parts.map((p, i) => h("li", { title: p.name }, h("i", { style: `background:${ink(p, i)}` }), h("span", {}, short(p.name)), h("b", {}, bytes(p.bytes)), h("small", {}, percent((p.bytes / total) * 1000))))));
}
