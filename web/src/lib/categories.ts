// What memory is for, in colours that every picture of a snapshot shares; from what stays to what
// comes and goes.

export const categories = [
  "parameters",
  "buffers",
  "optimizer state",
  "gradients",
  "inputs",
  "KV cache",
  "activations",
  "workspaces",
  "collectives",
  "before the trace",
  "unknown",
  "temporaries",
] as const;

const inks: Record<string, string> = {
  parameters: "curve-3",
  gradients: "curve-1",
  "optimizer state": "curve-4",
  activations: "curve-0",
  temporaries: "curve-5",
  workspaces: "curve-6",
  collectives: "curve-2",
  buffers: "phase-checkpoint",
  inputs: "inputs",
  "KV cache": "phase-optimizer",
  "before the trace": "phase-evaluation",
  unknown: "curve-7",
};
const others = [
  "curve-0",
  "curve-1",
  "curve-2",
  "curve-3",
  "curve-4",
  "curve-5",
  "curve-6",
  "phase-evaluation",
  "phase-checkpoint",
  "inputs",
  "phase-optimizer",
];

/** The theme's name of a category's colour. */
export const inkOf = (category: string) => inks[category] ?? "curve-7";

/** Colours of bands in their order; what is left over is grey. */
export const bandInk = (name: string, i: number) =>
  inks[name] ?? (name.startsWith("all other") ? "curve-7" : others[i % others.length]!);
