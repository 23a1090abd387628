// Fit: the largest batch. A form for a model or a command, trials as they come, the curve, the
// verdict, what it costs.

import "../../../style/forms.css";
import type { GPUVerdict, Table } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { words } from "../../../lib/words";
import { badge, h, section } from "../../../views/dom";
import { liveTable } from "../../../views/tables";
import { described, flags, form, options, wrong, type Field, type Values } from "../../fields";
import { catalogue, type FitOutcome, type FitTrial, type Job } from "../../jobs";
import { failure } from "../../parts";
import settings from "../../settings.json";
import type { App } from "../../state";
import type { Shown } from "../page";
import { cataloguePanel, type Found } from "../../panels/catalogue";
import { costPanel } from "../../panels/cost";
import { fitCurve, type FitSeen } from "./curve";
import { filled } from "../imagine";
import { jobPanel } from "../../panels/job";
import { savedPicture } from "../../../views/saved";
import { starter } from "../../panels/start";

const models: [string, string][] = [
  ["", "a command"],
  ["bert", "BERT base, as MemoryMark has it"],
  ["gpt2", "GPT-2, as MemoryMark has it"],
  ["resnet", "ResNet-50, as MemoryMark has it"],
  ["llama", "Llama"],
  ["mistral", "Mistral"],
  ["qwen2", "Qwen2"],
  ["vit", "ViT"],
  ["resnet18", "ResNet-18 of torchvision"],
];
const fields = described(settings.fit).map((f): Field =>
  f.name === "model" ? { ...f, kind: "choice", choices: models } : f,
);

export function fitPage(app: App): Shown {
  const { params } = app.get(),
    asking = new AbortController();
  const start = starter("fit", "Search it", (job) =>
    app.set({ params: { ...filled(made.values()), job } }),
  );
  const table = cataloguePanel((gpu) => made.set("gpu", gpu));
  const made = form("fit", fields, params, (values) => {
    start.show(asked(values));
    table.picked(values.gpu ?? "");
    made.element.querySelector<HTMLElement>(".field.line")!.hidden = Boolean(values.model);
  });
  void catalogue(asking.signal).then(table.gpus, (e: unknown) => {
    if (!asking.signal.aborted) table.element.append(failure(e));
  });
  const live = params.job ? following(params.job, params, table.found) : null;
  const element = h(
    "div",
    { class: "job-page" },
    h("h1", {}, "What is the largest batch?"),
    section("fit", "What to fit", made.element, start.element),
    live?.element,
    table.element,
  );
  return {
    element,
    close: () => {
      asking.abort();
      live?.close();
    },
  };
}

/** What a command is not asked is left out: such flags are for models. */
function asked(values: Values) {
  const some = values.model
    ? { ...values, command: "" }
    : Object.fromEntries(
        Object.entries(values).filter(
          ([name]) => !fields.some((f) => f.name === name && (f.part ?? name) === "model"),
        ),
      );
  let command: string[] = [],
    missing = "";
  if (!values.model) {
    try {
      command = words(values.command ?? "");
    } catch (e) {
      missing = (e as Error).message;
    }
    if (!missing && !values.command?.includes("{batch}"))
      missing = "Type a command with {batch} in it, or choose a model.";
  }
  if (!missing && !values.gpu) missing = "Choose a GPU.";
  missing ||= wrong(fields, some);
  return {
    line: ["hightide", "fit", ...flags(fields, some), ...(values.model ? [] : ["--", ...command])],
    options: () => options(fields, some),
    missing,
  };
}

/** The first sentence of why a batch did not fit; a cut is marked. */
const why = (problem = ""): string => problem.replace(/\. .*/s, " …");

/** What the table cuts, in full. */
const wholes = (trials: FitTrial[]): HTMLElement[] => {
  const cut = trials
    .filter((t) => t.problem && why(t.problem) !== t.problem)
    .toSorted((a, b) => a.batch - b.batch);
  return cut.length
    ? [
        h(
          "details",
          { class: "calls" },
          h("summary", {}, "Why not, in full"),
          ...cut.map((t) => h("p", { class: "hint" }, `Batch ${count(t.batch)}: ${t.problem}`)),
        ),
      ]
    : [];
};

const columns: Table = {
  name: "trials",
  title: "Trials",
  columns: [
    { name: "batch", title: "Batch", unit: "count" },
    { name: "fits", title: "Fits" },
    { name: "used", title: "On the device", unit: "bytes" },
    { name: "allocated", title: "Tensors", unit: "bytes" },
    { name: "time", title: "Step", unit: "ns" },
    { name: "problem", title: "Why not" },
  ],
  rows: [],
};

/** A search while it goes on: each trial as it comes. */
function following(
  id: string,
  params: Values,
  found: (f: Found) => void,
): { element: HTMLElement; close(): void } {
  const seen: FitSeen = { trials: [], current: Number(params.current) || 16 };
  const curve = savedPicture(
    () => `fit-${params.model || "command"}-${params.gpu || "gpu"}`,
    () => `Memory against batch: ${params.model || params.command} on ${params.gpu}`,
    (width) => (seen.trials.length ? fitCurve(seen, width) : null),
  );
  const trials = liveTable(columns, undefined, "No trial has ended."),
    verdict = h("div", { class: "verdict" }),
    price = h("div", {}),
    whole = h("div", {}),
    model = h("p", { class: "hint" });
  const show = () => {
    curve.redraw();
    trials.show(
      seen.trials
        .toSorted((a, b) => a.batch - b.batch)
        .map((t) => [
          t.batch,
          t.ok ? "yes" : "no",
          t.device_used_bytes ?? null,
          t.peak_allocated_bytes ?? null,
          t.step_time_ns ?? null,
          why(t.problem),
        ]),
    );
    whole.replaceChildren(...wholes(seen.trials));
  };
  return jobPanel<FitOutcome>(
    id,
    {
      told: (name, data) => {
        if (name === "ready") {
          const r = data as {
            description?: string;
            model?: string;
            parameters?: number;
            versions?: Record<string, string>;
          };
          model.textContent = [
            r.description || r.model,
            r.parameters && `${(r.parameters / 1e6).toFixed(1)} M parameters`,
            r.versions?.torch && `torch ${r.versions.torch}`,
          ]
            .filter(Boolean)
            .join(" · ");
        }
        if (name === "trial") {
          seen.trials.push(data as FitTrial);
          verdict.replaceChildren(h("p", { class: "answer" }, h("b", {}, soFar(seen.trials))));
          show();
        }
      },
      done: (job) => {
        conclude(job, params, seen, verdict, price, show);
        if (job.result) found(headrooms(job.result));
      },
    },
    model,
    verdict,
    curve.element,
    trials.element,
    whole,
    price,
  );
}

/** What the trials tell before the search has ended. */
function soFar(trials: FitTrial[]): string {
  const fits = trials.filter((t) => t.ok).map((t) => t.batch),
    not = trials.filter((t) => !t.ok).map((t) => t.batch);
  const known = [
    fits.length && `a batch of ${count(Math.max(...fits))} fits`,
    not.length && `${fits.length ? "" : "a batch of "}${count(Math.min(...not))} does not`,
  ];
  return `So far ${known.filter(Boolean).join(" and ")}.`;
}

/**
 * What GPUs leave at the largest batch that was found: the one that was imagined as it was tried,
 * others as the server estimates them.
 */
function headrooms(r: FitOutcome): Found {
  const t = r.trials.find((one) => one.batch === r.largest_batch),
    used = t?.device_used_bytes,
    gpu = r.gpu_facts;
  if (!t || !gpu || r.total_bytes === undefined || used === undefined) return { by: new Map() };
  const left = r.total_bytes - used;
  const own: GPUVerdict = {
    gpu: gpu.gpu,
    gpu_name: gpu.name,
    total_bytes: gpu.total_bytes,
    context_overhead_bytes: gpu.context_overhead_bytes,
    label: t.label,
    headroom_bytes: left,
    verdict: left < (r.tight_below_bytes ?? 0) ? "tight" : "fits",
  };
  return {
    by: new Map([...(r.other_gpus ?? []), own].map((v): [string, GPUVerdict] => [v.gpu, v])),
    at: `at a batch of ${count(t.batch)}`,
  };
}

/**
 * Where one batch of a command is imagined alone: with its run, its findings and what holds its
 * peak.
 */
function alone(r: FitOutcome, params: Values): HTMLElement | "" {
  if (!r.largest_batch || !r.gpu || params.model || !params.command) return "";
  const same = Object.fromEntries(
    ["memory", "alloc_conf"].flatMap((name) => (params[name] ? [[name, params[name]!]] : [])),
  );
  const to = new URLSearchParams({
    command: params.command.replaceAll("{batch}", String(r.largest_batch)),
    gpu: r.gpu,
    ...same,
  });
  return h(
    "p",
    {},
    h(
      "a",
      { href: `/imagine?${to.toString()}` },
      `Imagine a batch of ${count(r.largest_batch)} alone, to see what holds its peak`,
    ),
  );
}

/** A figure's label, and the error of an estimate. */
const labelled = (label: string = "estimated", error?: number): string =>
  error === undefined ? label : `${label} ± ${bytes(error)}`;

/** What the search found, in a sentence. */
function answerOf(r: FitOutcome, done: boolean): string {
  if (!done)
    return (
      "It ended before it was found. " +
      (r.trials.length ? soFar(r.trials) : "No batch was tried to its end.")
    );
  if (r.largest_batch === 0) return "Not even the smallest batch fits.";
  const fails = r.fails_at ? `${count(r.fails_at)} does not` : "none was seen to fail";
  return `The largest batch that fits is ${count(r.largest_batch)}; ${fails}.`;
}

/** What the largest batch leaves of the device, and whether that is enough. */
function leftBy(r: FitOutcome): { text: string; tight: boolean } {
  const used = r.trials.find((t) => t.batch === r.largest_batch)?.device_used_bytes;
  if (r.total_bytes === undefined || used === undefined) return { text: "", tight: false };
  const left = r.total_bytes - used,
    wanted = r.tight_below_bytes;
  if (wanted === undefined || left >= wanted)
    return { text: `It leaves ${bytes(left)}.`, tight: false };
  const roomy = r.largest_with_room
    ? ` A batch of ${count(r.largest_with_room)} leaves that (its memory: ` +
      `${labelled(r.largest_with_room_label, r.largest_with_room_error_bytes)}).`
    : "";
  return {
    text:
      `It fits tightly: it leaves ${bytes(left)}, less than the ${bytes(wanted)} ` +
      `that another driver, setting or version may take.${roomy}`,
    tight: true,
  };
}

/** What a search tells beside its answer: accumulation, unused memory, what it rests on. */
function besides(r: FitOutcome, params: Values): string[] {
  const plan = r.accumulation,
    unused = r.unused_at_current_bytes,
    rests = [...new Set(r.trials.flatMap((t) => t.rests_on ?? []))];
  return [
    plan &&
      `A batch of ${count(plan.target_batch)} by accumulation: ` +
        `${count(plan.accumulation_steps)} steps of ${count(plan.micro_batch)}.`,
    unused !== undefined &&
      `At a batch of ${count(r.current_batch)}` +
        `${params.current ? "" : ", taken as none was given for now"}, ` +
        `${bytes(unused)} of the device stay unused ` +
        `(${labelled(r.unused_at_current_label, r.unused_at_current_error_bytes)}).`,
    rests.length > 0 && `It rests on ${rests.join("; ")}.`,
    ...r.notes,
  ].filter((t): t is string => Boolean(t));
}

function conclude(
  { result: r, state }: Job<FitOutcome>,
  params: Values,
  seen: FitSeen,
  into: HTMLElement,
  price: HTMLElement,
  show: () => void,
): void {
  if (!r) return;
  Object.assign(seen, {
    trials: r.trials,
    total: r.total_bytes,
    tight: r.tight_below_bytes,
    current: r.current_batch,
    largest: r.largest_batch || undefined,
  });
  show();
  const done = state === "done",
    left = leftBy(r),
    unused = r.unused_at_current_bytes;
  const [tone, word] = !r.largest_batch
    ? ["bad", "does not fit"]
    : left.tight
      ? ["unsure", "tight"]
      : ["good", "fits"];
  into.replaceChildren(
    h(
      "p",
      { class: "answer" },
      done && h("span", { class: `outcome ${tone}` }, word),
      badge(r.label),
      h("b", {}, answerOf(r, done)),
    ),
    alone(r, params),
    ...[left.text, ...besides(r, params)].filter(Boolean).map((t) => h("p", { class: "hint" }, t)),
  );
  price.replaceChildren(
    r.cost && r.total_bytes
      ? costPanel({
          price: r.cost.usd_per_hour,
          gpus: 1,
          total: r.total_bytes,
          used: unused === undefined ? undefined : r.total_bytes - unused,
          sure: labelled(r.unused_at_current_label, r.unused_at_current_error_bytes),
          of: `a batch of ${count(r.current_batch)}`,
          batches: r.largest_batch
            ? {
                current: r.current_batch,
                best: r.largest_batch,
                speedup: r.memorymark?.speedup ?? null,
              }
            : undefined,
        })
      : "",
  );
}
