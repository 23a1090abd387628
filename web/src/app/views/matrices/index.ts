// Matrices: those that were begun, and the form that begins one.

import type { MatrixRow } from "../../../api";
import "../../../style/forms.css";
import { count, wallClock } from "../../../lib/format";
import { h, section } from "../../../views/dom";
import { get } from "../../api";
import { described, flags, form, options, wrong } from "../../fields";
import { busy, empty, failure } from "../../parts";
import settings from "../../settings.json";
import { go, type App } from "../../state";
import type { Shown } from "../page";
import { starter } from "../../panels/start";

const example = `axes:
  framework: [pytorch]
  model: [lenet, resnet18]
  batch: [16, 32, 64]
  mode: [train, inference]
  device: [cpu, "imagined:a10"]
repeats: {least: 3, most: 10, figure: rss, within: 3%}
timeout: 5m
`;
const fields = described(settings.bench);

export function matricesPage(app: App): Shown {
  const asking = new AbortController(),
    list = h("div", {}),
    waiting = busy();
  const ask = () =>
    void get<{ matrices: MatrixRow[] | null }>("/matrices", asking.signal).then(
      ({ matrices }) => {
        answered(
          matrices?.length
            ? table(matrices)
            : empty(
                "No matrix was measured yet",
                "A matrix is every combination of frameworks, models, batches and devices, " +
                  "each measured several times and compared with intervals.",
                "hightide bench matrix.yaml",
              ),
        );
      },
      (e: unknown) => {
        if (!asking.signal.aborted) answered(failure(e, ask));
      },
    );
  const start = starter("bench", "Measure it", (job) => go(app, "/jobs", { job }));
  const made = form("bench", fields, { spec: example, ...app.get().params }, (values) =>
    start.show({
      line: ["hightide", "bench", "matrix.yaml", ...flags(fields, values)],
      missing: values.name ? wrong(fields, values) : "Give it a name.",
      options: () => ({
        ...options(
          fields.filter((f) => f.name !== "spec"),
          values,
        ),
        spec: `${values.spec}\n`,
      }),
    }),
  );
  made.element.querySelector("textarea")!.rows = 9;
  const both = h(
    "div",
    { hidden: "" },
    section("matrices", "Matrices", list),
    section("bench", "Measure one", made.element, start.element),
  );
  const answered = (content: HTMLElement) => {
    waiting.remove();
    both.hidden = false;
    list.replaceChildren(content);
  }; // the form does not move when the list comes
  ask();
  return {
    element: h(
      "div",
      { class: "job-page" },
      h("h1", {}, "Every combination, measured and compared"),
      waiting,
      both,
    ),
    close: () => asking.abort(),
  };
}

function table(rows: MatrixRow[]): HTMLElement {
  const done = (r: MatrixRow) => r.states?.done ?? 0;
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "Matrices" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...["Matrix", "Axes", "Cells done", "Trials", "Last trial"].map((t) =>
            h("th", { scope: "col" }, t),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        ...rows.map((r) =>
          h(
            "tr",
            {},
            h(
              "td",
              { class: "text" },
              h("a", { href: `/matrices/${encodeURIComponent(r.name)}` }, r.name),
              " ",
              r.running && h("span", { class: "badge measured" }, "live"),
            ),
            h(
              "td",
              { class: "text", title: r.problem ?? "" },
              r.problem ?? r.axes.map((a) => `${a.name} ${a.values.length}`).join(" × "),
            ),
            h("td", { class: "number" }, `${count(done(r))} of ${count(r.cells)}`),
            h("td", { class: "number" }, count(r.trials)),
            h("td", {}, r.changed_ns ? wallClock(r.changed_ns) : "–"),
          ),
        ),
      ),
    ),
  );
}
