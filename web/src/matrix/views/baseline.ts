import { count, quantity } from "../../lib/format";
import { liveTable } from "../../views/tables";
import { h, section } from "../../views/dom";
import type { Change, Standing } from "../compared";
import type { Model } from "../model";
import { kept, type Page, type View } from "../state";
import { times } from "./ratios";

const standings: Record<Standing, { title: string; tone: string }> = {
  worse: { title: "worse", tone: "bad" },
  unknown: { title: "not decided", tone: "unsure" },
  gone: { title: "gone", tone: "unsure" },
  better: { title: "better", tone: "good" },
  same: { title: "the same", tone: "good" },
  new: { title: "new", tone: "good" },
};

/** How each cell stands beside an earlier result. */
export function baseline(model: Model, page: Page): HTMLElement | null {
  const regression = model.comparison?.regression;
  if (!regression) return null;
  const { changes, counts, name } = regression;
  const live = liveTable(
    {
      name: "baseline",
      title: "Beside the baseline",
      rows: rows(model, page.get(), changes),
      columns: [
        { name: "key", title: "" },
        { name: "cell", title: "cell" },
        { name: "figure", title: "figure" },
        { name: "standing", title: "it is" },
        { name: "was", title: "was" },
        { name: "is", title: "is" },
        { name: "ratio", title: "ratio" },
        { name: "interval", title: "95 % interval" },
        { name: "limit", title: "allowed" },
      ],
    },
    {
      pick: (r) => {
        if (model.byKey.has(String(r[0]))) page.set({ cell: String(r[0]) });
      },
      stands: (r) => (page.get().cell === r[0] ? "picked" : ""),
    },
  );
  page.follow(["only", "state"], (view) => live.show(rows(model, view, changes)));
  page.follow(["cell"], () => live.refresh());
  const tags = (Object.keys(standings) as Standing[])
    .filter((s) => counts[s])
    .map((s) =>
      h(
        "span",
        { class: `outcome ${standings[s].tone}` },
        `${count(counts[s]!)} ${standings[s].title}`,
      ),
    );
  return section(
    "baseline",
    "Beside the baseline",
    h("p", { class: "what" }, name && h("span", {}, `Beside ${name}: `), ...tags),
    live.element,
  );
}

function rows(model: Model, view: View, changes: Change[]): (string | null)[][] {
  const allowed = new Set(kept(model, view).map((c) => c.key));
  return changes
    .filter((c) => allowed.has(c.cell) || !model.byKey.has(c.cell))
    .map((c) => {
      const cell = model.byKey.get(c.cell),
        { title, unit } = model.about(c.figure),
        figure = (v: number | undefined) => (v === undefined ? null : quantity(v, unit));
      return [
        c.cell,
        cell ? model.title(cell) : c.cell,
        title,
        standings[c.standing].title,
        figure(c.was),
        figure(c.is),
        c.ratio ? times(c.ratio) : null,
        c.interval ? `${times(c.interval.low)} to ${times(c.interval.high)}` : null,
        `${Number((c.limit * 100).toFixed(2))} %`,
      ];
    });
}
