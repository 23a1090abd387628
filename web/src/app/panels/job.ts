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
  const output = h(
    "details",
    { class: "calls", hidden: "" },
    h("summary", {}, "What the program wrote"),
    h("pre", { class: "spec", tabindex: "0" }),
  );
  const stop = h("button", { type: "button", class: "button" }, "Cancel");
  stop.addEventListener("click", () => {
    stop.disabled = true;
    void cancel(id).catch((e: unknown) => {
      problem.replaceChildren(failure(e));
      stop.disabled = false;
    });
  });
  let now: Job | null = null;
  const tick = () => {
    if (!now) return;
    const from = now.started_ns ?? now.asked_ns,
      to = now.ended_ns ?? Date.now() * 1e6;
    const ns = Math.max(0, to - from);
    // it is looked at once a second
    clock.textContent = now.ended_ns || ns >= 59e9 ? duration(ns) : `${Math.round(ns / 1e9)} s`;
  };
  const timer = setInterval(tick, 1000);
  const show = (j: Job) => {
    now = j;
    title.textContent = title.title = j.title; // two lines of it are seen
    state.textContent = wordOfJob(j);
    state.className = `outcome ${toneOfJob(j)}`;
    stop.hidden = over(j.state);
    links.replaceChildren(
      ...[
        j.run &&
          h("span", {}, h("a", { href: `/runs/${encodeURIComponent(j.run)}` }, "Open its run")),
        j.matrix &&
          h(
            "span",
            {},
            h("a", { href: `/matrices/${encodeURIComponent(j.matrix)}` }, "Open the matrix"),
          ),
      ].filter((c): c is HTMLElement => Boolean(c)),
    );
    note.textContent =
      // of a job that is done the verdict has it
      j.note && j.state !== "done" ? `${j.note[0]!.toUpperCase()}${j.note.slice(1)}.` : "";
    note.hidden = !note.textContent;
    problem.replaceChildren(...(j.problem ? [failure(new Error(j.problem))] : []));
    tick();
  };
  const asking = new AbortController();
  const told = ({ name, data }: Told) => {
    if (name === "status") {
      const r = data as Running;
      said.textContent = [
        r.steps > 0 && `step ${count(r.steps)}`,
        r.phase,
        r.rss_bytes !== undefined && `${bytes(r.rss_bytes)} resident`,
        r.device_used_bytes !== undefined && `${bytes(r.device_used_bytes)} on the device`,
        r.processes > 1 && `${r.processes} processes`,
      ]
        .filter(Boolean)
        .join(" · ");
    } else if (name === "progress") {
      const p = data as Progress;
      bar.hidden = false;
      bar.max = Math.max(p.all, 1);
      bar.value = p.done;
      said.textContent = `${count(p.done)} of ${count(p.all)}${p.text ? `: ${p.text}` : ""}`;
    } else if (name === "trying")
      said.textContent = `A batch of ${count((data as { batch: number }).batch)} is being tried.`;
    else if (name === "alert") said.textContent = (data as { text: string }).text;
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
            if (all.output) {
              output.hidden = false;
              output.querySelector("pre")!.textContent = all.output;
              output.open = belongs || all.state === "failed";
            }
          },
          (e: unknown) => {
            if (!asking.signal.aborted) problem.replaceChildren(failure(e));
          },
        );
      },
    },
    () => {
      problem.replaceChildren(
        h(
          "p",
          { class: "banner", role: "note" },
          "The server knows this job no more: it was started again since. " +
            "What the job recorded is in ",
          h("a", { href: "/" }, "the list of runs"),
          " or in ",
          h("a", { href: "/matrices" }, "the matrices"),
          ".",
        ),
      );
      stop.hidden = true;
      clearInterval(timer);
    },
  );
  const element = section(
    "job",
    "The job",
    h("div", { class: "job-head" }, h("div", { class: "job-name" }, title, state, clock), stop),
    links,
    bar,
    said,
    note,
    problem,
    ...body,
    output,
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
