// The functions of a flame graph as a table: what each allocates itself, and with all that it
// calls. A row leads to its callers and callees.

import { percent, place } from "../../lib/format";
import { functions, type Sum } from "../../lib/icicle";
import { h } from "../dom";
import type { Graph } from "./graph";

type Frame = Graph["frames"][number];

const most = 200;

export interface Functions {
  element: HTMLElement;
  show(graph: Graph, chosen: string, wanted: ((f: Frame) => boolean) | null): void;
}

/** of tells functions apart, as a search does; pick is told which one was chosen. */
export function functionTable(of: (f: Frame) => string, pick: (of: string) => void): Functions {
  const body = h("tbody", {}),
    said = h("p", { class: "hint" });
  let by: "own" | "value" = "own",
    last: Parameters<Functions["show"]> | null = null;
  const heads = (
    [
      ["own", "Itself", "What it allocates itself"],
      ["value", "With callees", "What it allocates with all that it calls"],
    ] as const
  ).map(([what, text, title]) => {
    const button = h("button", { type: "button", title }, text);
    button.addEventListener("click", () => {
      by = what;
      if (last) show(...last);
    });
    return { what, button, cell: h("th", { scope: "col", class: "number" }, button) };
  });
  const show = (graph: Graph, chosen: string, wanted: ((f: Frame) => boolean) | null): void => {
    last = [graph, chosen, wanted];
    const name = (sum: Sum) => of(graph.frames[sum.frame]!),
      all = functions(graph.root, (f) => of(graph.frames[f]!))
        .filter((s) => !wanted || wanted(graph.frames[s.frame]!))
        .sort((a, b) => b[by] - a[by] || a.own - b.own); // of equal ones, who calls the others
    for (const { what, cell } of heads)
      cell.setAttribute("aria-sort", what === by ? "descending" : "none");
    const focused = body.contains(document.activeElement);
    const figure = (n: number) =>
      h(
        "td",
        {
          class: "number",
          style: `--share:${((100 * n) / Math.max(graph.root.value, 1)).toFixed(1)}%`,
        },
        n > 0 ? `${graph.figure(n)} · ${percent((n / Math.max(graph.root.value, 1)) * 1000)}` : "–",
      );
    body.replaceChildren(
      ...all.slice(0, most).map((s) => {
        const f = graph.frames[s.frame]!,
          button = h("button", { type: "button" }, f.function || place(f.file, f.line));
        button.addEventListener("click", () => pick(name(s)));
        return h(
          "tr",
          name(s) === chosen ? { "aria-selected": "true", class: "picked" } : {},
          h("td", {}, button, f.file ? h("small", { title: f.file }, place(f.file)) : null),
          figure(s.own),
          figure(s.value),
        );
      }),
    );
    if (focused) body.querySelector<HTMLElement>(".picked button")?.focus({ preventScroll: true });
    said.textContent =
      all.length > most
        ? `The first ${most} of ${all.length} functions.`
        : wanted && !all.length
          ? "No function matches the search."
          : "";
  };
  return {
    element: h(
      "div",
      { class: "functions" },
      tableOf(
        heads.map((t) => t.cell),
        body,
      ),
      said,
    ),
    show,
  };
}

const tableOf = (heads: HTMLElement[], body: HTMLElement): HTMLElement =>
  h(
    "div",
    { class: "rows", tabindex: "0", role: "region", "aria-label": "Functions" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Function"), ...heads)),
      body,
    ),
  );
