// Figures for people. Bytes have binary prefixes, and what was not observed is a dash, never 0.

import type { Cell, Ending, Unit } from "../api";

const binary = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** A figure with so many decimals; halves go to the even digit, as in the texts of a report. */
function fixed(value: number, digits: number): string {
  const scaled = value * 10 ** digits,
    down = Math.floor(scaled);
  return (scaled - down === 0.5 && down % 2 === 0 ? down / 10 ** digits : value).toFixed(digits);
}

/** Bytes for people: binary prefixes, about three significant digits, a real minus sign. */
export function bytes(value: number): string {
  let size = Math.abs(value),
    unit = 0;
  while (size >= 1024 * 0.9995 && unit < binary.length - 1) {
    size /= 1024;
    unit++;
  }
  const digits = unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${fixed(size, digits)} ${binary[unit]}`;
}

/** Bytes beside an axis: no more digits than the tick needs. */
export function byteTick(value: number): string {
  if (value === 0) return "0";
  let size = Math.abs(value),
    unit = 0;
  while (size >= 1024 && unit < binary.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${value < 0 ? "−" : ""}${Number(size.toFixed(2))} ${binary[unit]}`;
}

/**
 * Bytes beside an axis that goes up to so many, in the unit of that and with as many digits as tell
 * apart ticks of such a step.
 */
export function bytesOf(value: number, top: number, step: number): string {
  if (value === 0) return "0";
  const unit = Math.min(
      Math.max(Math.floor(Math.log2(Math.max(top, 1)) / 10), 0),
      binary.length - 1,
    ),
    size = 1024 ** unit;
  const digits = Math.ceil(-Math.log10(step / size) - 1e-9);
  return `${(value / size).toFixed(Math.min(5, Math.max(0, digits)))} ${binary[unit]}`;
}

/** A figure beside an axis, in its unit: no more digits than the tick needs. */
export function tick(value: number, unit: Unit): string {
  if (value === 0) return "0";
  if (unit === "bytes") return byteTick(value);
  if (unit === "milli") return `${Number((value / 10).toFixed(1))} %`;
  const [names, base] =
    unit === "ns"
      ? ([["ns", "µs", "ms", "s"], 1000] as const)
      : ([["", "k", "M", "G", "T"], 1000] as const);
  let size = value,
    at = 0;
  while (Math.abs(size) >= base && at < names.length - 1) {
    size /= base;
    at++;
  }
  return `${Number(size.toFixed(2))} ${names[at]}`.trimEnd();
}

/** A stretch of nanoseconds: 850 µs, 12.3 ms, 4.21 s, 2 min 05 s, 1 h 02 min. */
export function duration(ns: number): string {
  const sign = ns < 0 ? "−" : "",
    v = Math.abs(ns);
  if (v === 0) return "0 s";
  if (v < 1e3) return `${sign}${Math.round(v)} ns`;
  if (v < 999.5e3) return `${sign}${short(v / 1e3)} µs`;
  if (v < 999.5e6) return `${sign}${short(v / 1e6)} ms`;
  if (v < 59.95e9) return `${sign}${short(v / 1e9)} s`;
  const seconds = Math.round(v / 1e9);
  const two = (n: number) => String(n).padStart(2, "0");
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  const minutes = Math.round(v / 60e9),
    hours = Math.floor(minutes / 60);
  if (hours < 48) return `${sign}${hours} h ${two(minutes % 60)} min`;
  return `${sign}${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
}

const short = (v: number) => (v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2));

/** Whole numbers with commas between thousands, as the texts of a report have them. */
export const count = (v: number) =>
  String(Math.round(v))
    .replace("-", "−")
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** Thousandths of one whole, as per cent. */
export const percent = (milli: number) =>
  milli > 0 && milli < 0.5
    ? "< 0.1 %"
    : `${(milli / 10).toFixed(Math.abs(milli) >= 995 ? 0 : 1).replace("-", "−")} %`;

/** A cell in its column's unit. */
export function quantity(value: Cell | undefined, unit: Unit | undefined): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "string") return value;
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "ns":
      return duration(value);
    case "milli":
      return percent(value);
    case "celsius":
      return `${value} °C`;
    case "mW":
      return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} W`;
  }
  return count(value);
}

/** The last part of a path, for reading; the whole stays in a title. */
export const basename = (path: string) => path.slice(path.lastIndexOf("/") + 1) || path;

/** A line of a file, as an editor takes it: train.py:61. */
export const place = (file: string, line?: number) =>
  line ? `${basename(file)}:${line}` : basename(file);

/** A moment of the wall clock (ns), in universal time. */
export const wallClock = (ns: number) =>
  `${new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19)} UTC`;

/** A command line as a shell takes it. */
export const commandLine = (words: string[]) =>
  words.map((w) => (/^[\w@%+=:,./~-]+$/.test(w) ? w : `'${w.replaceAll("'", `'\\''`)}'`)).join(" ");

const interpreter = /^(python|pypy)[\d.]*t?$/;

/** A command as people know it: from the script on, without the interpreter and its options. */
export function programOf(command: string[]): string[] {
  const [first = "", ...rest] = command;
  if (!interpreter.test(basename(first))) return command.length ? [basename(first), ...rest] : [];
  let at = 0;
  while (at < rest.length && rest[at]!.startsWith("-") && !["-m", "-c", "-"].includes(rest[at]!))
    at += rest[at] === "-W" || rest[at] === "-X" ? 2 : 1;
  const script = rest[at];
  if (script === undefined || script === "-c" || script === "-") return [basename(first), ...rest];
  return script === "-m" ? rest.slice(at + 1) : [basename(script), ...rest.slice(at + 1)];
}

/** What an end means to who looks at many runs: good, bad, live, or unsure. */
export function toneOf({ kind }: Ending): "good" | "bad" | "live" | "unsure" {
  if (kind === "running") return "live";
  if (kind === "oom" || kind === "failed") return "bad";
  return kind === "done" || kind === "stopped" || kind === "fits" || kind === "tight"
    ? "good"
    : "unsure";
}

/** The heading of a column or row: the first letter is a capital, where it is one. */
export const heading = (name: string) =>
  name === "pid" ? "PID" : name.charAt(0).toUpperCase() + name.slice(1);

/**
 * A clause as a sentence of its own: what begins with a word gets a capital, code such as
 * train.py:61 stays as it is.
 */
export const sentence = (clause: string) =>
  /^[a-z]+[ ,]/.test(clause) ? clause[0]!.toUpperCase() + clause.slice(1) : clause;
