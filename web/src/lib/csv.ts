// A table as comma-separated values: integers as they are, in the units that the headings name.

import type { Cell, Column } from "../api";

const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/**
 * A text that a spreadsheet would take for a formula is marked as text: names come from the program
 * that was observed.
 */
const cell = (value: Cell | undefined) =>
  typeof value === "string"
    ? quoted(/^[=+\-@\t]/.test(value) ? `'${value}` : value)
    : value === null || value === undefined
      ? ""
      : String(value);

export const csv = (columns: Column[], rows: Cell[][]): string =>
  [
    columns.map((c) =>
      quoted(
        [
          c.title || c.name,
          c.unit && `(${c.unit === "milli" ? "thousandths" : c.unit})`,
          c.label && c.label !== "measured" && c.label,
        ]
          .filter(Boolean)
          .join(" "),
      ),
    ),
    ...rows.map((r) => columns.map((_, i) => cell(r[i]))),
  ]
    .map((line) => line.join(","))
    .join("\r\n") + "\r\n";
