// The segments of the device at one point, by address, with the blocks in them in the colours of
// the stack.

import type { MomentAnswer, MomentSegment } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { tape, type Segment } from "../../panels/tape";
import { filtering, type Board } from "./board";
import { classOf, type By } from "./colours";

const rows = 12;

/** Free stretches and blocks of a segment, one after the other. */
export function filled(of: Pick<MomentSegment, "size" | "parts">): Segment["blocks"] {
  const all: Segment["blocks"] = [];
  let from = 0;
  for (const [offset, size, n, value] of of.parts) {
    if (offset > from) all.push([offset - from, 0, -1]);
    all.push([size, 1, n, value]);
    from = offset + size;
  }
  if (from < of.size) all.push([of.size - from, 0, -1]);
  return all;
}

/** What the blocks take, by the class that their colour stands for. */
function sumsOf(m: MomentAnswer, by: By): Map<number, number> {
  const sums = new Map<number, number>();
  for (const s of m.segments)
    for (const [, size, n, value] of s.parts)
      if (n >= 0 && value >= 0) {
        const c = classOf(by, value);
        sums.set(c, (sums.get(c) ?? 0) + size);
      }
  return sums;
}

/** The moment in words. */
function saidOf(m: MomentAnswer): string {
  const event = m.event
    ? `after event ${count(m.event.number)}, ${m.event.action.replaceAll("_", " ")} of ` +
      `${bytes(m.event.size)}`
    : "before the first event";
  const parts = [
    `${bytes(m.allocated)} in ${count(m.blocks)} blocks of ${bytes(m.reserved)} reserved`,
    m.waiting ? `${bytes(m.waiting)} freed, another stream still uses it` : "",
    m.rest ? `${count(m.rest)} of the smallest segments are not drawn` : "",
    m.known ? "" : "the file tells of no segments",
  ];
  return [event, ...parts.filter(Boolean)].join(" · ");
}

export function segmentMap(board: Board, mark: (name: string, value: string) => void): HTMLElement {
  const { app, colours } = board,
    said = h("p", { class: "hint", role: "status" });
  const named = (n: number) =>
    n >= 0
      ? `, block ${count(n)}`
      : n < -1
        ? `, ${count(-1 - n)} small blocks and what is free between them`
        : "";
  const map = tape(
    ["at this event"],
    (n) => {
      if (n >= 0) app.set({ block: n });
    },
    (text) => {
      said.textContent = text;
    },
    named,
    {
      ink: (value) => colours.ink(value),
      over: (n) => board.hover(n !== null && n >= 0 ? n : null),
    },
  );
  const show = (m: MomentAnswer) => {
    colours.see(sumsOf(m, colours.by()), false); // what the stack does not show has a colour too
    const all = m.segments.map((s): Segment => ({
        size_bytes: s.size,
        ...(s.large ? { large: true } : {}),
        ...(s.expandable ? { expandable: true } : {}),
        blocks: filled(s),
      })),
      total = all.reduce((sum, s) => sum + s.size_bytes, 0);
    map.show(
      [all],
      Math.max(total / rows, 1),
      m.known ? "Segments" : "Blocks by address",
      saidOf(m),
    );
    said.textContent = "";
  };
  const width = () => Math.max(element.clientWidth, 300) * 12;
  const element = h(
    "div",
    { class: "tapes" },
    map.element,
    said,
    h(
      "p",
      { class: "phases" },
      h("span", {}, h("i", { class: "free" }), "free"),
      h("span", {}, "blocks have the colours of the stack above; the selected one has an edge"),
    ),
  );
  board.follow(["at", "device", ...filtering], () => {
    const known = board.known();
    void board.ask<MomentAnswer>(
      "moment",
      board.path("moment", {
        at: board.at(),
        width: width(),
        ...board.filter(),
        by: colours.by(),
        ...known,
      }),
      (m) => {
        board.learn(m.labels, known);
        show(m);
        map.choose(app.get().block);
        mark("moment", String(m.point));
      },
    );
  });
  board.follow(["block"], () => map.choose(app.get().block));
  colours.changed(() => map.choose(app.get().block));
  board.hovered((n) => map.mark(n));
  return element;
}
