// The allocator's settings as knobs: their range, a sentence each, and the line that PyTorch takes.

export interface Knob {
  name: string; // as PYTORCH_CUDA_ALLOC_CONF has it
  title: string;
  says: string;
  steps: string[]; // values as the line has them; "" is the default. Two are off and on
  shown: (value: string) => string;
}

const mib = (value: string) => (value ? `${value} MiB` : "default");

export const knobs: Knob[] = [
  {
    name: "expandable_segments",
    title: "Expandable segments",
    steps: ["", "True"],
    shown: (v) => (v ? "on" : "off"),
    says:
      "One segment a stream that grows page by page: " +
      "little is stuck between segments, at the price of mapping calls.",
  },
  {
    name: "max_split_size_mb",
    title: "Largest block that is split",
    steps: ["", "20", "32", "64", "128", "256", "512", "1024", "2048"],
    shown: (v) => (v ? `${v} MiB` : "no limit"),
    says:
      "Larger cached blocks are not cut for smaller requests, so they stay whole for large " +
      "ones.",
  },
  {
    name: "garbage_collection_threshold",
    title: "Collect above",
    steps: ["", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95"],
    shown: (v) => (v ? `${Math.round(Number(v) * 100)} % of the limit` : "never"),
    says:
      "Old unused segments go back to the device once so much of the memory limit is reserved. " +
      "Without a limit it does nothing.",
  },
  {
    name: "roundup_power2_divisions",
    title: "Round sizes to parts of a power of two",
    steps: ["", "1", "2", "4", "8", "16"],
    shown: (v) => (v ? `${v} part${v === "1" ? "" : "s"}` : "off"),
    says: "Requests of similar size share blocks: fewer kinds of holes, more rounding.",
  },
  {
    name: "large_segment_size_mb",
    title: "Size of large segments",
    steps: ["", "32", "64", "128", "256", "512"],
    shown: (v) => (v ? `${v} MiB` : "20 MiB"),
    says:
      "What is asked of the device at a time for requests from 1 to 10 MiB. " +
      "From PyTorch 2.11 on.",
  },
  {
    name: "max_non_split_rounding_mb",
    title: "Waste allowed in an unsplit block",
    steps: ["", "20", "64", "128", "256", "512"],
    shown: mib,
    says: "How much larger than the request a block may be that is not to be split.",
  },
  {
    name: "per_process_memory_fraction",
    title: "Part of the device",
    steps: ["", "0.95", "0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3"],
    shown: (v) => (v ? `${Math.round(Number(v) * 100)} %` : "all of it"),
    says:
      "The most that the process may reserve, as a part of the device's memory. " +
      "Needs a GPU or a memory to be known.",
  },
];

/** A line's settings by name; what has no knob is kept too. */
export function parsed(line: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const pair of line.match(/[^,[]+(?:\[[^\]]*\])?/g) ?? []) {
    const at = pair.indexOf(":");
    if (at > 0) found.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim());
  }
  return found;
}

/** The line of settings; "" is the default of all. */
export const written = (settings: ReadonlyMap<string, string>): string =>
  [...settings]
    .filter(([, v]) => v)
    .map(([k, v]) => `${k}:${v}`)
    .join(",");

/**
 * The place of a value among a knob's steps; one that is not among them is put in where it belongs.
 */
export function stepsOf(knob: Knob, value: string): string[] {
  if (knob.steps.includes(value)) return knob.steps;
  const all = [...knob.steps, value],
    number = (v: string) => (v === "" ? -Infinity : Number(v));
  return Number.isFinite(Number(value)) ? all.sort((a, b) => number(a) - number(b)) : all;
}
