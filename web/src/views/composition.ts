import type { Report } from "../api";
import { bytes } from "../lib/format";
import { h, section } from "./dom";
import { stackBar, type Part } from "./stackbar";
import { tableBody } from "./tables";

/** What the largest process held at the peak, in one bar. On imaginary GPUs the device is what matters: no such bar. */
export function composition(report: Report): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "composition");
  const column = table?.columns.findIndex((c) => c.unit === "bytes") ?? -1;
  if (!table || column < 0 || table.rows.length === 0 || report.imagined) return null;
  const parts = table.rows.flatMap((r, i): Part[] => {
    const value = r[column], name = String(r[0] ?? "");
    return typeof value === "number" && value > 0 ? [{ name, bytes: value, ink: ink(name, i) }] : [];
  });
  const own = parts.filter((p) => !isOther(p)), rest = parts.filter(isOther);
  return section("peak", table.title, own.length > 1 && stackBar(own),
    rest.length > 0 && h("p", { class: "hint" }, `Beside it ${rest.length === 1 ? "1 other process" : `${rest.length} other processes`} held ${bytes(rest.reduce((n, p) => n + p.bytes, 0))} of RSS, pages they share counted each time.`),
    h("details", { class: "calls", ...(own.length > 1 ? {} : { open: "" }) }, h("summary", {}, "All figures"), tableBody(table)));
}

const isOther = (p: Part) => p.name.startsWith("process ");
const inks: [RegExp, string][] = [[/^model param/, "curve-3"], [/^gradient/, "curve-1"], [/^optimizer/, "curve-4"], [/^rest\b/, "curve-7"], [/^other alloc/, "heap"]];
const ink = (name: string, i: number) => inks.find(([known]) => known.test(name))?.[1] ?? `curve-${[0, 5, 6][i % 3]}`;
