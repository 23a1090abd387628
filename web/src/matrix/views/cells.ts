import type { Cell as Entry, Column } from "../../api";
import { count } from "../../lib/format";
import { liveTable } from "../../views/tables";
import { h, section } from "../../views/dom";
import { outcomes, type Cell, type Model } from "../model";
import { figureTitle, kept, type Page, type View } from "../state";

/** Every cell, what became of it, and its figures. */
export function cells(model: Model, page: Page): HTMLElement {
  const place = h("div", { class: "cells" });
  let table: ReturnType<typeof liveTable> | null = null;
  const rows = (view: View) => kept(model, view).map((c) => row(model, view, c));
  page.follow(["figure", "statistic"], (view) => {
    // other columns: another table
    table = liveTable(
      { name: "cells", title: "Cells", columns: columns(model, view), rows: rows(view) },
      {
        pick: (r) => page.set({ cell: String(r[0]) }),
        stands: (r) => (page.get().cell === r[0] ? "picked" : ""),
        order: {
          by: page.get().order,
          down: !page.get().up,
          chosen: (order, down) => page.set({ order, up: !down }),
        },
      },
    );
    place.replaceChildren(table.element);
  });
  page.follow(["only", "state"], (view) => table!.show(rows(view)));
  page.follow(["cell"], () => table!.refresh());
  return section("cells", "Cells", place);
}

const others = (model: Model, view: View) => model.figures.filter((f) => f !== view.figure);

function columns(model: Model, view: View): Column[] {
  const { unit } = model.about(view.figure),
    title = figureTitle(model, view);
  return [
    { name: "key", title: "" },
    { name: "cell", title: "cell" },
    { name: "state", title: "state" },
    { name: "value", title, unit },
    { name: "low", title: "from", unit },
    { name: "high", title: "to", unit },
    { name: "trials", title: "trials" },
    ...others(model, view).map((f) => ({
      name: f,
      title: model.about(f).title,
      unit: model.about(f).unit,
    })),
  ];
}

function row(model: Model, view: View, c: Cell): Entry[] {
  const value = model.value(c, view.figure, view.statistic),
    done = c.trials.filter((t) => t.state === "done").length;
  return [
    c.key,
    model.title(c),
    c.outcome === "done"
      ? outcomes.done.title
      : `${outcomes[c.outcome].title}${c.reason ? `: ${c.reason}` : ""}`,
    value?.value ?? null,
    value && value.spread !== "one" ? value.low : null,
    value && value.spread !== "one" ? value.high : null,
    c.trials.length === done ? count(done) : `${done} of ${c.trials.length}`,
    ...others(model, view).map((f) => model.value(c, f, "")?.value ?? null),
  ];
}
