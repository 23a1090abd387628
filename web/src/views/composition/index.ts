import type { Report } from "../../api";
import { bytes } from "../../lib/format";
import type { PageStore } from "../../state/page";
import { h, section } from "../dom";
import { stackBar, type Part } from "../stackbar";
import { selecting } from "../tables";

/**
 * What the largest process held at the peak, in one bar. On imaginary GPUs the device is what
 * matters: no such bar.
 */
export function composition(report: Report, page: PageStore): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "composition");
  const column = table?.columns.findIndex((c) => c.unit === "bytes") ?? -1,
    kind = table?.columns.findIndex((c) => c.name === "kind") ?? -1;
  if (!table || column < 0 || table.rows.length === 0 || report.imagined) return null;
  const parts = table.rows.flatMap((r, i): (Part & { kind: string })[] => {
    const value = r[column],
      of = String(r[kind] ?? "");
    return typeof value === "number" && value > 0
      ? [
          {
            name: names[of] ?? String(r[0]),
            bytes: value,
            ink: inks[of] ?? `curve-${[0, 5, 6][i % 3]}`,
            kind: of,
          },
        ]
      : [];
  });
  const own = parts.filter((p) => p.kind !== "process"),
    rest = parts.filter((p) => p.kind === "process");
  return section(
    "peak",
    table.title,
    own.length > 1 && stackBar(own),
    rest.length > 0 &&
      h(
        "p",
        { class: "hint" },
        `${rest.length === 1 ? "1 other process" : `${rest.length} other processes`} held ` +
          `${bytes(rest.reduce((n, p) => n + p.bytes, 0))} of RSS at the same time; ` +
          "pages that they share are counted in each.",
      ),
    h(
      "details",
      { class: "calls", ...(own.length > 1 ? {} : { open: "" }) },
      h("summary", {}, "All figures"),
      selecting(table, page, report).element,
    ),
  );
}

const inks: Record<string, string> = {
  parameters: "curve-3",
  gradients: "curve-1",
  optimizer: "curve-4",
  rest: "curve-7",
  allocations: "heap",
  python: "heap",
};
// shorter than in the table
const names: Record<string, string> = { allocations: "allocations", rest: "rest" };
