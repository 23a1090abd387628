// Jobs of the server: imagine, fit, bench, search, explain. docs/formats/api.md says what each is
// asked and tells.

import type { Ending, Label } from "../api";
import { toneOf } from "../lib/format";
import { get, post, remove } from "./api";

export type JobKind = "imagine" | "fit" | "bench" | "search" | "explain";
export type JobState = "queued" | "running" | "done" | "failed" | "cancelled";
export interface Job<Result = unknown> {
  id: string;
  kind: JobKind;
  title: string;
  state: JobState;
  asked_ns: number;
  started_ns?: number;
  ended_ns?: number;
  run?: string;
  matrix?: string;
  note?: string;
  problem?: string;
  output?: string;
  answer?: string;
  outcome?: Ending;
  result?: Result;
}
export interface Told {
  name: string;
  data: unknown;
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

export interface GPU {
  gpu: string;
  name: string;
  vendor: string;
  arch?: string;
  compute_capability: string;
  total_bytes: number;
  total_lowest_bytes?: number;
  context_overhead_bytes: number;
  price_usd_per_hour?: number;
  price_source?: string;
  price_date?: string;
  confidence?: string;
}

/** A verdict on one GPU. */
export interface GPUVerdict {
  gpu: string;
  gpu_name: string;
  verdict: string;
  total_bytes: number;
  context_overhead_bytes: number;
  peak_allocated_bytes?: number;
  peak_reserved_bytes?: number;
  peak_device_used_bytes?: number;
  headroom_bytes?: number;
  price_usd_per_hour?: number;
  label: Label;
  note?: string;
}
export interface Rank {
  rank?: number;
  world_size?: number;
  process: number;
  device: string;
  index: number;
  peak_used_bytes: number;
  peak_reserved_bytes?: number;
  played?: boolean;
}
export interface Imagined extends GPUVerdict {
  gpu_count: number;
  tight_below_bytes: number;
  basis?: string;
  problem?: string;
  failure?: string;
  asked_bytes?: number;
  peak_phase?: string;
  notes?: string[];
  categories?: { name: string; bytes: number }[];
  ranks?: Rank[];
  tries?: (GPUVerdict & { kind: string; what: string; command?: string })[];
  gpus?: GPUVerdict[];
  other_gpus?: GPUVerdict[];
  devices?: { peak_used_bytes: number }[];
  undecided?: { file?: string; line?: number }[];
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
  gpu_facts?: GPU;
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
  get<{ gpus: GPU[] | null }>("/gpus", signal).then(({ gpus }) => gpus ?? []);
export const jobs = (signal?: AbortSignal) =>
  get<{ jobs: Job[] | null }>("/jobs", signal).then(({ jobs }) => jobs ?? []);
export const job = <R>(id: string, signal?: AbortSignal) =>
  get<Job<R>>(`/jobs/${encodeURIComponent(id)}`, signal);
export const begin = (kind: JobKind, options: object) => post<Job>("/jobs", { kind, options });
export const cancel = (id: string) => remove<Job>(`/jobs/${encodeURIComponent(id)}`);

export const over = (state: JobState) => state !== "queued" && state !== "running";

/** What came of a job, in a word or two: that it is done says only that its programs have ended. */
export const wordOfJob = ({ state, outcome }: Job): string =>
  state === "done" && outcome ? outcome.text : state;
export const toneOfJob = ({ state, outcome }: Job): string =>
  state === "failed" ? "bad" : state !== "done" ? "unsure" : outcome ? toneOf(outcome) : "good";
