// Which curves the timeline has for a choice of process, in which colours, and which are on at
// first.

import type { Report, Series } from "../api";
import { highest, type Columns } from "../lib/columns";
import { bytes } from "../lib/format";
import { fullTitle, leader } from "./report";

export interface Curve extends Columns {
  key: string;
  title: string;
  name: string; // of the quantity
  colour: string; // name of a colour of the theme
  dash: boolean;
  limit: boolean; // a line that memory must stay below
  on: boolean; // at first
  note: string; // where the figures come from, and their error
}

const colours: Record<string, string> = {
  "tree.rss": "rss",
  "host.rss": "rss",
  "tree.pss": "pss",
  "host.pss": "pss",
  "tree.uss": "uss",
  "heap.live": "heap",
  "allocator.allocated": "allocated",
  "allocator.reserved": "reserved",
  "device.used": "device",
  "device.process": "device",
  "cgroup.used": "group",
  "system.available": "system",
  "host.swap": "swap",
  "allocator.inactive_split": "gaps",
};
const leading = [
  "tree.rss",
  "tree.pss",
  "heap.live",
  "allocator.allocated",
  "allocator.reserved",
  "device.used",
  "host.rss",
  "host.pss",
  "host.swap",
];
const others = [
  "curve-1",
  "curve-2",
  "curve-3",
  "curve-4",
  "curve-5",
  "curve-6",
  "curve-7",
  "curve-0",
];
const shared = ["device.used", "cgroup.used", "cgroup.limit", "system.available"];
const mostCurves = 16;

/** Bytes over time of one process, or of all (0); the curve that leads comes first. */
export function curves(report: Report, process: number): Curve[] {
  const lead = leader(report, process);
  const hasTree = report.series.some((s) => !s.process && s.name.startsWith("tree."));
  const belongs = (s: Series) =>
    process === 0
      ? !s.process ||
        (s.process === lead && !s.name.startsWith("host.")) ||
        (!hasTree && s.name === "host.rss")
      : s.process === process || (!s.process && shared.includes(s.name));
  const chosen = report.series.filter(
    (s) => s.unit === "bytes" && s.x_unit === "ns" && s.x.length > 0 && belongs(s),
  );
  const many = new Set(
    chosen.filter((s, i) => chosen.findIndex((o) => o.name === s.name) !== i).map((s) => s.name),
  );
  const first = chosen.findIndex((s) => s.name === report.headline.main_source);
  if (first > 0) chosen.unshift(...chosen.splice(first, 1));
  let other = 0;
  const found = chosen.slice(0, mostCurves).map((s): Curve => ({
    key: `${s.name}/${s.process ?? 0}/${[s.device, s.framework].filter(Boolean).join(" ")}`,
    name: s.name,
    x: s.x,
    y: s.y,
    title:
      process === 0
        ? fullTitle(s)
        : many.has(s.name)
          ? [s.title, s.device, s.framework].filter(Boolean).join(" ")
          : s.title,
    colour:
      (many.has(s.name) && !s.name.startsWith("allocator.")) || !colours[s.name]
        ? others[other++ % others.length]!
        : colours[s.name]!,
    dash: s.name === "cgroup.limit" || s.name === "system.available",
    limit: s.name === "cgroup.limit",
    note: note(s),
    on: leading.includes(s.name) && (s.name !== "host.swap" || (highest(s)?.y ?? 0) > 0),
  }));
  return [...found, ...limits(report, found)];
}

function note(s: Series): string {
  return [s.label, s.error ? `± ${bytes(s.error)}` : "", s.device ?? "", s.framework ?? ""]
    .filter(Boolean)
    .join(", ");
}

/**
 * Lines of what there is to use. They are on where memory comes near them: far above, they would
 * flatten the curves.
 */
function limits(report: Report, found: Curve[]): Curve[] {
  const host = found.some((c) => /^(tree|host|cgroup)\./.test(c.name)),
    device = found.some((c) => /^(device|allocator)\./.test(c.name));
  const end = Math.max(
    report.headline.duration_ns,
    ...found.map((c) => c.x[c.x.length - 1] ?? 0),
    1,
  );
  const line = (key: string, title: string, value: number | undefined): Curve[] =>
    value === undefined || value <= 0
      ? []
      : [
          {
            key,
            name: key,
            title,
            x: [0, end],
            y: [value, value],
            colour: "limit",
            dash: true,
            limit: true,
            on: false,
            note: "limit",
          },
        ];
  const { memory_bytes, memory_limit_bytes, gpus } = report.run.host;
  const sizes = new Map(
    (device ? (gpus ?? []) : []).flatMap((g) =>
      g.memory_bytes ? [[g.memory_bytes, g.name] as const] : [],
    ),
  );
  const lines = [
    ...(host
      ? [
          ...line("limit/group", "limit of the control group", memory_limit_bytes),
          ...line("limit/host", "memory of the host", memory_bytes),
        ]
      : []),
    ...[...sizes].flatMap(([size, name]) => line(`limit/${name}`, `memory of ${name}`, size)),
  ];
  const top = Math.max(0, ...found.filter((c) => c.on && !c.limit).map((c) => highest(c)?.y ?? 0));
  for (const l of [...lines, ...found.filter((c) => c.limit)]) l.on = (l.y[0] ?? 0) <= 2.5 * top;
  return lines;
}
