import type { Imagined, Report } from "../../api";
import type { PageStore } from "../../state/page";
import { badge, h, section } from "../dom";
import { stackBar, type Part } from "../stackbar";
import { allFigures } from "../tables";

const inks: Record<string, string> = {
  parameters: "curve-3",
  gradients: "curve-1",
  optimizer: "curve-4",
  activations: "curve-0",
  "KV cache": "inputs",
  temporaries: "curve-5",
  workspaces: "curve-6",
  "CUDA graphs": "phase-checkpoint",
  collectives: "curve-2",
};

/** The imaginary GPU at the peak: what took its memory, and what was left. */
export function capacity(report: Report, page: PageStore): HTMLElement | null {
  const v = report.imagined;
  if (!v || v.peak_device_used_bytes === undefined) return null;
  const {
    peak_allocated_bytes: allocated = 0,
    peak_reserved_bytes: reserved = 0,
    peak_device_used_bytes: used,
    total_bytes: total,
  } = v;
  const parts = [
    ...tensors(v, allocated),
    { name: "reserved, not allocated", bytes: reserved - allocated, ink: "curve-7" },
    { name: "context and libraries", bytes: used - reserved, ink: "muted" },
    { name: "free", bytes: total - used, ink: "track", free: true },
  ].filter((p) => p.bytes > 0);
  return section(
    "capacity",
    `${v.gpu_name} at the peak`,
    stackBar(parts),
    h(
      "p",
      { class: "hint" },
      badge("imagined"),
      " Context and libraries beside the allocator are estimates of the catalogue; " +
        "hightide gpus NAME names their source.",
    ),
    allFigures(report, page, ["imagined", "categories"]),
  );
}

/**
 * The allocated bytes by category. Categories are of the moment of their peak; a rest to the
 * allocator's own peak is shown as such.
 */
function tensors(v: Imagined, allocated: number): Part[] {
  const parts = (v.categories ?? []).map((c) => ({
    name: c.name,
    bytes: c.bytes,
    ink: inks[c.name] ?? "curve-7",
  }));
  const rest = allocated - parts.reduce((sum, p) => sum + p.bytes, 0);
  return [
    ...parts,
    { name: parts.length > 0 ? "other tensors" : "tensors", bytes: rest, ink: "heap" },
  ];
}
