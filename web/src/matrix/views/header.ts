import { bytes, count, duration, quantity, wallClock } from "../../lib/format";
import { h, rich, section, type Child } from "../../views/dom";
import { outcomes, type Cell, type Model, type Outcome } from "../model";
import { figureTitle, type Page } from "../state";
import { axisChoices } from "./picture";

/** What was measured, and the answer in one breath. */
export function header(model: Model, page: Page): HTMLElement {
  const { packed } = model,
    done = model.cells.filter((c) => c.outcome === "done").length,
    left = model.cells.length - done;
  const axes = axisChoices(model).map(
    ([name]) => `${count(model.axes[model.axis(name)]!.values.length)} × ${name}`,
  );
  const title = h("h1", {}),
    more = h("span", { class: "more-said" });
  page.follow(["figure", "statistic"], (view) => {
    const known = model.cells
      .flatMap((c): { cell: Cell; value: number }[] => {
        const v = model.value(c, view.figure, view.statistic);
        return v ? [{ cell: c, value: v.value }] : [];
      })
      .sort((a, b) => a.value - b.value);
    const least = known[0],
      most = known[known.length - 1],
      unit = model.about(view.figure).unit;
    title.replaceChildren(
      least && most
        ? least === most || least.value === most.value
          ? `${figureTitle(model, view)}: ${quantity(most.value, unit)} ` +
            `${inCells(known.length, model.cells.length)}.`
          : `${figureTitle(model, view)}: from ${quantity(least.value, unit)} to ` +
            `${quantity(most.value, unit)}.`
        : done > 0
          ? `${figureTitle(model, view)} was not measured.`
          : "No cell has been measured.",
      more,
    );
    more.textContent =
      least && most && least.value < most.value
        ? `Least: ${model.title(least.cell)}. Most: ${model.title(most.cell)}.`
        : "";
  });
  return h(
    "header",
    { class: "top" },
    h(
      "p",
      { class: "what" },
      h("strong", {}, packed.name || "A matrix"),
      ...outcomeTags(model, page),
    ),
    title,
    h(
      "p",
      { class: "facts" },
      ...[
        `${count(done)} of ${count(model.cells.length)} cells ` +
          `measured${left ? `, ${count(left)} without a figure` : ""}`,
        axes.join(", "),
        `${count(model.trialCount)} trial${model.trialCount === 1 ? "" : "s"}`,
        took(model),
        goal(model),
        ...machines(model),
      ]
        .filter(Boolean)
        .map((f) => h("span", {}, f)),
    ),
  );
}

/** In which cells a figure is the same. */
export const inCells = (known: number, all: number): string =>
  known === all
    ? "in every cell"
    : known === 1
      ? "in the one cell that has it"
      : `in each of the ${count(known)} cells that have it`;

/** How many cells came to what; a click shows those alone. */
function outcomeTags(model: Model, page: Page): HTMLElement[] {
  const counts = new Map<Outcome, number>();
  for (const c of model.cells) counts.set(c.outcome, (counts.get(c.outcome) ?? 0) + 1);
  return (Object.keys(outcomes) as Outcome[])
    .filter((o) => counts.has(o))
    .map((o) => {
      const tag = h(
        "button",
        {
          type: "button",
          class:
            "outcome " +
            `${o === "done" ? "good" : outcomes[o].ink === "critical" ? "bad" : "unsure"}`,
          title: "Show these cells alone",
        },
        `${outcomes[o].mark} ${count(counts.get(o)!)} ${outcomes[o].title}`,
      );
      tag.addEventListener("click", () =>
        page.set({ state: page.get().state.length === 1 && page.get().state[0] === o ? [] : [o] }),
      );
      page.follow(["state"], ({ state }) =>
        tag.setAttribute("aria-pressed", String(state.includes(o))),
      );
      return tag;
    });
}

function took(model: Model): string {
  const trials = model.cells.flatMap((c) => c.trials);
  if (trials.length === 0) return "";
  const begun = Math.min(...trials.map((t) => t.start)),
    ended = Math.max(...trials.map((t) => t.start + t.duration));
  return `${duration(ended - begun)} from first to last`;
}

function goal(model: Model): string {
  const { figure, within, least, most } = model.packed.goal;
  const repeats =
    least === most ? `${count(least)} repeats` : `${count(least)} to ${count(most)} repeats`;
  if (least <= 0) return "";
  if (within <= 0 || !figure) return repeats;
  const share = Number((within * 100).toFixed(2));
  return `${repeats} until ${model.about(figure).title} is known within ${share} %`;
}

const machines = (model: Model): string[] =>
  (model.packed.machines ?? [])
    .slice(0, 3)
    .map((m) =>
      [
        `on ${m.name}`,
        m.processors > 0 && `${m.processors} CPUs`,
        m.memory_bytes > 0 && bytes(m.memory_bytes),
      ]
        .filter(Boolean)
        .join(", "),
    );

/** What follows from the figures, in sentences; a click on a sentence's cell shows it. */
export function advice(model: Model, page: Page): HTMLElement | null {
  const all = model.comparison?.advice ?? [];
  if (all.length === 0) return null;
  return section(
    "advice",
    "What follows",
    h(
      "ol",
      { class: "sentences" },
      ...all.map((a) =>
        h(
          "li",
          {},
          ...rich(a.sentence),
          ...cellLinks(
            model,
            page,
            (a.cells ?? []).flatMap((c) => model.cells[c] ?? []),
          ),
        ),
      ),
    ),
  );
}

const mostLinks = 2;

/** Cells by name, to be chosen by a click. */
const cellLinks = (model: Model, page: Page, cells: Cell[]): Child[] =>
  cells.slice(0, mostLinks).flatMap((c) => {
    const link = h(
      "button",
      { type: "button", class: "plain cell-link", title: "Show this cell" },
      model.title(c),
    );
    link.addEventListener("click", () => page.set({ cell: c.key }));
    return [" ", link];
  });

/** What is not known, and how the rest was made. */
export function notes(model: Model): HTMLElement | null {
  const { packed } = model,
    all = [...(model.comparison?.notes ?? [])];
  if (!model.comparison)
    all.push(
      "The cells of this matrix were not compared: there are no intervals, ratios and fits.",
    );
  if (packed.digits < 6) {
    const means = Object.values(packed.trials.figures).some((f) => !f.median);
    all.push(
      "To keep this page small, figures of single trials are rounded to " +
        `${packed.digits} digits${means ? " and have no median, minimum and deviation" : ""}. ` +
        "`hightide bench --json` has all of them.",
    );
  }
  const spec = packed.spec.trim();
  return section(
    "notes",
    "What is not known, and how the rest was measured",
    all.length > 0 && h("ul", { class: "notes" }, ...all.map((n) => h("li", {}, ...rich(n)))),
    spec &&
      h(
        "details",
        {},
        h("summary", {}, "The specification"),
        h("pre", { class: "spec" }, h("code", {}, spec)),
      ),
  );
}

/** When this was, and how it is used. */
export function footer(model: Model): HTMLElement {
  const { packed } = model;
  return h(
    "footer",
    {},
    [
      "hightide",
      `matrix ${packed.name}`,
      packed.start_wall_ns > 1e15 && wallClock(packed.start_wall_ns),
      `result version ${packed.version}`,
    ]
      .filter(Boolean)
      .join(" · "),
    h(
      "span",
      { class: "keys" },
      " · keys: i explains the charts, t light or dark, in a chart ← → ↑ ↓ and Enter, " +
        "Escape closes a cell",
    ),
  );
}
