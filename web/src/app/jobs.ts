// Jobs of the server: imagine, fit, bench, search, explain. docs/formats/api.md says what each is
// asked and tells.

import type { GPUList, GPUVerdict, GpusGPU, Imagined, Job as AnyJob, JobList, Label } from "../api";
import { toneOf } from "../lib/format";
import { get, post, remove } from "./api";

/** A job, of which the kind says what its result is. */
export interface Job<Result = unknown> extends AnyJob {
  result?: Result;
}

/** The result of a job that imagined: with what other GPUs would leave, as estimated. */
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

export interface FitTrial {
  batch: number;
  ok: boolean;
  peak_allocated_bytes?: number;
  peak_reserved_bytes?: number;
  device_used_bytes?: number;
  capacity_bytes?: number;
  total_bytes?: number;
  step_time_ns?: number;
  problem?: string;
  rests_on?: string[];
  label: Label;
}
export interface FitResult {
  other_gpus?: GPUVerdict[];
  label: Label;
  device: string;
  gpu?: string;
  gpu_facts?: GpusGPU;
  total_bytes?: number;
  largest_batch: number;
  fails_at?: number;
  tight_below_bytes?: number;
  largest_with_room?: number;
  largest_with_room_label?: Label;
  trials: FitTrial[];
  current_batch: number;
  unused_at_current_bytes?: number;
  unused_at_current_label?: Label;
  unused_at_current_error_bytes?: number;
  largest_with_room_error_bytes?: number;
  accumulation?: {
    target_batch: number;
    micro_batch: number;
    accumulation_steps: number;
    effective_batch: number;
  };
  cost?: { usd_per_hour: number; usd_per_year: number; source: string; date?: string };
  memorymark?: {
    speedup: number | null;
    cost_savings_annual: number | null;
    waste_gb: number;
    waste_percent: number;
    optimal_batch_size: number;
    current_batch_size: number;
  };
  knee_batch?: number;
  notes: string[];
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
