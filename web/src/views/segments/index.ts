import type { Allocator, Report, SegmentMap, StackSet } from "../../api";
import { whileShown } from "../../draw/shown";
import { edges, lastAt, put, type Tape } from "../../draw/tape";
import { faint, theme } from "../../draw/theme";
import { inkOf } from "../../lib/categories";
import { bytes, count, percent, place } from "../../lib/format";
import { callsOf } from "../../lib/icicle";
import { standing, toggle } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { h, section } from "../dom";
import { oneAtATime } from "../flames";
import { allFigures } from "../tables";

const row = 17,
  gap = 3,
  mostRows = 44,
  fewestRows = 6,
  stackShown = 14;

/** The allocator's segments one after the other, by address, with what lies in them. */
export const segments = (report: Report, page: PageStore): HTMLElement | null =>
  reservedMemory(report, page, "Where the reserved memory lies", map);

/** Where the reserved memory goes, on a page that shows the segments elsewhere. */
export const reserved = (report: Report, page: PageStore): HTMLElement | null =>
  reservedMemory(report, page, "Where the reserved memory goes", (a) =>
    h("figure", {}, h("figcaption", {}, `Device ${a.device} of ${a.file}`), parts(a)),
  );

function reservedMemory(
  report: Report,
  page: PageStore,
  title: string,
  show: typeof map,
): HTMLElement | null {
  const of = (a: Allocator) =>
    report.stacks?.find(
      (s) => s.name === "device" && s.file === a.file && s.device_number === a.device,
    );
  const shown = (report.allocators ?? [])
    .map((a): [Allocator, StackSet | undefined] => [a, of(a)])
    .filter(([a]) => a.fragmentation && (a.segment_map ?? []).length > 0);
  return shown.length
    ? section(
        "segments",
        title,
        ...oneAtATime(
          shown.map(([a, set]) => [
            a.name ?? `device ${a.device}`,
            a.file,
            () => show(a, set, page),
          ]),
        ),
        allFigures(report, page, ["reserved"]),
      )
    : null;
}

interface Placed {
  from: number;
  segment: SegmentMap;
  index: number;
  block: SegmentMap["blocks"][number];
  address: number;
}

/** What a segment is, and how much of it is in use. */
const segmentText = (s: SegmentMap): string =>
  [
    bytes(s.size_bytes),
    s.large ? "large" : "small",
    s.expandable && "expandable",
    s.pool,
    s.stream && `stream ${s.stream}`,
    `${percent((s.active_bytes / s.size_bytes) * 1000)} in use`,
  ]
    .filter(Boolean)
    .join(", ");

function map(a: Allocator, set: StackSet | undefined, page: PageStore): HTMLElement {
  const all = place_(a.segment_map!),
    whole = a.segment_map!.reduce((n, s) => n + s.size_bytes, 0);
  const rows = rowsOf(a.segment_map!.length),
    label = { role: "img", "aria-label": spoken(a, whole) },
    canvas = h("canvas", { class: "tape", tabindex: "0", ...label });
  const tip = h("div", { class: "tip", role: "status" }, pointAt);
  const categories = a.map_categories ?? [];
  let chosen: Placed | null = null;
  const stackOf = stackReader(set);
  const stands = ({ block: [, , category, node] }: Placed) => {
    const { line, words } = stackOf(node),
      name = categories[category] ?? "";
    return standing(page.get(), { category: name, line: line ?? "", words: `${words}\n${name}` });
  };
  const draw = () => {
    const ratio = devicePixelRatio || 1,
      width = canvas.clientWidth || 1100,
      ink = inksOf(categories);
    canvas.width = width * ratio;
    canvas.height = rows * row * ratio;
    canvas.style.height = `${rows * row}px`;
    const ctx = canvas.getContext("2d")!,
      plan: Tape = { ctx, width, per: whole / rows, row, rows };
    ctx.scale(ratio, ratio);
    drawBlocks(plan, all, ink, (p) => stands(p) === "dim");
    ctx.fillStyle = ink.edge;
    edges(plan, a.segment_map!, { least: 4, y: 0, high: row - gap });
    if (chosen)
      put(plan, chosen.from, chosen.block[0], (x, y, w) => {
        ctx.strokeStyle = ink.text;
        ctx.lineWidth = 2;
        ctx.strokeRect(x, y, Math.max(w, 2), row - gap);
      });
  };
  const at = (x: number, y: number): Placed | null => {
    const across = Math.min(Math.max(x / canvas.clientWidth, 0), 0.99999);
    return all[lastAt(all, (Math.floor(y / row) + across) * (whole / rows))] ?? null;
  };
  const choose = (p: Placed | null) => {
    if (!p || p === chosen) return;
    chosen = p;
    draw();
    tip.replaceChildren(...told(p, categories, set));
  };
  canvas.addEventListener("pointermove", (e) => choose(at(e.offsetX, e.offsetY)));
  canvas.addEventListener("click", () => pick());
  const pick = () => {
    const line = chosen && chosen.block[1] !== 0 && stackOf(chosen.block[3]).line;
    if (line) toggle(page, { line });
  };
  canvas.addEventListener("keydown", (e) => {
    if (e.key === "Enter") pick();
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    choose(neighbour(all, chosen, step));
    e.preventDefault();
  });
  new ResizeObserver(draw).observe(canvas);
  whileShown(canvas, "hightide:theme", draw);
  const present = categories.filter((_, i) => all.some((p) => p.block[2] === i)),
    entries = present.map((c) => entryOf(c, page));
  page.follow(["category", "line", "search"], ({ category }) => {
    entries.forEach((b, i) => b.setAttribute("aria-pressed", String(present[i] === category)));
    draw();
  });
  return h(
    "figure",
    {},
    h("figcaption", {}, titleOf(a, whole)),
    parts(a),
    canvas,
    legend(entries),
    tip,
  );
}

const pointAt = "Point at a block: its size, what it is for and which calls allocated it.";

const titleOf = (a: Allocator, whole: number): string =>
  `Device ${a.device} of ${a.file}: ${count(a.segment_map!.length)} segments, ${bytes(whole)}`;

const spoken = (a: Allocator, whole: number): string =>
  `${a.segment_map!.length} segments of ${bytes(whole)}, ` +
  `${bytes(a.fragmentation!.stuck_bytes)} cached beside blocks in use`;

/** How many rows the tape of so many segments has. */
const rowsOf = (segments: number): number =>
  Math.max(fewestRows, Math.min(mostRows, Math.round(Math.sqrt(segments) * 1.6)));

const legend = (entries: HTMLElement[]): HTMLElement =>
  h(
    "p",
    { class: "phases picks" },
    ...entries,
    h("span", {}, h("i", { class: "free" }), "cached"),
    h("span", {}, "by address; a thin line begins a segment"),
  );

/** The button of a category in the legend. */
function entryOf(category: string, page: PageStore): HTMLElement {
  const b = h(
    "button",
    { type: "button", "aria-pressed": "false", title: "Click to see it alone in every panel" },
    h("i", { style: `background:var(--${inkOf(category)})` }),
    category,
  );
  b.addEventListener("click", () => toggle(page, { category }));
  return b;
}

interface Inks {
  of: string[]; // by category
  free: string;
  wait: string;
  edge: string;
  text: string;
}

function inksOf(categories: string[]): Inks {
  const colour = theme();
  return {
    of: categories.map((c) => colour(inkOf(c))),
    free: colour("track"),
    wait: colour("warning"),
    edge: colour("muted"),
    text: colour("text"),
  };
}

function drawBlocks(plan: Tape, all: Placed[], ink: Inks, dim: (p: Placed) => boolean): void {
  for (const p of all)
    put(plan, p.from, p.block[0], (x, y, w) => {
      const [, state, category] = p.block,
        own = state === 0 ? ink.free : state === 2 ? ink.wait : (ink.of[category] ?? ink.edge);
      plan.ctx.fillStyle = state !== 0 && dim(p) ? faint(own, 0.22) : own;
      plan.ctx.fillRect(x, y, Math.max(w - (w > 3 ? 0.6 : 0), 0.3), row - gap);
    });
}

/** The block before or behind one, by address. */
const neighbour = (all: Placed[], of: Placed | null, step: number): Placed | null =>
  all[Math.min(Math.max((of ? all.indexOf(of) : -1) + step, 0), all.length - 1)] ?? null;

/** Of a node of the stacks the line that allocates, and all calls; each is read once. */
function stackReader(set: StackSet | undefined) {
  const stacks = new Map<number, { line?: string; words: string }>();
  return (node: number): { line?: string; words: string } => {
    if (!set || node < 0) return { words: "" };
    let known = stacks.get(node);
    if (!known) {
      const calls = callsOf(set, node),
        own = calls.find((l) => l.user) ?? calls.find((l) => l.line && !l.native);
      known = {
        ...(own ? { line: place(own.file, own.line) } : {}),
        words: calls.map((l) => `${l.file}:${l.function ?? ""}`).join("\n"),
      };
      stacks.set(node, known);
    }
    return known;
  };
}

/** A block in words, with the calls that allocated it. */
function told(p: Placed, categories: string[], set: StackSet | undefined): HTMLElement[] {
  const [size, state, category, node] = p.block;
  const what =
    state === 0
      ? p.segment.blocks.length === 1
        ? "a free segment"
        : "cached"
      : state === 2
        ? "freed, another stream still uses it"
        : (categories[category] ?? "in use");
  const calls = set && node >= 0 ? callsOf(set, node).slice(0, stackShown) : [];
  return [
    h(
      "p",
      {},
      state !== 0 &&
        category >= 0 &&
        h("i", { style: `background:var(--${inkOf(categories[category] ?? "")})` }),
      h("b", {}, `${bytes(size)} ${what}`),
      ` at 0x${p.address.toString(16)}, in segment ${count(p.index + 1)}: `,
      segmentText(p.segment),
    ),
    ...(calls.length
      ? [
          h(
            "ol",
            { class: "stack" },
            ...calls.map((l) =>
              h(
                "li",
                { class: l.user ? "own" : "installed" },
                l.file
                  ? h(
                      "code",
                      { title: l.line ? `${l.file}:${l.line}` : l.file },
                      place(l.file, l.line),
                    )
                  : null,
                ` ${(l.function ?? "").slice(0, 90)}`,
              ),
            ),
          ),
        ]
      : []),
  ];
}

/** Offsets along the tape. */
function place_(map: SegmentMap[]): Placed[] {
  const all: Placed[] = [];
  let from = 0;
  map.forEach((segment, index) => {
    let address = segment.address;
    for (const block of segment.blocks) {
      all.push({ from, segment, index, block, address });
      from += block[0];
      address += block[0];
    }
  });
  return all;
}

/** Where the reserved memory goes, in one bar. */
function parts(a: Allocator): HTMLElement {
  const f = a.fragmentation!,
    inUse =
      f.reserved_bytes - f.waiting_bytes - f.releasable_bytes - f.pooled_bytes - f.stuck_bytes;
  const all: [name: string, bytes: number, ink: string, note: string][] = [
    f.requested_bytes === undefined
      ? [
          "in use",
          inUse,
          "curve-0",
          "with what rounding added: the file does not tell what was asked for",
        ]
      : ["asked for", f.requested_bytes, "curve-0", "by blocks in use"],
    ["rounding", f.rounding_bytes ?? 0, "curve-7", "more than was asked for"],
    ["waiting", f.waiting_bytes, "warning", "freed, another stream still uses it"],
    ["empty_cache returns", f.releasable_bytes, "curve-5", "whole segments and pages"],
    ["in private pools", f.pooled_bytes, "curve-3", "cached there while graphs or pools live"],
    ["stuck", f.stuck_bytes, "critical", "cached beside blocks in use"],
  ];
  const some = all.filter(([, n]) => n > 0),
    sum = some.reduce((n, [, v]) => n + v, 0);
  return h(
    "div",
    { class: "parts" },
    h(
      "div",
      {
        class: "stack-bar thin",
        role: "img",
        "aria-label": some.map(([n, v]) => `${n} ${bytes(v)}`).join(", "),
      },
      ...some.map(([n, v, ink]) =>
        h("span", { style: `flex:${v / sum};--ink:var(--${ink})`, title: `${n}: ${bytes(v)}` }),
      ),
    ),
    h(
      "ul",
      {},
      ...some.map(([n, v, ink, note]) =>
        h(
          "li",
          { title: note },
          h("i", { style: `--ink:var(--${ink})` }),
          h("span", {}, n),
          h("b", {}, bytes(v)),
          h("small", {}, percent((v / sum) * 1000)),
        ),
      ),
      h(
        "li",
        { title: "the most that torch.cuda.empty_cache() would have returned at any event" },
        h("i", { style: "--ink:transparent" }),
        h("span", {}, "empty_cache at best"),
        h("b", {}, bytes(f.empty_cache.most_bytes)),
        h(
          "small",
          {},
          f.empty_cache.event < 0 ? "at the start" : `event ${count(f.empty_cache.event)}`,
        ),
      ),
    ),
  );
}
