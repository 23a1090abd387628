// What is known of one block, in words: its facts, why it is alive, its stacks and the source of a
// frame.

import type { Block, BlockFrame, SiteLabel } from "../../../api";
import { bytes, count, duration, place } from "../../../lib/format";
import { toggle } from "../../../state/selection";
import { h, type Child } from "../../../views/dom";
import type { Board } from "./board";
import { source, type Source } from "./source";

/** How long a block lived, by the points from which on it did and did not. */
export function life(begin: number, end: number): string {
  const from = begin === 0 ? "from before the trace" : `from event ${count(begin - 1)}`;
  return end < 0 ? `${from}, never freed in it` : `${from} to ${count(end - 1)}`;
}

const text = (f: BlockFrame): Child[] => [
  f.native ? (f.function ?? "") : h("b", {}, place(f.file, f.line)),
  f.native ? "" : ` ${f.function ?? ""}`,
];
const kind = (f: BlockFrame) => (f.user ? "own" : f.native ? "native" : "");
const said = (f: BlockFrame) => `${f.file}${f.line ? `:${f.line}` : ""} ${f.function ?? ""}`;
const frame = (f: BlockFrame) => h("li", { class: kind(f), title: said(f) }, ...text(f));

/**
 * The frames of the program and of libraries, innermost first; native ones behind a click. A frame
 * that is clicked shows its source.
 */
function stack(frames: BlockFrame[], code: Source): Child[] {
  const one = (f: BlockFrame): HTMLElement => {
    const button = h(
      "button",
      { type: "button", title: `${said(f)}\nClick for its source` },
      ...text(f),
    );
    button.addEventListener("click", () => code.show(f.place));
    return h("li", { class: kind(f) }, button);
  };
  const named = frames.filter((f) => !f.native),
    native = frames.filter((f) => f.native);
  return [
    named.length > 0 && h("ol", { class: "frames" }, ...named.map(one)),
    native.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `${count(native.length)} native frames`),
        h("ol", { class: "frames" }, ...native.map(frame)),
      ),
  ];
}

const later = (events: number) => `${count(events)} event${events === 1 ? "" : "s"} later`;

const freedBy = (b: Block) =>
  b.freed_by === "other"
    ? ", by the stack below."
    : b.freed_by === "same"
      ? ", by the stack that allocated it."
      : "; by which stack is not recorded.";

/** Why a block is there at a point, as far as the trace tells. */
function reasons(b: Block, at: number): string[] {
  const event = (point: number) => `event ${count(point - 1)}`,
    span = b.begin > 0 && b.end > 0 ? b.end - b.begin : 0;
  const lived =
    b.begin_ns !== undefined && b.end_ns !== undefined && span > 0
      ? `, ${duration(b.end_ns - b.begin_ns)} after`
      : "";
  const now =
    at < b.begin
      ? "Not yet allocated at this moment."
      : b.end < 0 || at < b.end
        ? "Alive at this moment."
        : b.gone < 0 || at < b.gone
          ? "Freed by the program at this moment, and another stream still uses it."
          : "Freed at this moment.";
  const made =
    b.begin === 0
      ? "It was there before the trace began: its allocation is not recorded."
      : `Allocated by ${event(b.begin)}, ${b.place.name}.`;
  const ended =
    b.end < 0
      ? "Nothing in the trace frees it: it is alive at the end."
      : `${b.gone > b.end + 1 || b.gone < 0 ? "Free requested" : "Freed"} by ${event(b.end)}` +
        `${lived}${span > 0 ? `, ${later(span)}` : ""}${freedBy(b)}`;
  const waited =
    b.end >= 0 && b.gone < 0
      ? "The free is not completed in the trace: another stream uses it."
      : b.end >= 0 && b.gone > b.end + 1
        ? `Free completed by ${event(b.gone)}, ${later(b.gone - b.end)}: ` +
          "until then another stream used it."
        : "";
  const kept = b.owner
    ? `The program named it ${b.owner}.`
    : "Which object keeps it is not recorded: a snapshot has no references.";
  const { blocks, bytes: sum, lasting, together } = b.siblings;
  const same =
    `Its line has ${count(blocks)} block${blocks === 1 ? "" : "s"} of ${bytes(sum)} ` +
    `in the whole trace; ${lasting === 0 ? "none outlives it" : `${count(lasting)} outlive it`}, ` +
    `and ${bytes(together)} are alive at this moment.`;
  return [now, made, ended, waited, kept, same].filter(Boolean);
}

/** The facts of the block that is selected, at the moment. */
export function facts(board: Board, b: Block): HTMLElement {
  const code = source(board, "block"),
    line = b.stack.find((f) => f.file === b.place.file && f.line === b.place.line),
    lived =
      b.begin_ns !== undefined && b.end_ns !== undefined && b.end > 0 && b.begin > 0
        ? `, ${duration(b.end_ns - b.begin_ns)}`
        : "";
  const rows: [string, string | HTMLElement][] = [
    ["Size", bytes(b.size)],
    ["Requested", `${bytes(b.requested)} (${count(b.requested)} B)`],
    ["Life", life(b.begin, b.end) + lived],
    ...selects(board, b),
    ["Address", `${b.address}, ${b.stream}`],
    ["Pool", b.class],
    ...b.texts.map((t): [string, string] => ["Attached", t]),
  ];
  const stacks: [string, BlockFrame[]][] = [
    ["Allocated by, innermost first", b.stack],
    ["Freed by, innermost first", b.freed],
    ["Of the forward call", b.forward],
  ];
  if (line) code.show(line.place, true);
  return h(
    "div",
    { class: "block-facts" },
    h("h3", {}, `Block ${count(b.n)}`),
    h(
      "dl",
      {},
      ...rows.flatMap(([k, v]) => [h("dt", {}, k), typeof v === "string" ? h("dd", {}, v) : v]),
    ),
    h("h4", {}, "Why it is alive"),
    h("ul", { class: "reasons" }, ...reasons(b, board.at()).map((r) => h("li", {}, r))),
    code.element,
    ...(b.stack.length ? [] : [h("p", { class: "hint" }, "The trace has no stack of this block.")]),
    ...stacks
      .flatMap(([title, frames]) =>
        frames.length ? [h("h4", {}, title), ...stack(frames, code)] : [],
      )
      .filter((c): c is Node => c instanceof Node),
  );
}

/** What a block is of: a click selects all blocks of that. */
function selects({ app }: Board, b: Block): [string, HTMLElement][] {
  const all: [string, "category" | "module" | "line", string, string][] = [
    ["Category", "category", b.category, b.owner ? `, ${b.owner}` : ""],
    ["Module", "module", b.module, ""],
    ["Line", "line", b.place.name, ""],
  ];
  return all.flatMap(([title, field, value, more]): [string, HTMLElement][] => {
    if (!value) return [];
    const button = h(
      "button",
      {
        type: "button",
        class: "plain",
        "aria-pressed": String(app.get()[field] === value),
        title: `Select this ${field} in every panel`,
      },
      value,
    );
    button.addEventListener("click", () => {
      toggle(app, { [field]: value });
      button.setAttribute("aria-pressed", String(app.get()[field] === value));
    });
    return [[title, h("dd", {}, button, more)]];
  });
}

/** Beside the pointer: the stack comes when the server has answered. */
export function tip(
  of: { bytes: number; begin: number; end: number },
  site: SiteLabel | undefined,
  more: string,
  block: Block | undefined,
): Child[] {
  const own = block?.stack.filter((f) => !f.native).slice(0, 5) ?? [];
  return [
    h("b", {}, `${bytes(of.bytes)} · ${site?.name ?? ""}`),
    h("span", {}, life(of.begin, of.end)),
    h("span", {}, more),
    own.length > 0 && h("ol", { class: "frames" }, ...own.map(frame)),
  ];
}
