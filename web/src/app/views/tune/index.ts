// Tune: the cheapest changes by which a training or an LLM server fits. A form, plans as they are
// run, the frontier, and the plan that is chosen. A result of hightide tune --json is opened the
// same way.

import "../../../style/forms.css";
import type { Point, Table, TuneOutcome } from "../../../api";
import { bytes, duration, sentence } from "../../../lib/format";
import { words } from "../../../lib/words";
import { badge, h, section } from "../../../views/dom";
import { savedPicture } from "../../../views/saved";
import { liveTable } from "../../../views/tables";
import { described, flags, form, options, wrong, type Values } from "../../fields";
import { announce } from "../../frame/announce";
import { catalogue, type Job } from "../../jobs";
import { cataloguePanel, verdictWords } from "../../panels/catalogue";
import { jobPanel } from "../../panels/job";
import { starter } from "../../panels/start";
import { failure } from "../../parts";
import settings from "../../settings.json";
import type { App } from "../../state";
import { filled } from "../imagine";
import type { Shown } from "../page";
import { again, frontierChart, moved, percent, used, type Drawn } from "./chart";
import { chosenPlan } from "./chosen";
import { ofServer } from "./server";
import "./tune.css";

const fields = described(settings.tune);
const says = "Drop a result of hightide tune --json";

export function tunePage(app: App): Shown {
  const { params } = app.get(),
    asking = new AbortController();
  const start = starter("tune", "Tune it", (job) =>
    app.set({ params: { ...filled(made.values()), job } }),
  );
  const table = cataloguePanel((gpu) => made.set("gpu", gpu));
  const made = form("tune", fields, params, (values) => {
    start.show(asked(values));
    table.picked(values.gpu ?? "");
  });
  void catalogue(asking.signal).then(table.gpus, (e: unknown) => {
    if (!asking.signal.aborted) table.element.append(failure(e));
  });
  const plans = frontier(app, params.plan ?? ""),
    live = params.job ? following(params.job, plans) : null,
    kept = h("div", {});
  const open = async ([file]: File[]) => {
    try {
      const result = read(await file!.text());
      kept.replaceChildren(section("kept", file!.name, plans.element));
      plans.concluded(result);
    } catch (e) {
      kept.replaceChildren(failure(e));
    }
  };
  const opens = (files: File[]) => void open(files);
  return {
    element: h(
      "div",
      { class: "job-page" },
      h("h1", {}, "What makes a training or a server fit?"),
      section("tune", "What to tune", made.element, start.element, opener(opens)),
      live?.element,
      kept,
      table.element,
    ),
    drop: { says, files: opens },
    close: () => {
      asking.abort();
      live?.close();
    },
  };
}

function asked(values: Values) {
  let command: string[] = [],
    missing = values.command ? "" : "Type the command of a training, or of an LLM server.";
  try {
    command = words(values.command ?? "");
  } catch (e) {
    missing = (e as Error).message;
  }
  missing ||= values.gpu || values.goal === "cost" ? "" : "Choose a GPU.";
  missing ||= wrong(fields, values);
  return {
    line: ["hightide", "tune", ...flags(fields, values), "--", ...command],
    options: () => options(fields, values),
    missing,
  };
}

/** The button that opens a result. */
function opener(opens: (files: File[]) => void): HTMLElement {
  const file = h("input", {
    type: "file",
    accept: ".json,application/json",
    class: "unseen",
    tabindex: "-1",
    "aria-hidden": "true",
  });
  const choose = h("button", { type: "button", class: "plain" }, "Open a result");
  choose.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    if (file.files?.length) opens([...file.files]);
    file.value = "";
  });
  return h(
    "p",
    { class: "hint" },
    choose,
    file,
    " of ",
    h("code", {}, "hightide tune --json"),
    ", or drop it on this page. It stays in this browser.",
  );
}

/** A result as the command writes it. */
export function read(text: string): TuneOutcome {
  let said: Partial<TuneOutcome>;
  try {
    said = JSON.parse(text) as Partial<TuneOutcome>;
  } catch {
    throw new Error("This file is no JSON. hightide tune --json=FILE writes what is read here.");
  }
  if (!Array.isArray(said?.points) || said.total_bytes === undefined || !said.command)
    throw new Error("This is no result of hightide tune --json.");
  if (said.version !== 1) throw new Error(`Version ${said.version} of a result is not known here.`);
  return said as TuneOutcome;
}

/** A tune while it goes on: each plan as it is run. */
function following(id: string, plans: Frontier): { element: HTMLElement; close(): void } {
  return jobPanel<TuneOutcome>(
    id,
    {
      told: (name, data) => {
        if (name === "point") plans.ran(data as Point);
      },
      done: (job: Job<TuneOutcome>) => {
        if (job.result) plans.concluded(job.result);
        return !job.result?.points.length && !job.result?.server;
      },
    },
    plans.element,
  );
}

interface Frontier {
  element: HTMLElement;
  ran(p: Point): void;
  concluded(r: TuneOutcome): void;
}

const columns: Table = {
  name: "plans",
  title: "Plans that were run",
  columns: [
    { name: "plan", title: "Plan" },
    { name: "outcome", title: "Verdict" },
    { name: "used", title: "Peak used", unit: "bytes" },
    { name: "allocated", title: "Peak allocated", unit: "bytes" },
    { name: "again", title: "Computed again" },
    { name: "moved", title: "To the host", unit: "bytes" },
    { name: "best", title: "On the frontier" },
  ],
  rows: [],
};

function rowOf(p: Point): Table["rows"][number] {
  const ran = p.verdict.verdict !== "oom";
  return [
    p.what,
    verdictWords(p.verdict.verdict),
    (ran ? used(p) : undefined) ?? null,
    (ran ? p.verdict.peak_allocated_bytes : undefined) ?? null,
    again(p) ? percent(again(p)) : "",
    moved(p) || null,
    p.recommended ? "recommended" : p.on_frontier ? "yes" : "",
  ];
}

/** The answer, the chart, the table, and what is chosen of them. */
function frontier(app: App, wanted: string): Frontier {
  const seen: Drawn = { points: [], chosen: null };
  let result: TuneOutcome | null = null;
  const answer = h("div", { class: "verdict" }),
    chosen = h("div", { class: "plan-chosen", "aria-live": "polite" }),
    notes = h("div", { class: "verdict" });
  const name = () => `tune-${result?.gpu ?? "gpu"}`;
  const picture = savedPicture(
    name,
    () => `Peak against cost${result ? ` on ${result.gpu_name}` : ""}`,
    (width) => frontierChart(seen, width, (p) => pick(p, true)),
  );
  const list = liveTable(
    columns,
    {
      pick: ([what]) => pick(seen.points.find((p) => p.what === what) ?? null),
      stands: ([what]) => (what === seen.chosen?.what ? "picked" : ""),
    },
    "No plan was run to a verdict.",
  );
  const show = (focus = false) => {
    picture.redraw();
    list.refresh();
    chosen.replaceChildren(...(seen.chosen ? chosenPlan(seen.chosen, result) : []));
    if (focus) picture.element.querySelector<SVGElement>('[aria-pressed="true"]')?.focus();
  };
  const pick = (p: Point | null, focus = false) => {
    seen.chosen = p;
    show(focus);
    const { plan: _, ...rest } = app.get().params;
    app.set({ params: p ? { ...rest, plan: p.what } : rest });
  };
  return {
    element: h("div", { class: "frontier" }, answer, picture.element, chosen, list.element, notes),
    ran: (p) => {
      if (result) return;
      seen.points = [...seen.points.filter((one) => one.what !== p.what), p];
      seen.total = p.verdict.total_bytes;
      list.show(seen.points.map(rowOf));
      show();
    },
    concluded: (r) => {
      result = r;
      const all = r.smallest ? [...r.points, r.smallest] : r.points;
      Object.assign(seen, { points: all, total: r.total_bytes || undefined, room: r.room_bytes });
      seen.chosen =
        all.find((p) => p.what === wanted) ?? all.find((p) => p.recommended) ?? r.smallest ?? null;
      answer.replaceChildren(...answerOf(r), ...(r.server ? ofServer(r.server) : []));
      picture.element.hidden = list.element.hidden = Boolean(r.server);
      list.show(all.map(rowOf));
      notes.replaceChildren(...notesOf(r));
      show();
      if (r.answer) announce(r.answer);
    },
  };
}

/** What was found, as the command says it. */
function answerOf(r: TuneOutcome): HTMLElement[] {
  const made = r.server ? "starts" : "runs",
    verdict = r.verdict ?? "oom",
    tone = { fits: "good", tight: "unsure", conditional: "unsure" }[verdict] ?? "bad";
  return [
    h(
      "p",
      { class: "answer" },
      r.answer &&
        h(
          "span",
          { class: `outcome ${tone}` },
          (r.recommended ?? r.server?.recommended)
            ? verdictWords(verdict)
            : `no ${r.server ? "settings reach" : "plan reaches"} the goal`,
        ),
      badge(r.label),
      h("b", {}, r.answer ?? "It ended before a plan was found."),
    ),
    h(
      "p",
      { class: "hint" },
      [
        r.need_bytes !== undefined &&
          `As it is, the program takes ${bytes(r.need_bytes)} where there is plenty.`,
        `${r.imagined_runs} imagined ${made} in ${duration(r.duration_ns)}.`,
        !r.server && "Choose a plan in the chart or in the table.",
      ]
        .filter(Boolean)
        .join(" "),
    ),
  ];
}

/** Levers that were not used, and what else is to be known. */
function notesOf(r: TuneOutcome): HTMLElement[] {
  const refused = Object.entries(r.refused ?? {}).sort();
  return [
    ...(refused.length
      ? [
          h("h3", {}, "Not used"),
          h(
            "ul",
            { class: "refused" },
            ...refused.map(([name, why]) => h("li", {}, h("code", {}, name), `: ${why}`)),
          ),
        ]
      : []),
    ...r.notes.map((text) => h("p", { class: "hint" }, `${sentence(text)}.`.replace(/\.\.$/, "."))),
  ];
}
