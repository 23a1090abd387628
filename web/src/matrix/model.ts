// A measured matrix as the page works with it: cells, what became of them, and their figures. The
// page holds it in columns (internal/matrix/html.go); here it is looked up by cell.

import type { Label, Unit } from "../api";
import { meanParts, unpacked, type Comparison, type PackedComparison } from "./compared";

export interface Axis {
  name: string;
  values: string[];
  labels?: string[];
}
export type State = "done" | "failed" | "oom" | "timeout" | "unavailable" | "lost";
/** What became of a cell: that of its trials, or that it has none yet. */
export type Outcome = State | "unmeasured";

interface FigureColumn {
  trial: number[];
  unit: number;
  max: number[];
  mean: number[];
  min?: number[];
  median?: number[];
  std_dev?: number[];
  count: number[];
  label: Label[];
  error?: number[];
}

export interface Packed {
  version: number;
  name: string;
  start_wall_ns: number;
  axes: Axis[] | null;
  spec: string;
  keys: string[] | null;
  cells: number[][] | null;
  digits: number;
  machines: { name: string; kernel?: string; processors: number; memory_bytes: number }[] | null;
  goal: { figure: string; within: number; least: number; most: number };
  trials: {
    cell: number[] | null;
    repeat: number[];
    state: State[];
    reason: string[];
    run: string[];
    machine: string[];
    start_ms: number[];
    duration_ms: number[];
    figures: Record<string, FigureColumn>;
  };
  comparison?: PackedComparison | undefined;
  reports?: Record<string, string>; // of a run: its report's address, as seen from the page
}

/** One figure over the samples of one trial. Absent is what the page was not given. */
export interface Summary {
  max: number;
  mean: number;
  min?: number;
  median?: number;
  std_dev?: number;
  count: number;
  label: Label;
  error?: number;
}
export interface Trial {
  index: number;
  repeat: number;
  state: State;
  reason: string;
  run: string;
  machine: string;
  start: number;
  duration: number;
}
export interface Cell {
  index: number;
  key: string;
  at: number[];
  trials: Trial[];
  outcome: Outcome;
  reason: string;
}

/** What a bar stands for: which statistic of a trial's samples. */
export const statistics = ["max", "mean", "median", "min"] as const;
export type Statistic = (typeof statistics)[number];
/**
 * What the reader chose; "" is the one that fits the figure: the peak of memory, the median of step
 * times.
 */
export type Choice = Statistic | "";

/** A cell's figure: the mean over its trials, and how sure it is. */
export interface Value {
  value: number;
  low: number;
  high: number;
  each: number[];
  label: Label;
  // what low and high are: a 95 % interval, the lowest and highest trial, or there is one trial
  spread: "interval" | "range" | "one";
}

export interface About {
  title: string;
  unit: Unit;
  says: string;
  usual?: Statistic;
}
/**
 * The leading figure of each cell: of a host's or a device's memory, wherever the model computes.
 */
export const memory = "memory";
const known: Record<string, About> = {
  pss: {
    title: "PSS",
    unit: "bytes",
    says: "resident memory of the process tree, pages that processes share counted once",
  },
  rss: {
    title: "RSS",
    unit: "bytes",
    says: "resident memory of the process tree, shared pages counted in each process",
  },
  allocated: {
    title: "Allocated",
    unit: "bytes",
    says: "what tensors hold in the framework's allocator",
  },
  reserved: {
    title: "Reserved",
    unit: "bytes",
    says: "what the framework's allocator holds of the device",
  },
  device_used: {
    title: "Device memory",
    unit: "bytes",
    says: "what is in use on the device, by whomever",
  },
  vms: { title: "VMS", unit: "bytes", says: "address space, most of it never touched" },
  swap: { title: "Swap", unit: "bytes", says: "memory that was moved to disk" },
  step_time: {
    title: "Step time",
    unit: "ns",
    says: "duration of a step, without the warm-up",
    usual: "median",
  },
  cpu: {
    title: "CPU",
    unit: "milli",
    says: "time on processors, 100 % is one of them",
    usual: "mean",
  },
  minor_faults: {
    title: "Minor faults",
    unit: "count",
    says: "pages that were mapped without reading a disk, over the trial",
  },
  major_faults: {
    title: "Major faults",
    unit: "count",
    says: "pages that were read from a disk, over the trial",
  },
  parameters: { title: "Parameters", unit: "count", says: "weights of the model" },
};
const order = Object.keys(known);

export class Model {
  readonly axes: Axis[];
  readonly cells: Cell[];
  readonly byKey: Map<string, Cell>;
  readonly figures: string[]; // that some trial has
  readonly trialCount: number;
  readonly comparison: Comparison | null; // null: nothing was compared
  readonly device: number; // the axis that says where a cell computes; −1: there is none
  private readonly compared: Map<string, Map<number, number>>; // likewise of the intervals, by cell
  private readonly rows: Map<string, Map<number, number>>; // of a figure: where a trial's entry is
  private readonly values = new Map<string, (Value | null | undefined)[]>();

  constructor(readonly packed: Packed) {
    const { trials } = packed;
    this.comparison = packed.comparison ? unpacked(packed.comparison) : null;
    this.axes = packed.axes ?? [];
    this.cells = (packed.cells ?? []).map((at, index) => ({
      index,
      key: packed.keys?.[index] ?? String(index),
      at,
      trials: [],
      outcome: "unmeasured",
      reason: "",
    }));
    this.byKey = new Map(this.cells.map((c) => [c.key, c]));
    (trials.cell ?? []).forEach((cell, index) =>
      this.cells[cell]?.trials.push({
        index,
        repeat: trials.repeat[index]!,
        state: trials.state[index]!,
        reason: trials.reason[index]!,
        run: trials.run[index]!,
        machine: trials.machine[index]!,
        start: trials.start_ms[index]! * 1e6,
        duration: trials.duration_ms[index]! * 1e6,
      }),
    );
    this.trialCount = trials.cell?.length ?? 0;
    for (const c of this.cells) Object.assign(c, fate(c.trials));
    this.rows = new Map(
      Object.entries(trials.figures).map(([name, column]) => [
        name,
        new Map(column.trial.map((t, i) => [t, i])),
      ]),
    );
    this.compared = new Map(
      Object.entries(packed.comparison?.stats ?? {}).map(([name, column]) => [
        name,
        new Map(column.cell.map((c, i) => [c, i])),
      ]),
    );
    this.device = this.axes.findIndex((a) => /^(device|hardware)$/i.test(a.name));
    this.figures = [
      ...(packed.comparison?.device_figure ? [memory] : []),
      ...Object.keys(trials.figures).sort((a, b) => rank(a) - rank(b)),
    ];
  }

  /** The place of an axis; −1 of one that the matrix does not have. */
  axis(name: string): number {
    return this.axes.findIndex((a) => a.name === name);
  }

  /** How a value of an axis is shown. */
  shown(axis: number, value: number): string {
    return this.axes[axis]!.labels?.[value] || this.axes[axis]!.values[value] || "–";
  }

  /** The numbers of an axis whose values are all numbers; else null. */
  numbers(axis: number): number[] | null {
    const all = this.axes[axis]?.values.map((v) => (v.trim() === "" ? NaN : Number(v))) ?? [];
    return all.length > 0 && all.every(Number.isFinite) ? all : null;
  }

  /** What a figure is called, counted in, and means. */
  about(figure: string): About {
    const { comparison } = this;
    if (figure === memory && comparison) {
      const [host, device] = [
        this.about(comparison.figure).title,
        this.about(comparison.device_figure).title,
      ] as const;
      return {
        title: "Memory",
        unit: "bytes",
        says:
          `${host} of what computes on the host, ${device[0]!.toLowerCase()}${device.slice(1)} ` +
          "of what computes on a device",
      };
    }
    return (
      known[figure] ?? {
        title: figure.replaceAll("_", " "),
        unit: "count",
        says: "as the program told it",
      }
    );
  }

  /**
   * Whether a figure of a cell is the host's beside an imaginary device: of a run that computes
   * nothing.
   */
  idle(cell: Cell, figure: string): boolean {
    return (
      /^imagined:/.test(this.axes[this.device]?.values[cell.at[this.device]!] ?? "") &&
      ["pss", "rss", "vms", "swap", "cpu", "step_time", "minor_faults", "major_faults"].includes(
        this.figureOf(cell, figure),
      )
    );
  }

  /** Which statistic is meant. */
  statistic(figure: string, choice: Choice): Statistic {
    return choice || (this.about(figure).usual ?? "max");
  }

  /** The figure of a cell that is meant: of the leading one, that of where it computes. */
  figureOf(cell: Cell, figure: string): string {
    const { comparison } = this;
    if (figure !== memory || !comparison) return figure;
    const value = this.axes[this.device]?.values[cell.at[this.device]!];
    return value === undefined || value === "cpu" || value === "host"
      ? comparison.figure
      : comparison.device_figure;
  }

  /** What cells have in common, in words. */
  common(cells: Cell[]): string {
    return (
      this.axes
        .flatMap((a, i) =>
          a.values.length > 1 && cells.every((c) => c.at[i] === cells[0]!.at[i])
            ? [named(this, i, cells[0]!.at[i]!)]
            : [],
        )
        .join(" · ") || "all kinds"
    );
  }

  /** What a cell is called, by those of its values that tell it from its neighbours. */
  title(cell: Cell, axes = this.axes.map((_, i) => i)): string {
    return (
      axes
        .filter((a) => this.axes[a]!.values.length > 1 || axes.length === 1)
        .map((a) => named(this, a, cell.at[a]!))
        .join(" · ") || cell.key
    );
  }

  summary(trial: Trial, figure: string): Summary | null {
    const column = this.packed.trials.figures[figure],
      row = this.rows.get(figure)?.get(trial.index);
    if (!column || row === undefined) return null;
    const { unit } = column,
      max = column.max[row]!;
    const below = (from: number[] | undefined) =>
      from?.[row] === undefined ? {} : (max - from[row]!) * unit;
    const part = (name: "min" | "median") => {
      const v = below(column[name]);
      return typeof v === "number" ? { [name]: v } : {};
    };
    return {
      max: max * unit,
      mean: (max - column.mean[row]!) * unit,
      ...part("min"),
      ...part("median"),
      ...(column.std_dev?.[row] === undefined ? {} : { std_dev: column.std_dev[row]! * unit }),
      count: column.count[row]!,
      label: column.label[row]!,
      ...(column.error?.[row] ? { error: column.error[row]! * unit } : {}),
    };
  }

  /** The cell at other values of some axes; undefined where the matrix has none. */
  beside(cell: Cell, axis: number, value: number): Cell | undefined {
    return this.cells.find((c) => c.at.every((v, a) => v === (a === axis ? value : cell.at[a])));
  }

  /** A cell's figure over its finished trials; null where none has it. */
  value(cell: Cell, asked: string, choice: Choice): Value | null {
    const figure = this.figureOf(cell, asked),
      statistic = this.statistic(figure, choice),
      id = `${figure} ${statistic}`;
    const kept = this.values.get(id) ?? [];
    this.values.set(id, kept);
    return kept[cell.index] === undefined
      ? (kept[cell.index] = this.measure(cell, figure, statistic))
      : kept[cell.index]!;
  }

  private measure(cell: Cell, figure: string, statistic: Statistic): Value | null {
    const found = cell.trials.flatMap((t) =>
      t.state === "done" ? (this.summary(t, figure) ?? []) : [],
    );
    const each = found.flatMap((s) => s[statistic] ?? []);
    if (each.length === 0) return null;
    const stats =
        statistic === this.statistic(figure, "") ? this.comparison?.stats[figure] : undefined,
      row = this.compared.get(figure)?.get(cell.index);
    const value = each.reduce((sum, v) => sum + v, 0) / each.length,
      label = found[0]!.label;
    const below = row === undefined ? null : stats?.low[row],
      above = row === undefined ? null : stats?.high[row];
    if (typeof below === "number" && typeof above === "number")
      return {
        value,
        low: value * (1 - below / meanParts),
        high: value * (1 + above / meanParts),
        each,
        label,
        spread: "interval",
      };
    return {
      value,
      low: Math.min(...each),
      high: Math.max(...each),
      each,
      label,
      spread: each.length > 1 ? "range" : "one",
    };
  }
}

const rank = (figure: string) => order.indexOf(figure) + 1 || 99;

/**
 * A value with the name of its axis where it says little without: numbers and single letters do.
 */
export const named = (model: Model, axis: number, value: number): string => {
  const text = model.shown(axis, value);
  return model.axes[axis]!.labels?.[value] || !/^[\d.e+-]+$/i.test(text)
    ? text
    : `${model.axes[axis]!.name} ${text}`;
};

/** A cell is done if one of its trials is; else it is what its last trial is. */
function fate(trials: Trial[]): { outcome: Outcome; reason: string } {
  const last = trials[trials.length - 1];
  if (!last) return { outcome: "unmeasured", reason: "" };
  if (trials.some((t) => t.state === "done")) return { outcome: "done", reason: "" };
  return { outcome: last.state, reason: last.reason };
}

/** What an outcome is called, and the theme's name of its colour. */
export const outcomes: Record<Outcome, { title: string; ink: string; mark: string }> = {
  done: { title: "done", ink: "fine", mark: "✓" },
  failed: { title: "failed", ink: "critical", mark: "✕" },
  oom: { title: "out of memory", ink: "critical", mark: "▲" },
  timeout: { title: "timed out", ink: "warning", mark: "◷" },
  unavailable: { title: "cannot run here", ink: "muted", mark: "∅" },
  lost: { title: "machine lost", ink: "warning", mark: "?" },
  unmeasured: { title: "not measured yet", ink: "muted", mark: "…" },
};

/** What became of those cells that are not done, each once. */
export const failuresOf = (cells: Cell[]): Outcome[] =>
  (Object.keys(outcomes) as Outcome[]).filter(
    (o) => o !== "done" && cells.some((c) => c.outcome === o),
  );
