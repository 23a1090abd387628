// What ranks are compared in: figures on scales that belong together, the middle one, and who is
// far from it.

import type { Label, Rank, Ranks, Suspect, Unit } from "../api";

type Figure = { [K in keyof Rank]-?: Rank[K] extends number | undefined ? K : never }[keyof Rank];

export interface Measure {
  key: Figure;
  title: string;
  unit: Unit;
  ink: string;
  scale: string;
  aspect?: Suspect["aspect"];
  error?: Figure;
  label: (r: Rank) => Label;
  per?: string;
}

const measured = (): Label => "measured",
  ofDevice = (r: Rank): Label => r.device_label || "measured";

/** Measures of one scale are drawn to one scale. Add yours here. */
const measures: Measure[] = [
  {
    key: "peak_rss_bytes",
    title: "Host peak",
    unit: "bytes",
    ink: "rss",
    scale: "host",
    aspect: "host",
    label: measured,
  },
  {
    key: "loading_bytes",
    title: "Loading",
    unit: "bytes",
    ink: "curve-7",
    scale: "host",
    label: measured,
  },
  {
    key: "peak_allocated_bytes",
    title: "Allocated",
    unit: "bytes",
    ink: "allocated",
    scale: "device",
    aspect: "device",
    label: ofDevice,
  },
  {
    key: "peak_reserved_bytes",
    title: "Reserved",
    unit: "bytes",
    ink: "reserved",
    scale: "device",
    label: ofDevice,
  },
  {
    key: "peak_device_bytes",
    title: "On the device",
    unit: "bytes",
    ink: "device",
    scale: "device",
    label: ofDevice,
  },
  {
    key: "step_time_ns",
    title: "Step",
    unit: "ns",
    ink: "curve-6",
    scale: "time",
    label: measured,
    per: "median",
  },
  {
    key: "work_ns",
    title: "Own work",
    unit: "ns",
    ink: "curve-2",
    scale: "time",
    aspect: "work",
    error: "work_error_ns",
    label: measured,
    per: "a step",
  },
  {
    key: "behind_ns",
    title: "Behind the first",
    unit: "ns",
    ink: "curve-0",
    scale: "time",
    label: measured,
    per: "a step",
  },
  {
    key: "waiting_ns",
    title: "Waiting for the last",
    unit: "ns",
    ink: "curve-4",
    scale: "time",
    label: measured,
    per: "a step",
  },
  {
    key: "growth_bytes_per_step",
    title: "Growth",
    unit: "bytes",
    ink: "curve-1",
    scale: "growth",
    error: "growth_error_bytes",
    label: measured,
    per: "a step",
  },
  {
    key: "device_growth_bytes_per_step",
    title: "Growth, device",
    unit: "bytes",
    ink: "curve-3",
    scale: "device growth",
    error: "device_growth_error_bytes",
    label: ofDevice,
    per: "a step",
  },
];

export interface Compared {
  measure: Measure;
  values: (number | null)[];
  middle: number;
  top: number;
  most: number;
  suspect: number | null;
}

/**
 * The measures that two ranks have at least; `top` is the highest of all on the same scale, `most`
 * and `suspect` are places in ranks.
 */
export function compared({ ranks, suspects }: Ranks): Compared[] {
  const all = measures
    .map((measure) => ({ measure, values: ranks.map((r) => r[measure.key] ?? null) }))
    .filter(({ values }) => values.filter((v) => v !== null).length > 1);
  return all
    .filter(
      ({ values, measure }) => values.some((v) => v !== 0) || measure.scale.endsWith("growth"),
    )
    .map(({ measure, values }) => {
      const known = values.filter((v): v is number => v !== null).sort((a, b) => a - b),
        who = suspects.find((s) => s.aspect === measure.aspect);
      return {
        measure,
        values,
        middle: known[(known.length - 1) >> 1]!,
        most: values.indexOf(known[known.length - 1]!),
        top: Math.max(
          1,
          ...all
            .filter((o) => o.measure.scale === measure.scale)
            .flatMap((o) => o.values.map((v) => v ?? 0)),
        ),
        suspect: who ? ranks.findIndex((r) => r.process === who.process) : null,
      };
    });
}
