// The catalogue of GPUs: memory, price, and once something was tried what it leaves free; filters;
// a click picks one.

import type { GPUVerdict, GpusGPU } from "../../api";
import { bytes } from "../../lib/format";
import { h, section } from "../../views/dom";

/** What was found out: verdicts by GpusGPU, and at what size if there are several. */
export interface Found {
  by: Map<string, GPUVerdict>;
  at?: string;
}

const gib = 2 ** 30;
const tones: Record<string, string> = {
  fits: "good",
  tight: "unsure",
  conditional: "unsure",
  "out of memory": "bad",
  oom: "bad",
};
export const verdictTone = (verdict: string) => tones[verdict] ?? "unsure";
export const verdictWords = (verdict: string) =>
  verdict === "oom"
    ? "out of memory"
    : verdict === "few"
      ? "too few users"
      : verdict === "conditional"
        ? "fits on a condition"
        : verdict === "failed" || verdict === "unused"
          ? "no verdict"
          : verdict;
// as the command line lists them
const order = ["fits", "tight", "conditional", "few", "oom", "out of memory"];
const dear = 1e9; // what has no price comes behind what has one

type Key = "gpu" | "memory" | "price" | "each" | "headroom" | "verdict";

const tall = {
  class: "scroll tall",
  tabindex: "0",
  role: "group",
  "aria-label": "Catalogue of GPUs",
};
const fitted = ["fits", "tight", "conditional"];
const columns: [Key, title: string, kind: string][] = [
  ["gpu", "GPU", "text"],
  ["memory", "Memory", "number"],
  ["price", "USD/h", "number"],
  ["each", "¢/h per GiB", "number"],
  ["headroom", "Headroom", "number told"],
  ["verdict", "Verdict", "text told"],
];
const number = { type: "number", min: "0" },
  atLeast = { placeholder: "at least GiB", "aria-label": "At least so many GiB" },
  atMost = { placeholder: "at most USD/h", "aria-label": "At most so many USD an hour" };

/** What a GPU is sorted by in a column; null comes last. */
function valueOf(g: GpusGPU, key: Key, left: GPUVerdict | undefined): number | string | null {
  switch (key) {
    case "gpu":
      return g.name;
    case "memory":
      return g.total_bytes;
    case "price":
      return g.price_usd_per_hour || null;
    case "each":
      return g.price_usd_per_hour ? g.price_usd_per_hour / (g.total_bytes / gib) : null;
    case "headroom":
      return left?.headroom_bytes ?? null;
    case "verdict":
      return ranked(g, left);
  }
}

/** First what it fits, cheapest first. */
function ranked(g: GpusGPU, left: GPUVerdict | undefined): number | null {
  const at = order.indexOf(left?.verdict ?? "");
  return at < 0 ? null : at * dear * 10 + (g.price_usd_per_hour || dear) + g.total_bytes / 2 ** 60;
}

function compared(p: number | string | null, q: number | string | null, down: boolean): number {
  if (p === null || q === null) return Number(p === null) - Number(q === null);
  const by =
    typeof p === "string" ? p.localeCompare(String(q), "en", { numeric: true }) : p - Number(q);
  return by * (down ? -1 : 1);
}

const isWanted = (g: GpusGPU, words: string, least: string, dearest: string): boolean =>
  `${g.gpu} ${g.name} ${g.vendor}`.toLowerCase().includes(words) &&
  g.total_bytes / gib >= Number(least || 0) - 0.5 &&
  (!dearest || (g.price_usd_per_hour ?? Infinity) <= Number(dearest));

const cheapestOf = (all: GpusGPU[]): GpusGPU | undefined =>
  all
    .filter((g) => g.price_usd_per_hour)
    .sort((a, b) => a.price_usd_per_hour! - b.price_usd_per_hour!)[0];

const countText = (
  some: number,
  all: number,
  cheapest: GpusGPU | undefined,
  left: GPUVerdict | undefined,
): string =>
  `${some} of ${all} GPUs` +
  (cheapest && left
    ? `; the cheapest that it fits with room: ${cheapest.name}, ` +
      `${cheapest.price_usd_per_hour!.toFixed(2)} USD an hour for each (${left.label})`
    : "") +
  ".";

function rowOf(
  g: GpusGPU,
  left: GPUVerdict | undefined,
  is: { chosen: boolean; cheapest: boolean },
  pick: (gpu: string) => void,
): HTMLElement {
  const button = h(
    "button",
    {
      type: "button",
      class: "pick",
      "aria-pressed": String(is.chosen),
      title: `${g.gpu}: choose it`,
    },
    g.name,
  );
  button.addEventListener("click", () => pick(g.gpu));
  return h(
    "tr",
    is.chosen ? { class: "picked" } : {},
    h(
      "td",
      { class: "text" },
      button,
      is.cheapest && h("span", { class: "badge measured" }, "cheapest"),
    ),
    h(
      "td",
      {
        class: "number",
        title: `${bytes(g.context_overhead_bytes)} of it for a process's context`,
      },
      bytes(g.total_bytes),
    ),
    h(
      "td",
      {
        class: `number${g.price_usd_per_hour ? "" : " absent"}`,
        title: [g.price_source, g.price_date].filter(Boolean).join(", "),
      },
      g.price_usd_per_hour ? g.price_usd_per_hour.toFixed(2) : "–",
    ),
    h(
      "td",
      { class: `number${g.price_usd_per_hour ? "" : " absent"}` },
      g.price_usd_per_hour
        ? ((g.price_usd_per_hour / (g.total_bytes / gib)) * 100).toFixed(1)
        : "–",
    ),
    ...foundCells(g, left),
  );
}

/** What was found of a GPU: what it leaves free, and the verdict. */
function foundCells(g: GpusGPU, left: GPUVerdict | undefined): HTMLElement[] {
  const room = left?.headroom_bytes ?? null,
    known = left && order.includes(left.verdict);
  return [
    h(
      "td",
      {
        class: "told number",
        style:
          room !== null && room > 0
            ? `--share:${Math.min(100, (room / g.total_bytes) * 100).toFixed(1)}%`
            : "",
      },
      room === null ? "–" : room < 0 ? `${bytes(room)} missing` : bytes(room),
    ),
    h(
      "td",
      { class: "told text", title: left?.note ?? "" },
      ...(left && (known || !left.note)
        ? [
            h(
              "span",
              { class: `outcome ${verdictTone(left.verdict)}` },
              verdictWords(left.verdict),
            ),
            " ",
            h("span", { class: `badge ${left.label}` }, left.label),
          ]
        : []),
      left?.note && !known && h("small", { class: "why" }, left.note),
    ),
  ];
}

export function cataloguePanel(pick: (gpu: string) => void): {
  element: HTMLElement;
  gpus(all: GpusGPU[]): void;
  picked(gpu: string): void;
  found(found: Found | null): void;
} {
  let all: GpusGPU[] = [],
    [chosen, by, down]: [string, Key, boolean] = ["", "memory", false],
    found: Found | null = null;
  const search = h("input", {
      type: "search",
      placeholder: "Find a GPU",
      "aria-label": "GPUs whose name contains",
    }),
    least = h("input", { ...number, ...atLeast }),
    dearest = h("input", { ...number, ...atMost, step: "0.1" });
  const fits = h("input", { type: "checkbox" }),
    fitting = h("label", { class: "check", hidden: "" }, fits, "only what it fits");
  const body = h("tbody"),
    said = h("p", { class: "hint", role: "status" });
  const reserve = (g: GpusGPU): GPUVerdict | undefined => found?.by.get(g.gpu);
  const fill = () => {
    const some = all.filter(
      (g) =>
        isWanted(g, search.value.trim().toLowerCase(), least.value, dearest.value) &&
        (!fits.checked || fitted.includes(reserve(g)?.verdict ?? "")),
    );
    some.sort((a, b) => compared(valueOf(a, by, reserve(a)), valueOf(b, by, reserve(b)), down));
    const cheapest = found
      ? cheapestOf(some.filter((g) => reserve(g)?.verdict === "fits"))
      : undefined;
    body.replaceChildren(
      ...some.map((g) =>
        rowOf(g, reserve(g), { chosen: g.gpu === chosen, cheapest: g === cheapest }, pick),
      ),
    );
    for (const { key, element } of heads)
      if (key === by) element.setAttribute("aria-sort", down ? "descending" : "ascending");
      else element.removeAttribute("aria-sort");
    for (const cell of [fitting, ...table.querySelectorAll<HTMLElement>(".told")])
      cell.hidden = !found;
    said.textContent =
      countText(some.length, all.length, cheapest, cheapest && reserve(cheapest)) +
      (found?.at ? ` Headroom and verdict are ${found.at}.` : "");
  };
  const heads = columns.map(([key, title, kind]) => {
    const button = h("button", { type: "button", title: "Sort by this column" }, title),
      element = h("th", { scope: "col", class: kind }, button);
    button.addEventListener("click", () => {
      down = by === key ? !down : key === "headroom";
      by = key;
      fill();
    });
    return { key, element };
  });
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((x) => x.element))), body);
  for (const input of [search, least, dearest, fits]) input.addEventListener("input", fill);
  const element = section(
    "catalogue",
    "GPUs",
    h("div", { class: "tools" }, search, least, dearest, fitting),
    said,
    h("div", tall, table),
  );
  return {
    element,
    gpus: (some) => {
      all = some;
      fill();
    },
    picked: (gpu) => void ((chosen = gpu), fill()),
    found: (some) => {
      found = some;
      if (some) [by, down] = ["verdict", false];
      fill();
    },
  };
}
