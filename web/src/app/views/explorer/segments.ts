// The segments of the device at one point, by address, with the blocks in them.

import { bytes, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { tape, type Segment } from "../tape";

/** GET /snapshots/{id}/moment. A part is its offset, its size and the number of its block; below −1 it stands for −1 − n neighbours. */
export interface Moment {
  point: number; event?: { number: number; action: string; size: number; block: number };
  allocated: number; reserved: number; waiting: number; blocks: number; known: boolean; rest: number;
  segments: { size: number; large?: boolean; expandable?: boolean; parts: [offset: number, size: number, n: number, category: number][] }[];
}

const rows = 12;

/** Free stretches and blocks of a segment, one after the other. */
export function filled(of: Moment["segments"][number]): Segment["blocks"] {
  const all: Segment["blocks"] = [];
  let from = 0;
  for (const [offset, size, n] of of.parts) {
    if (offset > from) all.push([offset - from, 0, -1]);
    all.push([size, 1, n]);
    from = offset + size;
  }
  if (from < of.size) all.push([of.size - from, 0, -1]);
  return all;
}

export function segmentMap(pick: (n: number) => void): { element: HTMLElement; show(m: Moment): void; choose(n: number | null): void } {
  const said = h("p", { class: "hint", role: "status" });
  const named = (n: number) => n >= 0 ? `, block ${count(n)}` : n < -1 ? `, ${count(-1 - n)} small blocks and what is free between them` : "";
  const map = tape("at this event", (n) => { if (n >= 0) pick(n); }, (text) => { said.textContent = text; }, named);
  return {
    element: h("div", { class: "tapes" }, map.element, said, h("p", { class: "phases" }, h("span", {}, h("i", { style: "background:var(--curve-0)" }), "in use"), h("span", {}, h("i", { class: "free" }), "free"), h("span", {}, h("i", { style: "background:var(--curve-1)" }), "selected"))), choose: map.choose,
    show: (m) => {
      const all = m.segments.map((s): Segment => ({ size_bytes: s.size, ...(s.large ? { large: true } : {}), ...(s.expandable ? { expandable: true } : {}), blocks: filled(s) })), total = all.reduce((sum, s) => sum + s.size_bytes, 0);
      const event = m.event ? `after event ${count(m.event.number)}, ${m.event.action.replaceAll("_", " ")} of ${bytes(m.event.size)}` : "before the first event";
      const parts = [`${bytes(m.allocated)} in ${count(m.blocks)} blocks of ${bytes(m.reserved)} reserved`, m.waiting ? `${bytes(m.waiting)} freed, another stream still uses it` : "", m.rest ? `${count(m.rest)} of the smallest segments are not drawn` : "", m.known ? "" : "the file tells of no segments"];
      map.show(all, Math.max(total / rows, 1), m.known ? "Segments" : "Blocks by address", [event, ...parts.filter(Boolean)].join(" · "));
      said.textContent = "";
    },
  };
}
