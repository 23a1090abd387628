// One cell, looked into: its trials, what they measured, how it differs from its neighbours, and
// how to see more.

import { commandLine, count, duration, quantity, wallClock } from "../../lib/format";
import { badge, copier, h, type Child } from "../../views/dom";
import { tableBody } from "../../views/tables";
import { memory, outcomes, type Cell, type Model } from "../model";
import { figureTitle, type Page } from "../state";
import { times } from "./ratios";
import { sure } from "./marks";

/** The chosen cell beside the page; nothing while there is none. */
export function drill(model: Model, page: Page, closed: AbortSignal): HTMLElement {
  const box = h("aside", {
    id: "cell",
    tabindex: "-1",
    "aria-label": "The chosen cell",
    hidden: "",
  });
  let chart = ""; // where it was chosen: the focus goes back there
  addEventListener(
    "focusin",
    (e) => {
      const mark = e.target instanceof Element ? e.target.closest(".mark") : null;
      if (mark) chart = mark.closest("section")?.id ?? "";
    },
    { signal: closed },
  );
  const close = () => {
    page.set({ cell: "" });
    if (chart)
      document
        .querySelector<SVGElement>(`#${chart} .mark[tabindex='0']`)
        ?.focus({ preventScroll: true });
  };
  addEventListener(
    "keydown",
    (e) => {
      if (e.key === "Escape" && !box.hidden) close();
    },
    { signal: closed },
  );
  page.follow(["cell", "figure", "statistic"], ({ cell: key }) => {
    const cell = model.byKey.get(key);
    box.hidden = !cell;
    if (!cell) return;
    const shut = h(
      "button",
      { type: "button", class: "shut", title: "Close (Escape)", "aria-label": "Close" },
      "×",
    );
    shut.addEventListener("click", close);
    const { mark, title } = outcomes[cell.outcome],
      failed = cell.trials.filter((t) => t.state !== "done").length;
    const tone =
      cell.outcome === "done"
        ? "good"
        : outcomes[cell.outcome].ink === "critical"
          ? "bad"
          : "unsure";
    box.replaceChildren(
      ...[
        h("header", {}, h("h2", {}, model.title(cell)), shut),
        h(
          "p",
          { class: "what" },
          h("span", { class: `outcome ${tone}` }, `${mark} ${title}`),
          h(
            "span",
            {},
            trialsOf(cell),
            cell.outcome === "done" && failed > 0 ? `, ${count(failed)} of them not done` : "",
          ),
        ),
        cell.reason && h("p", { class: "banner" }, cell.reason),
        ...lead(model, page, cell),
        figures(model, cell),
        trials(model, page, cell),
        neighbours(model, page, cell),
        ...differences(model, page, cell),
      ].filter((c) => c instanceof Node),
    );
  });
  return box;
}

const trialsOf = (cell: Cell) =>
  cell.trials.length === 1 ? "1 trial" : `${count(cell.trials.length)} trials`;

/** The chosen figure, large, and how sure it is. */
function lead(model: Model, page: Page, cell: Cell): Child[] {
  const view = page.get(),
    figure = model.figureOf(cell, view.figure),
    value = model.value(cell, view.figure, view.statistic),
    { title, unit } = model.about(figure);
  if (!value) return [h("p", { class: "nothing" }, `${title} was not measured in this cell.`)];
  return [
    h(
      "p",
      { class: "lead" },
      h("b", {}, quantity(value.value, unit)),
      " ",
      h(
        "span",
        {},
        figureTitle(model, { figure, statistic: view.statistic }, false),
        value.label && value.label !== "measured" ? " " : null,
        value.label !== "measured" ? badge(value.label) : null,
      ),
    ),
    h("p", { class: "hint" }, sure(value, unit)[0] ?? ""),
  ];
}

/** All figures of the cell, over the samples of its finished trials. */
function figures(model: Model, cell: Cell): Child {
  const done = cell.trials.filter((t) => t.state === "done");
  const mean = (values: (number | undefined)[]) => {
    const all = values.filter((v): v is number => v !== undefined);
    return all.length > 0 ? all.reduce((sum, v) => sum + v, 0) / all.length : null;
  };
  const rows = model.figures
    .filter((f) => f !== memory)
    .flatMap((f) => {
      const some = done.flatMap((t) => model.summary(t, f) ?? []),
        { title, unit } = model.about(f);
      const shown = (v: number | null) => (v === null ? null : quantity(v, unit));
      return some.length > 0
        ? [
            [
              named(
                title,
                some.map((x) => x.label),
              ),
              shown(mean(some.map((x) => x.mean))),
              shown(Math.max(...some.map((x) => x.max))),
              some.some((x) => x.min !== undefined)
                ? shown(Math.min(...some.flatMap((x) => x.min ?? [])))
                : null,
              some.some((x) => x.count > 1) ? shown(mean(some.map((x) => x.std_dev))) : null,
              shown(mean(some.map((x) => x.median))),
            ],
          ]
        : [];
    });
  return (
    rows.length > 0 &&
    part(
      "Figures",
      "Mean, deviation and median of the samples, averaged over the trials; " +
        "the highest and lowest sample of all.",
      tableBody({
        name: "figures",
        title: "Figures",
        rows,
        columns: [
          { name: "figure", title: "figure" },
          ...["mean", "max", "min", "std", "median"].map((n) => ({ name: n, title: n })),
        ],
      }),
    )
  );
}

/** A figure with where it comes from, unless it was measured. */
const named = (title: string, labels: string[]): string => {
  const others = [...new Set(labels)].filter((l) => l && l !== "measured");
  return others.length > 0 ? `${title}, ${others.join(" and ")}` : title;
};

/** Each trial, and the command that shows its recording. */
function trials(model: Model, page: Page, cell: Cell): Child {
  const view = page.get(),
    figure = model.figureOf(cell, view.figure),
    statistic = model.statistic(figure, view.statistic),
    { unit, title } = model.about(figure),
    start = model.packed.start_wall_ns;
  return part(
    "Trials",
    "",
    h(
      "ol",
      { class: "trials" },
      ...cell.trials.map((t) => {
        const found = model.summary(t, figure),
          command = t.run ? commandLine(["hightide", "show", t.run]) : "";
        return h(
          "li",
          {},
          h(
            "p",
            {},
            h("b", {}, `#${t.repeat}`),
            " ",
            t.state === "done"
              ? found?.[statistic] !== undefined
                ? `${quantity(found[statistic]!, unit)} ${title}`
                : "done"
              : h(
                  "span",
                  { class: outcomes[t.state].ink },
                  `${outcomes[t.state].mark} ${outcomes[t.state].title}`,
                ),
            h(
              "small",
              {},
              [
                duration(t.duration),
                t.machine && `on ${t.machine}`,
                start > 1e15 && wallClock(start + t.start),
              ]
                .filter(Boolean)
                .join(" · "),
            ),
          ),
          t.reason && h("p", { class: "reason" }, t.reason),
          report(model, t.run),
          command && copier(command, { class: "command" }, h("code", {}, command)),
        );
      }),
    ),
  );
}

/**
 * A link to a trial's own report, where it was written beside the page. What is not a relative
 * address is not a link.
 */
function report(model: Model, run: string): Child {
  const address = model.packed.reports?.[run];
  return address && !/^[a-z][a-z0-9+.-]*:|^\/\//i.test(address)
    ? h("p", {}, h("a", { href: address, class: "plain report" }, "Its own report"))
    : null;
}

/** Cells that differ in one axis alone, and by how much. */
function neighbours(model: Model, page: Page, cell: Cell): Child {
  const view = page.get(),
    value = model.value(cell, view.figure, view.statistic),
    { unit } = model.about(view.figure),
    pairs = (model.comparison?.ratios ?? []).flatMap((r) => r.of);
  const items = model.axes.flatMap((axis, a) =>
    axis.values.flatMap((_, v): Child[] => {
      const other = v === cell.at[a] ? undefined : model.beside(cell, a, v);
      if (!other) return [];
      const theirs = model.value(other, view.figure, view.statistic),
        pair = pairs.find((p) => p.cell === other.index && p.base === cell.index) ?? null,
        back = pairs.find((p) => p.base === other.index && p.cell === cell.index);
      const ratio = value && theirs && value.value > 0 ? theirs.value / value.value : null,
        decided = (pair ?? back)?.verdict;
      const go = h("button", { type: "button", class: "plain" }, model.shown(a, v));
      go.addEventListener("click", () => page.set({ cell: other.key }));
      return [
        h(
          "li",
          {},
          h("span", { class: "role" }, axis.name),
          go,
          h("span", {}, theirs ? quantity(theirs.value, unit) : outcomes[other.outcome].title),
          h("b", {}, ratio === null ? "" : times(ratio)),
          h(
            "small",
            {},
            ratio === null
              ? ""
              : decided === "unknown"
                ? "not decided"
                : decided
                  ? ""
                  : "not compared",
          ),
        ),
      ];
    }),
  );
  return (
    items.length > 0 &&
    part(
      "Neighbouring cells",
      "Cells that differ in one axis alone: what they need, as a multiple of this one.",
      h("ul", { class: "neighbours" }, ...items),
    )
  );
}

/** What explains the difference to another cell, where the recordings say it. */
function differences(model: Model, page: Page, cell: Cell): Child[] {
  return (model.comparison?.differences ?? [])
    .filter((d) => d.cell === cell.index || d.base === cell.index)
    .map((d) => {
      const other = model.cells[d.cell === cell.index ? d.base : d.cell]!,
        sign = d.cell === cell.index ? 1 : -1,
        a = model.axis(d.axis),
        unit = model.about(d.figure).unit;
      const go = h("button", { type: "button", class: "plain" }, model.title(other));
      go.addEventListener("click", () => page.set({ cell: other.key }));
      const rows = d.parts.map((p) => [
        p.name,
        p.by,
        sign > 0 ? p.cell_bytes : p.base_bytes,
        sign > 0 ? p.base_bytes : p.cell_bytes,
        sign * (p.cell_bytes - p.base_bytes),
        p.label,
      ]);
      return part(
        `Why not as ${a >= 0 ? model.shown(a, other.at[a]!) : "the other"}`,
        "",
        h(
          "p",
          {},
          `${quantity(Math.abs(d.bytes), unit)} ${d.bytes * sign >= 0 ? "more" : "less"} ` +
            `${model.about(d.figure).title} than `,
          go,
          ".",
        ),
        d.note && h("p", { class: "hint" }, d.note),
        rows.length > 0 &&
          tableBody({
            name: "parts",
            title: "What differs",
            rows,
            columns: [
              { name: "name", title: "held by" },
              { name: "by", title: "" },
              { name: "here", title: "here", unit: "bytes" },
              { name: "there", title: "there", unit: "bytes" },
              { name: "more", title: "more here", unit: "bytes" },
              { name: "label", title: "how" },
            ],
          }),
      );
    });
}

const part = (title: string, words: string, ...children: Child[]): HTMLElement =>
  h(
    "div",
    { class: "part" },
    h("h3", {}, title),
    words && h("p", { class: "hint" }, words),
    ...children,
  );
