// How the reader arranged the tracks. It stands in the address, not in the browser's memory: keys
// of tracks belong to one run, and who is sent the address sees the same.

import type { Grouping } from "./model";

export interface Layout {
  pins: readonly string[]; // keys of tracks
  open: Readonly<Record<string, boolean>>; // groups that were opened or folded by hand
  fit: boolean; // the vertical axes are fitted to what is in view; else they begin at zero
  last: number; // ns: what is shown are the last so many; 0: see window
  by: Grouping;
  find: string; // only tracks with these letters
}

export const plain: Layout = { pins: [], open: {}, fit: false, last: 0, by: "process", find: "" };

const words = {
  pins: "pin",
  open: "open",
  folded: "fold",
  fit: "axes",
  last: "last",
  by: "by",
  find: "tracks",
} as const;
const list = (text: string | undefined) => (text ?? "").split(",").filter(Boolean);

/** The layout that the parameters of an address hold. */
export function layoutOf(params: Readonly<Record<string, string>>): Layout {
  const last = Number(params[words.last] ?? 0),
    by = params[words.by];
  return {
    pins: list(params[words.pins]),
    open: Object.fromEntries([
      ...list(params[words.open]).map((k) => [k, true] as const),
      ...list(params[words.folded]).map((k) => [k, false] as const),
    ]),
    fit: params[words.fit] === "fit",
    last: Number.isFinite(last) && last > 0 ? last : 0,
    by: by === "device" || by === "quantity" ? by : "process",
    find: params[words.find] ?? "",
  };
}

/** The parameters with a layout in them; what is as at first is not there. */
export function paramsOf(
  layout: Layout,
  params: Readonly<Record<string, string>>,
): Record<string, string> {
  const mine = new Set<string>(Object.values(words)),
    opened = (yes: boolean) =>
      Object.keys(layout.open)
        .filter((k) => layout.open[k] === yes)
        .join(",");
  const held: [string, string][] = [
    [words.pins, layout.pins.join(",")],
    [words.open, opened(true)],
    [words.folded, opened(false)],
    [words.fit, layout.fit ? "fit" : ""],
    [words.last, layout.last > 0 ? String(Math.round(layout.last)) : ""],
    [words.by, layout.by === "process" ? "" : layout.by],
    [words.find, layout.find],
  ];
  return {
    ...Object.fromEntries(Object.entries(params).filter(([key]) => !mine.has(key))),
    ...Object.fromEntries(held.filter(([, value]) => value)),
  };
}
