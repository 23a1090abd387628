import type { Cell, Unit } from "../api";

const binary = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes for people: binary prefixes, about three significant digits, a real minus sign. */
export function bytes(value: number): string {
  let size = Math.abs(value), unit = 0;
  while (size >= 1023.5 && unit < binary.length - 1) { size /= 1024; unit++; }
  const digits = unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)} ${binary[unit]}`;
}

/** A stretch of nanoseconds: 850 µs, 12.3 ms, 4.21 s, 2 min 05 s, 1 h 02 min. */
export function duration(ns: number): string {
  const sign = ns < 0 ? "−" : "", v = Math.abs(ns);
  if (v < 1e3) return `${sign}${v} ns`;
  if (v < 1e6) return `${sign}${short(v / 1e3)} µs`;
  if (v < 1e9) return `${sign}${short(v / 1e6)} ms`;
  if (v < 60e9) return `${sign}${short(v / 1e9)} s`;
  const seconds = Math.round(v / 1e9);
  const two = (n: number) => String(n).padStart(2, "0");
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${sign}${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

const short = (v: number) => v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2);

/** Whole numbers with thin spaces between thousands. */
export const count = (v: number) => String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");

export function quantity(value: Cell | undefined, unit: Unit | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  switch (unit) {
    case "bytes": return bytes(value);
    case "ns": return duration(value);
    case "milli": return `${(value / 10).toFixed(1)} %`;
    case "celsius": return `${value} °C`;
    case "mW": return `${(value / 1000).toFixed(0)} W`;
  }
  return count(value);
}

/** The last part of a path, for reading; the whole stays in a title. */
export const basename = (path: string) => path.slice(path.lastIndexOf("/") + 1);

export const place = (file: string, line?: number) => line ? `${basename(file)}:${line}` : basename(file);
