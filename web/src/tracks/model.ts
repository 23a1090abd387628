// Which tracks a run has:
//
//	curves of a recording ──▶ a track per owner and family of quantities ──▶ groups
//
// A family is what is read together, such as what the framework's allocator reserved and handed
// out. To give a quantity a place, add it to a family; one that is in none has a track of its own.

import type { Process, Series, Unit } from "../api";
import { processName, type Subject } from "../state/report";
import { Readings } from "./readings";

/** What a curve is, without its points. */
export type Head = Omit<Series, "x" | "y" | "x_unit">;

export interface Curve extends Head {
  key: string;
  colour: string;
  readings: Readings;
  short: string;
}

export interface Track {
  key: string;
  title: string;
  kind: "curves" | "phases" | "events";
  owner: string; // the key of its group where tracks are grouped by process
  process: number;
  device: string;
  family: string;
  unit: Unit;
  rate: boolean;
  curves: Curve[];
}

export interface Group {
  key: string;
  title: string;
  tracks: Track[];
  open: boolean;
}

interface Family {
  title: string;
  names: string[];
  rate?: boolean;
  colours?: string[];
}

const families: Record<string, Family> = {
  host: {
    title: "Host memory",
    names: [
      "tree.rss",
      "tree.pss",
      "tree.uss",
      "host.rss",
      "host.pss",
      "host.uss",
      "host.rss.file",
      "host.rss.shared",
    ],
    colours: ["rss", "pss", "uss", "rss", "pss", "uss", "curve-3", "curve-5"],
  },
  locked: { title: "Locked memory", names: ["host.locked"] },
  private: { title: "Memory of a process alone", names: ["host.private"] },
  allocator: {
    title: "Framework allocator",
    names: [
      "allocator.reserved",
      "allocator.allocated",
      "allocator.active",
      "allocator.requested",
      "allocator.inactive_split",
    ],
    colours: ["reserved", "allocated", "curve-0", "curve-2", "gaps"],
  },
  device: {
    title: "Device memory",
    names: ["device.used", "device.process"],
    colours: ["device", "curve-6"],
  },
  heap: { title: "Heap", names: ["heap.live"], colours: ["heap"] },
  swap: { title: "Swap", names: ["host.swap"], colours: ["swap"] },
  group: {
    title: "Control group",
    names: ["cgroup.used", "cgroup.limit", "cgroup.file"],
    colours: ["group", "limit", "curve-3"],
  },
  system: {
    title: "Memory of the host",
    names: ["system.available", "system.total"],
    colours: ["system", "limit"],
  },
  cpu: { title: "Processor", names: ["host.cpu"], rate: true, colours: ["curve-0"] },
  faults: {
    title: "Page faults",
    names: ["host.faults.minor", "host.faults.major"],
    rate: true,
    colours: ["curve-7", "limit"],
  },
  utilisation: { title: "Use of the device", names: ["device.utilisation"], colours: ["curve-5"] },
  power: { title: "Power", names: ["device.power"], colours: ["curve-4"] },
  temperature: { title: "Temperature", names: ["device.temperature"], colours: ["curve-1"] },
  retries: {
    title: "Allocator retries",
    names: ["allocator.retries", "allocator.ooms"],
    colours: ["curve-4", "limit"],
  },
  malloc: {
    title: "malloc",
    names: [
      "malloc.used",
      "malloc.free",
      "malloc.top",
      "malloc.mapped",
      "malloc.free_resident",
      "malloc.threads",
    ],
  },
  threads: { title: "Threads", names: ["tree.threads", "host.threads"] },
  files: { title: "Open files", names: ["host.files"] },
  shm: { title: "Shared memory (/dev/shm)", names: ["shm.used"] },
  space: { title: "Address space", names: ["host.vms"] },
  kills: {
    title: "Control group, out of memory",
    names: ["cgroup.oom", "cgroup.oom_kill"],
    colours: ["curve-4", "limit"],
  },
  own: { title: "hightide itself: memory", names: ["hightide.rss"] },
  owncpu: { title: "hightide itself: processor", names: ["hightide.cpu"], rate: true },
};
const order = Object.keys(families);
const familyOf = new Map(
  order.flatMap((key) => families[key]!.names.map((name) => [name, key] as const)),
);

/** Quantities that hightide computes with, and that nobody reads. */
const inner = new Set([
  "tree.pss_error",
  "tree.shared",
  "tree.shared_memory",
  "hightide.pss_interval",
  "entered.forward",
  "entered.backward",
  "entered.collective",
  "host.files.limit",
  "host.threads.limit",
  "host.vms.limit",
  "shm.total",
  "cgroup.threads",
  "cgroup.threads.limit",
  "system.threads",
  "system.threads.limit",
]);

/** Whose a track can be. */
const owners = { run: "run", process: "process", device: "device", own: "own" } as const;

const curveKey = (s: Subject & { name: string }) =>
  [s.name, s.process ?? 0, s.device ?? "", s.framework ?? ""].join("/").replace(/\/+$/, "");
export const isInner = (name: string) => inner.has(name);
const isCounter = (name: string) => families[familyOf.get(name) ?? ""]?.rate === true;

const short: Record<string, string> = {
  "tree.rss": "RSS",
  "tree.pss": "PSS",
  "tree.uss": "USS",
  "host.uss": "USS",
  "host.faults.minor": "minor",
  "host.faults.major": "major",
  "host.cpu": "cores",
  "hightide.cpu": "cores",
  "device.used": "used",
  "device.process": "of the process",
  "cgroup.used": "used",
  "cgroup.limit": "limit",
  "cgroup.file": "of files",
  "host.rss.file": "mapped files",
  "host.rss.shared": "shared memory",
  "system.available": "available",
  "system.total": "total",
  "heap.live": "live",
  "allocator.active": "active",
  "allocator.requested": "requested",
  "allocator.inactive_split": "unusable gaps",
  "allocator.retries": "retries",
  "allocator.ooms": "failed",
  "host.threads": "threads",
  "host.files": "files",
  "tree.threads": "threads of all",
  "shm.used": "used",
  "host.vms": "mapped",
  "hightide.rss": "RSS",
  "cgroup.oom": "limit hit",
  "cgroup.oom_kill": "killed",
};

/** A curve as tracks have it; its readings come later. */
export function curveOf(head: Head): Curve {
  const family = families[familyOf.get(head.name) ?? ""],
    place = family?.names.indexOf(head.name) ?? 0;
  return {
    ...head,
    key: curveKey(head),
    readings: new Readings(isCounter(head.name)),
    short:
      short[head.name] ??
      (head.name.startsWith("malloc.") ? head.name.slice(7).replace("_", ", ") : head.title),
    colour: family?.colours?.[place] ?? `curve-${place % 8}`,
  };
}

const ownerOf = (c: Subject & { name: string }) =>
  c.name.startsWith("hightide.")
    ? owners.own
    : c.process
      ? `${owners.process}-${c.process}`
      : c.device
        ? `${owners.device}-${c.device}`
        : owners.run;

/**
 * Tracks of the curves, and lanes of phases for the processes that have some. Events are one more,
 * the first.
 */
export function tracksOf(curves: Curve[], withPhases: number[], withEvents: boolean): Track[] {
  const found = new Map<string, Track>();
  for (const c of curves) {
    if (inner.has(c.name)) continue;
    const family = familyOf.get(c.name) ?? c.name,
      device = [c.device, c.framework].filter(Boolean).join(" "),
      key = [family, c.process ?? 0, device].join("/").replace(/\/$/, "");
    const known = found.get(key),
      made = families[family];
    if (known) known.curves.push(c);
    else
      found.set(key, {
        key,
        title: made?.title ?? c.title,
        kind: "curves",
        owner: ownerOf(c),
        process: c.process ?? 0,
        device: c.device ?? "",
        family,
        unit: c.unit,
        rate: made?.rate === true,
        curves: [c],
      });
  }
  for (const t of found.values())
    t.curves.sort((a, b) => placeIn(t.family, a.name) - placeIn(t.family, b.name));
  const lane = (process: number): Track => ({
    key: `phases/${process}`,
    title: "Phases and steps",
    kind: "phases",
    owner: `${owners.process}-${process}`,
    process,
    device: "",
    family: "phases",
    unit: "",
    rate: false,
    curves: [],
  });
  const events: Track = {
    key: "events",
    title: "Events",
    kind: "events",
    owner: owners.run,
    process: 0,
    device: "",
    family: "events",
    unit: "",
    rate: false,
    curves: [],
  };
  return [...(withEvents ? [events] : []), ...withPhases.map(lane), ...found.values()].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      a.process - b.process ||
      a.device.localeCompare(b.device, "en", { numeric: true }),
  );
}

const placeIn = (family: string, name: string) => families[family]?.names.indexOf(name) ?? 0;
const rank = (t: Track) =>
  t.kind === "events"
    ? -2
    : t.kind === "phases"
      ? -1
      : order.includes(t.family)
        ? order.indexOf(t.family)
        : order.length;

/** Whose a track is, in words: "rank 0", "main", "cuda:0", or nothing of the run's own. */
export function ownerName(t: Track, processes: Process[]): string {
  const p = processes.find((o) => o.id === t.process);
  return [
    p ? processName(p, processes) : t.process ? `process ${t.process}` : "",
    t.device && (p ? `on ${t.device}` : t.device),
  ]
    .filter(Boolean)
    .join(" ");
}

export const groupings = ["process", "device", "quantity"] as const;
export type Grouping = (typeof groupings)[number];

const openAtFirst = 4; // groups that are not folded, where no process leads

/**
 * Tracks in groups. A group's key stands in the address, so it does not depend on the order. lead
 * is the process that leads the training.
 */
export function groupsOf(
  tracks: Track[],
  by: Grouping,
  processes: Process[],
  lead: number,
): Group[] {
  const groups = new Map<string, Group>();
  for (const t of tracks) {
    const [key, title] =
      by === "quantity"
        ? [t.family, t.title]
        : by === "device"
          ? [t.device ? `device-${t.device}` : owners.run, t.device || "The host"]
          : [t.owner, titleOf(t, processes)];
    const group = groups.get(key) ?? { key, title, tracks: [], open: true };
    group.tracks.push(t);
    groups.set(key, group);
  }
  const all = [...groups.values()];
  if (by !== "process") return all.map((g, i) => ({ ...g, open: i < openAtFirst }));
  const weight = (g: Group) => {
    const t = g.tracks[0]!;
    return g.key === owners.run
      ? 0
      : g.key === owners.own
        ? 4
        : t.process === lead && t.process
          ? 1
          : t.process
            ? 3
            : 2;
  };
  const place = (g: Group) => {
    const p = processes.find((o) => o.id === g.tracks[0]!.process);
    return p?.rank ?? 1e6 + g.tracks[0]!.process;
  };
  all.sort((a, b) => weight(a) - weight(b) || place(a) - place(b));
  return all.map((g) => ({
    ...g,
    open: weight(g) < 2 || (weight(g) === 2 && all.length <= openAtFirst),
  }));
}

function titleOf(t: Track, processes: Process[]): string {
  if (t.owner === owners.run) return "The whole run";
  if (t.owner === owners.own) return "hightide itself";
  return ownerName({ ...t, device: t.process ? "" : t.device }, processes);
}
