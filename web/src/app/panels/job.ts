// A job while it works: what it is, how far, what it told so far, and the button that cancels it.

import type { Told } from "../../api";
import { bytes, count, duration } from "../../lib/format";
import { h, section, type Child } from "../../views/dom";
import { failure } from "../parts";
import {
  cancel,
  job as whole,
  over,
  toneOfJob,
  wordOfJob,
  type Job,
  type Progress,
  type Running,
} from "../jobs";
import { stream } from "../stream";

/** What the page of a kind adds: its own events, and its result. */
export interface Kind<Result> {
  told?(name: string, data: unknown): void;
  // with what there is of a result; true: what the program wrote is to be seen with it
  done(job: Job<Result>): boolean | void;
}

/** The button that cancels a job. */
function stopper(id: string, problem: HTMLElement): HTMLButtonElement {
  const stop = h("button", { type: "button", class: "button" }, "Cancel");
  stop.addEventListener("click", () => {
    stop.disabled = true;
    void cancel(id).catch((e: unknown) => {
      problem.replaceChildren(failure(e));
      stop.disabled = false;
    });
  });
  return stop;
}

/** Follows a job to its end. body is the page's own part. */
export function jobPanel<Result>(
  id: string,
  kind: Kind<Result>,
  ...body: Child[]
): { element: HTMLElement; close(): void } {
  const state = h("span", { class: "outcome", role: "status" }),
    clock = h("span", { class: "clock" }),
    said = h("p", { class: "reading", role: "status" });
  const bar = h("progress", { max: "1", hidden: "" }),
    problem = h("div", {}),
    note = h("p", { class: "hint" }),
    links = h("p", { class: "facts" }),
    title = h("strong", {});
  const output = written();
  const stop = stopper(id, problem);
  let now: Job | null = null;
  const tick = () => void (now && (clock.textContent = timeOf(now)));
  const timer = setInterval(tick, 1000);
  const show = (j: Job) => {
    now = j;
    title.textContent = title.title = j.title; // two lines of it are seen
    state.textContent = wordOfJob(j);
    state.className = `outcome ${toneOfJob(j)}`;
    stop.hidden = over(j.state);
    links.replaceChildren(...linksOf(j));
    // of a job that is done the verdict has it
    note.textContent = j.note && j.state !== "done" ? sentence(j.note) : "";
    note.hidden = !note.textContent;
    problem.replaceChildren(...(j.problem ? [failure(new Error(j.problem))] : []));
    tick();
  };
  const asking = new AbortController();
  const told = ({ name, data }: Told) => {
    const text = saidOf(name, data);
    if (text !== null) said.textContent = text;
    if (name === "progress") progressed(bar, data as Progress);
    kind.told?.(name, data);
  };
  const live = stream(
    `/jobs/${encodeURIComponent(id)}/events`,
    `/jobs/${encodeURIComponent(id)}`,
    {
      job: show,
      told,
      end: (j: Job) => {
        show(j);
        bar.hidden = true;
        said.textContent = "";
        clearInterval(timer);
        void whole<Result>(id, asking.signal).then(
          (all) => {
            const belongs = kind.done(all) === true;
            if (all.output) output.show(all.output, belongs || all.state === "failed");
          },
          (e: unknown) => !asking.signal.aborted && problem.replaceChildren(failure(e)),
        );
      },
    },
    () => {
      problem.replaceChildren(unknown());
      stop.hidden = true;
      clearInterval(timer);
    },
  );
  const head = h("div", { class: "job-name" }, title, state, clock),
    element = section(
      "job",
      "The job",
      h("div", { class: "job-head" }, head, stop),
      ...[links, bar, said, note, problem, ...body, output.element],
    );
  return {
    element,
    close: () => {
      live.close();
      asking.abort();
      clearInterval(timer);
    },
  };
}

function progressed(bar: HTMLProgressElement, p: Progress): void {
  bar.hidden = false;
  bar.max = Math.max(p.all, 1);
  bar.value = p.done;
}

const sentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`;

/** What the program wrote, folded. */
function written(): { element: HTMLElement; show(text: string, open: boolean): void } {
  const text = h("pre", { class: "spec", tabindex: "0" });
  const element = h(
    "details",
    { class: "calls", hidden: "" },
    h("summary", {}, "What the program wrote"),
    text,
  );
  return {
    element,
    show: (all, open) => {
      element.hidden = false;
      text.textContent = all;
      element.open = open;
    },
  };
}

/** How long it works, or worked; it is looked at once a second. */
function timeOf(j: Job): string {
  const from = j.started_ns ?? j.asked_ns,
    to = j.ended_ns ?? Date.now() * 1e6,
    ns = Math.max(0, to - from);
  return j.ended_ns || ns >= 59e9 ? duration(ns) : `${Math.round(ns / 1e9)} s`;
}

function linksOf({ run, matrix }: Job): HTMLElement[] {
  const link = (href: string, text: string) => h("span", {}, h("a", { href }, text));
  return [
    ...(run ? [link(`/runs/${encodeURIComponent(run)}`, "Open its run")] : []),
    ...(matrix ? [link(`/matrices/${encodeURIComponent(matrix)}`, "Open the matrix")] : []),
  ];
}

/** An event of the job in words; null: it says nothing. */
function saidOf(name: string, data: unknown): string | null {
  switch (name) {
    case "status":
      return statusText(data as Running);
    case "progress": {
      const p = data as Progress;
      return `${count(p.done)} of ${count(p.all)}${p.text ? `: ${p.text}` : ""}`;
    }
    case "trying":
      return `A batch of ${count((data as { batch: number }).batch)} is being tried.`;
    case "alert":
      return (data as { text: string }).text;
  }
  return null;
}

const statusText = (r: Running): string =>
  [
    r.steps > 0 && `step ${count(r.steps)}`,
    r.phase,
    r.rss_bytes !== undefined && `${bytes(r.rss_bytes)} resident`,
    r.device_used_bytes !== undefined && `${bytes(r.device_used_bytes)} on the device`,
    r.processes > 1 && `${r.processes} processes`,
  ]
    .filter(Boolean)
    .join(" · ");

const unknown = (): HTMLElement =>
  h(
    "p",
    { class: "banner", role: "note" },
    "The server knows this job no more: it was started again since. " +
      "What the job recorded is in ",
    h("a", { href: "/" }, "the list of runs"),
    " or in ",
    h("a", { href: "/matrices" }, "the matrices"),
    ".",
  );
