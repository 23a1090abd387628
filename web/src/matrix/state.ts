// What the reader chose, and how the address holds it: whoever opens the same address sees the same
// page.

import {
  memory,
  outcomes,
  statistics,
  type Cell,
  type Choice,
  type Model,
  type Outcome,
} from "./model";
import { varied } from "./panels";
import type { Store } from "../state/store";

export interface View {
  dark: boolean; // not in the address: it is the reader's, not the view's
  figure: string;
  statistic: Choice;
  // of an axis the values that are shown; absent: all
  only: Readonly<Record<string, readonly string[]>>;
  state: readonly Outcome[]; // empty: all
  group: string; // axes by name; "": none
  colour: string;
  panels: string; // "": as many as there is room for, "none", or an axis
  free: boolean; // each panel has a scale of its own
  along: string; // the axis of the curves
  far: boolean; // curves go on to the predicted limit
  rows: string;
  columns: string;
  cell: string; // key of the chosen one
  order: string; // the column that the table of cells is ordered by; "": as the matrix goes
  up: boolean; // that order from the lowest on
  at: string; // the part that was gone to
}

export type Page = Store<View>;

/** The view of a reader who has chosen nothing. */
export function first(model: Model, dark: boolean): View {
  const axes = varied(model, model.cells),
    name = (a: number | undefined) => (a === undefined ? "" : model.axes[a]!.name);
  const numeric = axes.filter((a) => model.numbers(a)),
    words = axes.filter((a) => !model.numbers(a));
  const colour = words.find((a) => model.axes[a]!.values.length <= 7) ?? numeric[0];
  const group = words.find((a) => a !== colour) ?? numeric.find((a) => a !== colour);
  const along = numeric.find((a) => name(a) === "batch") ?? numeric[0];
  const rows = group ?? colour,
    columns = [along, colour].find((a) => a !== rows);
  const goal =
    model.figures[0] === memory ? memory : model.comparison?.figure || model.packed.goal.figure;
  return {
    dark,
    figure: model.figures.includes(goal) ? goal : (model.figures[0] ?? goal),
    statistic: "",
    only: {},
    state: [],
    group: name(group),
    colour: name(colour),
    panels: "",
    free: false,
    along: name(along),
    far: false,
    rows: name(rows),
    columns: name(columns),
    cell: "",
    order: "",
    up: false,
    at: "",
  };
}

const texts = [
  "figure",
  "statistic",
  "group",
  "colour",
  "panels",
  "along",
  "rows",
  "columns",
  "cell",
  "order",
  "at",
] as const;
const flags = ["free", "far", "up"] as const;

/** The address's last part: what differs from the first view. */
export function written(view: View, start: View): string {
  const out = new URLSearchParams();
  for (const key of texts) if (view[key] !== start[key]) out.set(key, view[key]);
  for (const key of flags) if (view[key]) out.set(key, "1");
  for (const [axis, values] of Object.entries(view.only))
    for (const v of values) out.append(`only.${axis}`, v);
  for (const s of view.state) out.append("state", s);
  return out.toString();
}

/**
 * The view of an address. What the matrix does not have is left out, so that an old address still
 * opens.
 */
export function read(hash: string, start: View, model: Model): View {
  const said = new URLSearchParams(hash.replace(/^#/, "")),
    view: View = { ...start };
  const axes = new Set(model.axes.map((a) => a.name));
  const fits: Record<(typeof texts)[number], (v: string) => boolean> = {
    figure: (v) => model.figures.includes(v),
    statistic: (v) => v === "" || (statistics as readonly string[]).includes(v),
    group: (v) => v === "" || axes.has(v),
    colour: (v) => v === "" || axes.has(v),
    panels: (v) => ["", "none"].includes(v) || axes.has(v),
    along: (v) => axes.has(v),
    rows: (v) => axes.has(v),
    columns: (v) => axes.has(v),
    cell: (v) => v === "" || model.byKey.has(v),
    order: () => true,
    at: (v) => /^[a-z]*$/.test(v),
  };
  for (const key of texts) {
    const v = said.get(key);
    if (v !== null && fits[key](v)) Object.assign(view, { [key]: v });
  }
  for (const key of flags) if (said.has(key)) view[key] = said.get(key) === "1";
  const only: Record<string, string[]> = {};
  for (const axis of model.axes) {
    const values = said.getAll(`only.${axis.name}`).filter((v) => axis.values.includes(v));
    if (values.length > 0) only[axis.name] = values;
  }
  view.only = only;
  view.state = said.getAll("state").filter((s): s is Outcome => s in outcomes);
  return view;
}

/**
 * The cells that the filters leave. Without one of the axes ("state" is one here): what that axis's
 * choices have.
 */
export function kept(model: Model, view: Pick<View, "only" | "state">, without = ""): Cell[] {
  const tests = model.axes.flatMap((axis, a) => {
    const values = axis.name === without ? undefined : view.only[axis.name];
    return values?.length
      ? [{ a, allowed: new Set(values.map((v) => axis.values.indexOf(v))) }]
      : [];
  });
  const states = without === "state" || view.state.length === 0 ? null : new Set(view.state);
  return model.cells.filter(
    (c) => tests.every((t) => t.allowed.has(c.at[t.a]!)) && (!states || states.has(c.outcome)),
  );
}

/** What the filters leave, in words; "" where they leave everything. */
export function filtered(model: Model, view: Pick<View, "only" | "state">): string {
  const parts = model.axes.flatMap((axis, a) => {
    const values = view.only[axis.name];
    return values?.length
      ? [`${axis.name} ${values.map((v) => model.shown(a, axis.values.indexOf(v))).join(", ")}`]
      : [];
  });
  if (view.state.length > 0)
    parts.push(`state ${view.state.map((s) => outcomes[s].title).join(", ")}`);
  return parts.join(" · ");
}

const words = { max: "peak", mean: "mean", median: "median", min: "lowest" } as const;

/** The chosen figure in words: peak PSS, median step time. */
export function figureTitle(
  model: Model,
  view: Pick<View, "figure" | "statistic">,
  capital = true,
): string {
  const { title, unit } = model.about(view.figure),
    inner = /^[A-Z]{2}/.test(title) ? title : title.toLowerCase();
  const said =
    unit === "count" ? inner : `${words[model.statistic(view.figure, view.statistic)]} ${inner}`;
  return capital ? said[0]!.toUpperCase() + said.slice(1) : said;
}
