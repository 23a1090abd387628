// Imagine: a program on GPUs that are not there. A form, the catalogue, and once it runs its
// verdict with what it rests on.

import type { GPUVerdict, Imagined } from "../../../api";
import "../../../style/forms.css";
import { bytes, count, place } from "../../../lib/format";
import { words } from "../../../lib/words";
import { badge, copier, h, section } from "../../../views/dom";
import { get, query } from "../../api";
import { described, flags, form, options, wrong, type Values } from "../../fields";
import { catalogue, type Job, type Progress, type ImaginedOutcome } from "../../jobs";
import { failure } from "../../parts";
import settings from "../../settings.json";
import type { App } from "../../state";
import { cataloguePanel, verdictTone, verdictWords, type Found } from "../../panels/catalogue";
import type { Shown } from "../page";
import { costPanel } from "../../panels/cost";
import { jobPanel } from "../../panels/job";
import { rankGrid } from "./rankgrid";
import { starter } from "../../panels/start";

const fields = described(settings.imagine);

export function imaginePage(app: App): Shown {
  const { params } = app.get(),
    asking = new AbortController();
  const start = starter("imagine", "Imagine it", (job) =>
    app.set({ params: { ...filled(made.values()), job } }),
  );
  const table = cataloguePanel((gpu) => made.set("gpu", gpu));
  const made = form("imagine", fields, params, (values) => {
    start.show(asked(values));
    table.picked(values.gpu ?? "");
  });
  const all = h("button", { type: "button", class: "plain" }, "Or try all of the catalogue");
  all.addEventListener("click", () => made.set("gpu", "all"));
  made.element.querySelector('[name="gpu"]')!.parentElement!.append(all);
  void catalogue(asking.signal).then(table.gpus, (e: unknown) => {
    if (!asking.signal.aborted) table.element.append(failure(e));
  });
  const verdict = h("div", { class: "verdict" }),
    trials = h("ol", { class: "live" });
  const panel = params.job
    ? jobPanel<ImaginedOutcome>(
        params.job,
        {
          told: (name, data) => {
            if (name === "progress") tell(trials, data as Progress);
          },
          done: (job) => {
            void explorer(job, verdict, asking.signal);
            return show(job, verdict, table.found);
          },
        },
        trials,
        verdict,
      )
    : null;
  const element = h(
    "div",
    { class: "job-page" },
    h("h1", {}, "Does it fit a GPU that you do not have?"),
    section("imagine", "What to run", made.element, start.element),
    panel?.element,
    table.element,
  );
  return {
    element,
    close: () => {
      asking.abort();
      panel?.close();
    },
  };
}

/** Where the run's blocks are seen one by one, if it kept the state of its allocator. */
async function explorer(
  job: Job<ImaginedOutcome>,
  verdict: HTMLElement,
  signal: AbortSignal,
): Promise<void> {
  if (!job.run) return;
  const { snapshots } = await get<{ snapshots: { id: string }[] | null }>(
    query("/snapshots", { run: job.run }),
    signal,
  ).catch(() => ({ snapshots: null }));
  const to = snapshots?.[0] && `/snapshots/${encodeURIComponent(snapshots[0].id)}`;
  if (to)
    verdict
      .querySelector(".answer")
      ?.after(
        h(
          "p",
          { class: "facts" },
          h("span", {}, h("a", { href: to }, "Its blocks, one by one")),
          h(
            "span",
            {},
            h("a", { href: `${to}/whatif` }, "What if the allocator were set otherwise?"),
          ),
        ),
      );
}

export const filled = (values: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter(([, v]) => v));

function asked(values: Values) {
  let command: string[] = [],
    missing = values.command ? "" : "Type the command of a training.";
  try {
    command = words(values.command ?? "");
  } catch (e) {
    missing = (e as Error).message;
  }
  missing ||= wrong(fields, values);
  return {
    line: ["hightide", "imagine", ...flags(fields, values), "--", ...command],
    options: () => options(fields, values),
    missing,
  };
}

function tell(list: HTMLElement, p: Progress): void {
  if (!p.text) return;
  list.append(h("li", {}, p.text));
  while (list.childElementCount > 12) list.firstElementChild!.remove();
  list.scrollTop = list.scrollHeight;
}

const cheapestText = (all: GPUVerdict[], best: GPUVerdict | null): string =>
  best
    ? `Of ${count(all.length)} GPUs the cheapest that fits is ${best.gpu_name}: ` +
      `${best.price_usd_per_hour!.toFixed(2)} USD an hour, ` +
      `${bytes(best.headroom_bytes ?? 0)} free.`
    : `None of ${count(all.length)} GPUs fits and has a price.`;

const tryList = (tries: NonNullable<Imagined["tries"]>): HTMLElement =>
  h(
    "ul",
    { class: "tries" },
    ...tries.map((t) =>
      h(
        "li",
        {},
        h("span", { class: `outcome ${verdictTone(t.verdict)}` }, verdictWords(t.verdict)),
        " ",
        t.what,
        t.peak_device_used_bytes !== undefined && `: ${bytes(t.peak_device_used_bytes)}`,
        t.command && copier(t.command, { class: "command" }, h("code", {}, t.command)),
      ),
    ),
  );

/** What the cheapest GPU costs, else the one that was asked for, where it fits and has a price. */
function costOf(v: Imagined, best: GPUVerdict | null, rented: number): HTMLElement | null {
  if (best)
    return costPanel({
      price: best.price_usd_per_hour!,
      gpus: rented,
      total: best.total_bytes,
      used: best.peak_device_used_bytes,
      of: `this program on ${best.gpu_name}`,
    });
  if (!fitting.includes(v.verdict) || !v.price_usd_per_hour) return null;
  const devices = v.devices ?? [];
  return costPanel({
    price: v.price_usd_per_hour,
    gpus: rented,
    total: v.total_bytes,
    ...(rented > 1 && devices.length === rented
      ? {
          used: devices.reduce((sum, d) => sum + d.peak_used_bytes, 0) / rented,
          each: "on average",
        }
      : {
          used: v.peak_device_used_bytes,
          ...(rented > 1 ? { each: "as the fullest of those played" } : {}),
        }),
    of: "this program",
  });
}

/**
 * The verdict, its memory in one bar, what it rests on, and what else was tried. Says whether what
 * the program wrote belongs to it.
 */
function show(job: Job<ImaginedOutcome>, into: HTMLElement, found: (f: Found) => void): boolean {
  const v = job.result;
  if (!v?.verdict) return false;
  const tries = v.tries ?? [],
    ranks = v.ranks ?? [],
    grid = rankGrid(ranks, v.total_bytes, v.gpu_count),
    world = Math.max(...ranks.map((r) => r.world_size ?? 0), 0);
  const all = (v.gpus ?? []).filter((g) => fitting.includes(g.verdict) || g.verdict === "oom"),
    best = all.length > 1 ? cheapest(all) : null;
  const fits = fitting.includes(v.verdict),
    rented = Math.max(v.gpu_count, world);
  into.replaceChildren(
    h(
      "p",
      { class: "answer" },
      h("span", { class: `outcome ${verdictTone(v.verdict)}` }, verdictWords(v.verdict)),
      badge(v.label),
      h("b", {}, sentence(v)),
    ),
    all.length > 1 ? h("p", { class: "facts" }, h("span", {}, cheapestText(all, best))) : "",
    ((fits || v.verdict === "oom") && bar(v)) || "",
    ...[v.basis, v.problem, ...(v.notes ?? [])]
      .filter(Boolean)
      .map((text) =>
        h(
          "p",
          { class: "hint" },
          `${text![0]!.toUpperCase()}${text!.slice(1)}.`.replace(/\.\.$/, "."),
        ),
      ),
    (v.undecided ?? []).length > 0
      ? h(
          "p",
          { class: "hint" },
          "It rests on numbers that only a GPU would compute, read at ",
          v
            .undecided!.map((u) => (u.file ? place(u.file, u.line) : "a line that is not known"))
            .join(", "),
          ".",
        )
      : "",
    ...(tries.length ? [h("h3", {}, "What was tried to make it fit"), tryList(tries)] : []),
    ...(grid
      ? [
          h("h3", {}, "Ranks"),
          grid,
          ...(world > ranks.length
            ? [
                h(
                  "p",
                  { class: "hint" },
                  `${count(ranks.length)} of ${count(world)} ranks were played. ` +
                    "What the others take is not known from that.",
                ),
              ]
            : []),
        ]
      : []),
    costOf(v, best, rented) ?? "",
  );
  found({
    by: new Map(
      [...(v.other_gpus ?? []), ...tries.filter((t) => t.kind === "gpu"), ...(v.gpus ?? []), v].map(
        (one): [string, GPUVerdict] => [one.gpu, one],
      ),
    ),
  });
  return v.verdict === "failed" || v.verdict === "unused";
}

const fitting = ["fits", "tight", "conditional"];

/**
 * The cheapest GPU that a program fits, surely before tightly or on a condition; null: none that
 * has a price.
 */
export function cheapest(all: GPUVerdict[]): GPUVerdict | null {
  const priced = all.filter(
      (g) => fitting.includes(g.verdict) && g.price_usd_per_hour !== undefined,
    ),
    sure = priced.filter((g) => g.verdict === "fits");
  return (
    (sure.length ? sure : priced).toSorted(
      (a, b) => a.price_usd_per_hour! - b.price_usd_per_hour!,
    )[0] ?? null
  );
}

function sentence(v: Imagined): string {
  const left = v.headroom_bytes,
    on = v.gpu_count > 1 ? `${count(v.gpu_count)} × ${v.gpu_name}` : v.gpu_name;
  if (v.verdict === "oom") {
    const lacks =
      left !== undefined && left < 0
        ? `: ${bytes(-left)} are missing`
        : v.asked_bytes
          ? `: a request for ${bytes(v.asked_bytes)} finds none`
          : "";
    return `It does not fit ${on}${lacks}${v.failure ? `; ${v.failure}` : ""}.`;
  }
  if (v.verdict === "failed") return `No verdict on ${on}${v.failure ? `: ${v.failure}` : ""}.`;
  if (v.verdict === "unused")
    return `No verdict on ${on}: the program ${v.failure || "touched no GPU"}.`;
  if (left === undefined) return `${on}: ${verdictWords(v.verdict)}.`;
  const tight =
      v.verdict === "tight"
        ? `, less than the ${bytes(v.tight_below_bytes)} that the figures are sure of`
        : "",
    used = bytes(v.peak_device_used_bytes ?? v.total_bytes - left);
  const several = v.ranks?.length ?? 0; // a rank, or a device of a process
  return several > 1
    ? `The fullest of ${count(several)} × ${v.gpu_name} has ${used} in use and ${bytes(left)} ` +
        `free${tight}.`
    : `It takes ${used} of ${on} and leaves ${bytes(left)}${tight}.`;
}

/** What the peak is made of, as parts of the device's memory. */
function bar(v: Imagined): HTMLElement | null {
  const used = v.peak_device_used_bytes,
    allocated = v.peak_allocated_bytes,
    reserved = v.peak_reserved_bytes;
  if (used === undefined || allocated === undefined || reserved === undefined) return null;
  const parts: [string, number, string][] = [
    ["tensors", Math.min(allocated, used), "allocated"],
    ["cached", Math.max(0, Math.min(reserved, used) - allocated), "reserved"],
    ["context and libraries", Math.max(0, used - reserved), "device"],
    ["free", Math.max(0, v.total_bytes - used), "track"],
  ];
  const some = parts.filter(([, n]) => n > 0),
    sum = some.reduce((n, [, b]) => n + b, 0);
  return h(
    "div",
    { class: "parts" },
    h(
      "div",
      {
        class: "stack-bar",
        role: "img",
        "aria-label": some.map(([n, b]) => `${n} ${bytes(b)}`).join(", "),
      },
      ...some.map(([n, b, ink]) =>
        h("span", { style: `flex:${b / sum};--ink:var(--${ink})`, title: `${n}: ${bytes(b)}` }),
      ),
    ),
    h(
      "ul",
      {},
      ...some.map(([n, b, ink]) =>
        h(
          "li",
          {},
          h("i", { style: `--ink:var(--${ink})` }),
          h("span", {}, n),
          h("b", {}, bytes(b)),
        ),
      ),
    ),
  );
}
