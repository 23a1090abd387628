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
    : verdict === "conditional"
      ? "fits on a condition"
      : verdict === "failed" || verdict === "unused"
        ? "no verdict"
        : verdict;
// as the command line lists them
const order = ["fits", "tight", "conditional", "oom", "out of memory"];
const dear = 1e9; // what has no price comes behind what has one

type Key = "gpu" | "memory" | "price" | "each" | "headroom" | "verdict";

export function cataloguePanel(pick: (gpu: string) => void): {
  element: HTMLElement;
  gpus(all: GpusGPU[]): void;
  picked(gpu: string): void;
  found(found: Found | null): void;
} {
  let all: GpusGPU[] = [],
    chosen = "",
    found: Found | null = null,
    by: Key = "memory",
    down = false;
  const search = h("input", {
    type: "search",
    placeholder: "Find a GPU",
    "aria-label": "GPUs whose name contains",
  });
  const least = h("input", {
      type: "number",
      min: "0",
      placeholder: "at least GiB",
      "aria-label": "At least so many GiB",
    }),
    dearest = h("input", {
      type: "number",
      min: "0",
      step: "0.1",
      placeholder: "at most USD/h",
      "aria-label": "At most so many USD an hour",
    });
  const fits = h("input", { type: "checkbox" }),
    fitting = h("label", { class: "check", hidden: "" }, fits, "only what it fits");
  const body = h("tbody"),
    said = h("p", { class: "hint", role: "status" });
  const reserve = (g: GpusGPU): GPUVerdict | undefined => found?.by.get(g.gpu);
  const value = (g: GpusGPU, key: Key): number | string | null =>
    key === "gpu"
      ? g.name
      : key === "memory"
        ? g.total_bytes
        : key === "price"
          ? g.price_usd_per_hour || null
          : key === "each"
            ? g.price_usd_per_hour
              ? g.price_usd_per_hour / (g.total_bytes / gib)
              : null
            : key === "headroom"
              ? (reserve(g)?.headroom_bytes ?? null)
              : ranked(g);
  /** First what it fits, cheapest first. */
  const ranked = (g: GpusGPU): number | null => {
    const at = order.indexOf(reserve(g)?.verdict ?? "");
    return at < 0
      ? null
      : at * dear * 10 + (g.price_usd_per_hour || dear) + g.total_bytes / 2 ** 60;
  };
  const fill = () => {
    const words = search.value.trim().toLowerCase();
    const some = all.filter(
      (g) =>
        `${g.gpu} ${g.name} ${g.vendor}`.toLowerCase().includes(words) &&
        g.total_bytes / gib >= Number(least.value || 0) - 0.5 &&
        (!dearest.value || (g.price_usd_per_hour ?? Infinity) <= Number(dearest.value)) &&
        (!fits.checked || ["fits", "tight", "conditional"].includes(reserve(g)?.verdict ?? "")),
    );
    some.sort((a, b) => {
      const p = value(a, by),
        q = value(b, by);
      return p === null || q === null
        ? Number(p === null) - Number(q === null)
        : (typeof p === "string"
            ? p.localeCompare(String(q), "en", { numeric: true })
            : p - Number(q)) * (down ? -1 : 1);
    });
    const cheapest = found
      ? some
          .filter((g) => reserve(g)?.verdict === "fits" && g.price_usd_per_hour)
          .sort((a, b) => a.price_usd_per_hour! - b.price_usd_per_hour!)[0]
      : undefined;
    body.replaceChildren(...some.map((g) => row(g, g === cheapest)));
    for (const head of heads) {
      if (head.key === by)
        head.element.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.element.removeAttribute("aria-sort");
    }
    for (const cell of table.querySelectorAll<HTMLElement>(".told")) cell.hidden = !found;
    fitting.hidden = !found;
    said.textContent =
      `${some.length} of ${all.length} GPUs` +
      (cheapest
        ? `; the cheapest that it fits with room: ${cheapest.name}, ` +
          `${cheapest.price_usd_per_hour!.toFixed(2)} USD an hour for each ` +
          `(${reserve(cheapest)!.label})`
        : "") +
      `.${found?.at ? ` Headroom and verdict are ${found.at}.` : ""}`;
  };
  const row = (g: GpusGPU, best: boolean): HTMLElement => {
    const left = reserve(g),
      button = h(
        "button",
        {
          type: "button",
          class: "pick",
          "aria-pressed": String(g.gpu === chosen),
          title: `${g.gpu}: choose it`,
        },
        g.name,
      );
    button.addEventListener("click", () => pick(g.gpu));
    const room = left?.headroom_bytes ?? null,
      known = left && order.includes(left.verdict);
    return h(
      "tr",
      g.gpu === chosen ? { class: "picked" } : {},
      h(
        "td",
        { class: "text" },
        button,
        best && h("span", { class: "badge measured" }, "cheapest"),
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
    );
  };
  const heads = (
    [
      ["gpu", "GPU", "text", ""],
      ["memory", "Memory", "number", ""],
      ["price", "USD/h", "number", ""],
      ["each", "¢/h per GiB", "number", ""],
      ["headroom", "Headroom", "number told", ""],
      ["verdict", "Verdict", "text told", ""],
    ] as [Key, string, string, string][]
  ).map(([key, title, kind]) => {
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
    h(
      "div",
      { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Catalogue of GPUs" },
      table,
    ),
  );
  return {
    element,
    gpus: (some) => {
      all = some;
      fill();
    },
    picked: (gpu) => {
      chosen = gpu;
      fill();
    },
    found: (some) => {
      found = some;
      if (some) {
        by = "verdict";
        down = false;
      }
      fill();
    },
  };
}
