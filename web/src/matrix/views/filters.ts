import { count } from "../../lib/format";
import { h, section } from "../../views/dom";
import { outcomes, statistics, type Choice, type Model, type Outcome } from "../model";
import { filtered, kept, type Page } from "../state";

const statisticTitles: Record<Choice, string> = {
  "": "as usual for the figure",
  max: "peak",
  mean: "mean",
  median: "median",
  min: "lowest",
};

/**
 * The figure, and a row of values for each axis. With none chosen all are shown; each click adds
 * one or takes it away.
 */
export function filters(model: Model, page: Page): HTMLElement {
  const said = h("p", { class: "hint", role: "status" }),
    reset = h("button", { type: "button", class: "plain" }, "Show all");
  reset.addEventListener("click", () => page.set({ only: {}, state: [] }));
  page.follow(["only", "state"], (view) => {
    const cells = kept(model, view).length,
      words = filtered(model, view);
    said.replaceChildren(
      words
        ? `${count(cells)} of ${count(model.cells.length)} cells: ${words}. `
        : `All ${count(model.cells.length)} cells. Click values to show those alone.`,
      words ? reset : "",
    );
  });
  const rows = model.axes.flatMap((axis, a) =>
    axis.values.length > 1
      ? [
          row(
            axis.name,
            axis.values.map((v, i) => [v, model.shown(a, i)]),
            (view) => view.only[axis.name] ?? [],
            (values) => {
              const { [axis.name]: _, ...others } = page.get().only;
              page.set({ only: values.length > 0 ? { ...others, [axis.name]: values } : others });
            },
            (view) => new Set(kept(model, view, axis.name).map((c) => axis.values[c.at[a]!]!)),
            page,
          ),
        ]
      : [],
  );
  const found = (Object.keys(outcomes) as Outcome[]).filter((o) =>
    model.cells.some((c) => c.outcome === o),
  );
  if (found.length > 1)
    rows.push(
      row(
        "state",
        found.map((o) => [o, `${outcomes[o].mark} ${outcomes[o].title}`]),
        (view) => view.state,
        (values) => page.set({ state: values as Outcome[] }),
        (view) => new Set<string>(kept(model, view, "state").map((c) => c.outcome)),
        page,
      ),
    );
  return section(
    "filters",
    "What is shown",
    h("div", { class: "tools" }, figures(model, page), choice(page)),
    h("div", { class: "axes" }, ...rows),
    said,
  );
}

function figures(model: Model, page: Page): HTMLElement {
  const list = h(
      "select",
      { "aria-label": "Figure" },
      ...model.figures.map((f) => h("option", { value: f }, model.about(f).title)),
    ),
    says = h("span", { class: "hint says" });
  list.addEventListener("change", () => page.set({ figure: list.value }));
  page.follow(["figure"], ({ figure }) => {
    list.value = figure;
    says.textContent = model.about(figure).says;
  });
  return h("span", { class: "figure" }, h("label", { class: "choose" }, "Figure ", list), says);
}

function choice(page: Page): HTMLElement {
  const list = h(
    "select",
    { "aria-label": "Statistic of a trial's samples" },
    ...(["", ...statistics] as const).map((v) => h("option", { value: v }, statisticTitles[v])),
  );
  list.addEventListener("change", () => page.set({ statistic: list.value as Choice }));
  page.follow(["statistic"], ({ statistic }) => {
    list.value = statistic;
  });
  return h("label", { class: "choose" }, "of a trial's samples the ", list);
}

type View = ReturnType<Page["get"]>;

/** The values of one axis. Those that the other filters leave nothing of are faint. */
function row(
  name: string,
  values: [value: string, title: string][],
  chosen: (view: View) => readonly string[],
  choose: (values: string[]) => void,
  left: (view: View) => Set<string>,
  page: Page,
): HTMLElement {
  const buttons = values.map(([value, title]) => {
    const button = h("button", { type: "button", class: "chip" }, title);
    button.addEventListener("click", () => {
      const now = chosen(page.get()),
        next = now.includes(value) ? now.filter((v) => v !== value) : [...now, value];
      choose(
        next.length === values.length ? [] : values.flatMap(([v]) => (next.includes(v) ? [v] : [])),
      );
    });
    return button;
  });
  page.follow(["only", "state"], (view) => {
    const on = chosen(view),
      some = left(view);
    buttons.forEach((b, i) => {
      b.setAttribute("aria-pressed", String(on.includes(values[i]![0])));
      b.classList.toggle("none", !some.has(values[i]![0]));
    });
  });
  return h(
    "div",
    { class: "axis", role: "group", "aria-label": name },
    h("b", {}, name),
    h("div", { class: "chips" }, ...buttons),
  );
}
