// What a GPU costs, and what of it is paid for memory that is not used: MemoryMark's waste and
// yearly cost, with every assumption in sight.

import { bytes, count, percent } from "../../lib/format";
import { h } from "../../views/dom";

export interface CostOf {
  price: number; // USD an hour of one GPU
  gpus: number;
  total: number; // bytes of one GPU
  used?: number | undefined; // bytes, at its peak
  sure?: string | undefined; // the label of that, with the error of an estimate
  of: string; // what uses it
  each?: string | undefined; // of several GPUs, which used so much: "on average"
  // speedup: measured; else not known
  batches?: { current: number; best: number; speedup?: number | null } | undefined;
}

export interface Cost {
  perYear: number;
  unused: number;
  paid: number;
  saved: number | null;
}

/**
 * Yearly cost, the part of memory that is never used, what that part costs, and what a measured
 * speed-up would save.
 */
export function cost(
  price: number,
  gpus: number,
  hours: number,
  total: number,
  used: number,
  speedup: number | null,
): Cost {
  const perYear = price * gpus * hours,
    unused = total > 0 ? Math.min(Math.max(1 - used / total, 0), 1) : 0;
  return {
    perYear,
    unused,
    paid: perYear * unused,
    saved: speedup && speedup > 1 ? perYear * (1 - 1 / speedup) : null,
  };
}

const usd = (v: number) => `${v < 100 ? v.toFixed(2) : count(v)} USD`;

export function costPanel(of: CostOf): HTMLElement {
  const input = (label: string, value: number, step: string, hint: string) => {
    const field = h("input", { type: "number", min: "0", step, value: String(value) });
    field.addEventListener("input", () => fill());
    return { field, element: h("label", {}, h("span", {}, label), field, h("small", {}, hint)) };
  };
  const price = input(
      "USD an hour",
      of.price,
      "0.01",
      "of one GPU; the catalogue's, or what you pay",
    ),
    gpus = input("GPUs", Math.max(1, of.gpus), "1", "rented together");
  const hours = input("Hours a year", 8760, "1", "8,760: all the time; MemoryMark takes 200");
  const out = h("dl", { class: "figures" }),
    note = h("p", { class: "hint" });
  const fill = () => {
    const c = cost(
      Number(price.field.value),
      Number(gpus.field.value),
      Number(hours.field.value),
      of.total,
      of.used ?? of.total,
      of.batches?.speedup ?? null,
    );
    const rows: [string, string][] = [["A year", usd(c.perYear)]];
    if (of.used !== undefined)
      rows.push(
        [
          ["Memory not used", of.each && ` of each GPU, ${of.each}`, of.sure && ` (${of.sure})`]
            .filter(Boolean)
            .join(""),
          `${bytes(of.total - of.used)}, ${percent(c.unused * 1000)}`,
        ],
        ["Paid for it a year", usd(c.paid)],
      );
    if (c.saved !== null) rows.push(["Saved by the larger batch", usd(c.saved)]);
    out.replaceChildren(...rows.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))));
    note.textContent = [
      of.used === undefined
        ? ""
        : `At its peak, ${of.of} uses ${bytes(of.used)}${of.sure ? ` (${of.sure})` : ""} of ` +
          `${bytes(of.total)}${of.each ? ` of each GPU, ${of.each}` : ""}. ` +
          "Memory that is not used costs as much an hour as memory that is; " +
          "whether a larger batch or a smaller GPU makes use of it is another question.",
      of.batches && c.saved === null
        ? `MemoryMark would call the batch of ${of.batches.best} in place of ` +
          `${of.batches.current} a speed-up of ` +
          `${(of.batches.best / Math.max(1, of.batches.current)).toFixed(1)}; ` +
          "time is not measured on an imaginary GPU, so nothing is said to be saved."
        : "",
    ]
      .filter(Boolean)
      .join(" ");
  };
  fill();
  return h(
    "div",
    { class: "cost" },
    h("h3", {}, "What it costs"),
    h("div", { class: "cost-in" }, price.element, gpus.element, hours.element),
    out,
    note,
  );
}
