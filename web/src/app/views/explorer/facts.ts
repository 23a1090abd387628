// What is known of one block, in words.

import { bytes, count, duration, place } from "../../../lib/format";
import { h, type Child } from "../../../views/dom";
import type { Site } from "./tile";

export interface Frame { file: string; line?: number; function?: string; native?: boolean; user?: boolean }

/** GET /snapshots/{id}/block. */
export interface Block {
  n: number; address: string; size: number; requested: number; class: string; stream: string; category: string; owner?: string; module: string; place: Site;
  begin: number; end: number; begin_ns?: number; end_ns?: number; stack: Frame[]; siblings: { blocks: number; bytes: number };
}

/** How long a block lived, by the points from which on it did and did not. */
export function life(begin: number, end: number): string {
  const from = begin === 0 ? "from before the trace" : `from event ${count(begin - 1)}`;
  return end < 0 ? `${from}, never freed in it` : `${from} to ${count(end - 1)}`;
}

const frame = (f: Frame) => h("li", { class: f.user ? "own" : f.native ? "native" : "", title: `${f.file}${f.line ? `:${f.line}` : ""} ${f.function ?? ""}` },
  f.native ? f.function ?? "" : h("b", {}, place(f.file, f.line)), f.native ? "" : ` ${f.function ?? ""}`);

/** The frames of the program and of libraries, innermost first; native ones behind a click. */
function stack(frames: Frame[]): Child[] {
  if (!frames.length) return [h("p", { class: "hint" }, "The trace has no stack of this block.")];
  const named = frames.filter((f) => !f.native), native = frames.filter((f) => f.native);
  return [h("h4", {}, "Allocated by, innermost first"), h("ol", { class: "frames" }, ...named.map(frame)),
    native.length > 0 && h("details", {}, h("summary", {}, `${count(native.length)} native frames`), h("ol", { class: "frames" }, ...native.map(frame)))];
}

/** The facts of the block that is selected. */
export function facts(b: Block): HTMLElement {
  const lived = b.begin_ns !== undefined && b.end_ns !== undefined && b.end > 0 && b.begin > 0 ? `, ${duration(b.end_ns - b.begin_ns)}` : "";
  const rows: [string, string][] = [["Size", bytes(b.size)], ["Requested", `${bytes(b.requested)} (${count(b.requested)} B)`], ["Life", life(b.begin, b.end) + lived], ["Category", b.category + (b.owner ? `, ${b.owner}` : "")], ["Module", b.module],
    ["Line", b.place.name], ["Of this line", `${count(b.siblings.blocks)} blocks, ${bytes(b.siblings.bytes)} in the whole trace`], ["Address", `${b.address}, ${b.stream}`], ["Pool", b.class]];
  return h("div", { class: "block-facts" }, h("h3", {}, `Block ${count(b.n)}`), h("dl", {}, ...rows.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])), ...stack(b.stack));
}

/** Beside the pointer: the stack comes when the server has answered. */
export function tip(of: { bytes: number; begin: number; end: number }, site: Site | undefined, more: string, block: Block | undefined): Child[] {
  const own = block?.stack.filter((f) => !f.native).slice(0, 5) ?? [];
  return [h("b", {}, `${bytes(of.bytes)} · ${site?.name ?? ""}`), h("span", {}, life(of.begin, of.end)), h("span", {}, more), own.length > 0 && h("ol", { class: "frames" }, ...own.map(frame))];
}
