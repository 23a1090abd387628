// Jobs of the server: imagine, fit, tune, bench, search, explain. docs/formats/api.md says what
// each is asked and tells.

import type { GPUList, GPUVerdict, Imagined, Job as AnyJob, JobList } from "../api";
import { toneOf } from "../lib/format";
import { get, post, remove } from "./api";

export type { FitOutcome, Trial as FitTrial, TuneOutcome } from "../api";

/** A job, of which the kind says what its result is. */
export interface Job<Result = unknown> extends AnyJob {
  result?: Result;
}

/** Of a job that imagined and has a verdict: with what other GPUs would leave, as estimated. */
export interface ImaginedOutcome extends Imagined {
  notes?: string[];
  other_gpus?: GPUVerdict[];
}

/** What is told of programs that run. */
export interface Running {
  elapsed_ns: number;
  processes: number;
  steps: number;
  phase?: string;
  rss_bytes?: number;
  device_used_bytes?: number;
}
export interface Progress {
  done: number;
  all: number;
  text?: string;
}

export const catalogue = (signal?: AbortSignal) =>
  get<GPUList>("/gpus", signal).then(({ gpus }) => gpus);
export const jobs = (signal?: AbortSignal) =>
  get<JobList>("/jobs", signal).then(({ jobs }) => jobs);
export const job = <R>(id: string, signal?: AbortSignal) =>
  get<Job<R>>(`/jobs/${encodeURIComponent(id)}`, signal);
export const begin = (kind: Job["kind"], options: object) => post<Job>("/jobs", { kind, options });
export const cancel = (id: string) => remove<Job>(`/jobs/${encodeURIComponent(id)}`);

export const over = (state: Job["state"]) => state !== "queued" && state !== "running";

/** What came of a job, in a word or two: that it is done says only that its programs have ended. */
export const wordOfJob = ({ state, outcome }: Job): string =>
  state === "done" && outcome ? outcome.text : state;
export const toneOfJob = ({ state, outcome }: Job): string =>
  state === "failed" ? "bad" : state !== "done" ? "unsure" : outcome ? toneOf(outcome) : "good";
