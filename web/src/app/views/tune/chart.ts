// The frontier: each plan that ran, by what it computes again and by what it takes of the device;
// as SVG, so that it can be saved.

import type { Point } from "../../../api";
import { canvas, fitted, grid, halo, legend, s, up, wide, type Frame } from "../../../draw/svg";
import { theme } from "../../../draw/theme";
import { bytes } from "../../../lib/format";
import { verdictWords } from "../../panels/catalogue";

/** What is drawn: the plans that ran, and what is known of the device so far. */
export interface Drawn {
  points: Point[];
  total?: number | undefined; // of the device
  room?: number | undefined; // that the goal wants to stay free
  chosen: Point | null;
}

export const used = (p: Point): number | undefined => p.verdict.peak_device_used_bytes;
export const again = (p: Point): number => p.plan.planned?.recomputed_share ?? 0;
export const moved = (p: Point): number => p.plan.planned?.offloaded_bytes ?? 0;
export const percent = (share: number): string => `${Math.round(share * 100)} %`;
const fits = (p: Point) => ["fits", "tight", "conditional"].includes(p.verdict.verdict);

/** The colour of a plan: it reaches the goal, it runs and does not, or memory ran out. */
export const ink = (p: Point): string =>
  p.reaches_goal ? "fine" : fits(p) ? "warning" : "critical";

/** In words, for readers who do not see the picture. */
export const said = (p: Point): string =>
  `${p.what}: ${verdictWords(p.verdict.verdict)}` +
  `${used(p) === undefined || !fits(p) ? "" : `, ${bytes(used(p)!)}`}, costs: ${p.costs}`;

/** What the marks of the picture share: its frame, and where a share lies. */
interface Plan {
  f: Frame;
  x(share: number): number;
  most: number;
  total: number | undefined;
}

const frameLeft = 66,
  frameRight = 22,
  inset = 26, // so that marks at nothing stand clear of the axis
  tall = 320;

export function frontierChart(
  seen: Drawn,
  width: number,
  pick: (p: Point) => void,
): SVGSVGElement | null {
  const { points, total } = seen;
  if (points.length === 0) return null;
  const key = legend(entries(points), width);
  const most = Math.max(0.1, ...points.map(again)) * 1.06;
  const f: Frame = {
    left: frameLeft,
    top: key.height + 8,
    width: width - frameLeft - frameRight,
    height: tall,
    top_value: highest(points, total),
    unit: "bytes",
  };
  const x = (share: number) => f.left + inset + (share / most) * (f.width - inset);
  const plan: Plan = { f, x, most, total };
  const svg = canvas(
    width,
    key.height + tall + 50,
    `Peak against cost: ${points.map(said).join("; ")}`,
  );
  svg.append(
    key.element,
    grid(f, true),
    ...shares(plan),
    ...(total ? limit(plan, total, seen.room) : []),
    ...frontier(plan, points),
    ...marks(plan, seen, pick),
    ...recommended(plan, points),
  );
  return svg;
}

const first = 22, // pixels from the limit to the lowest of the plans that ran out of memory
  apart = 13; // from one to the next above it

/** The axis' end: what ran, and above the limit room for what ran out of memory at one share. */
function highest(points: Point[], total: number | undefined): number {
  const out = points.filter((p) => !fits(p)).map(again),
    most = Math.max(0, ...out.map((share) => out.filter((other) => other === share).length)),
    above = Math.min(tall * 0.45, 30 + first + apart * most);
  return Math.max(
    (total ?? 0) / (1 - above / tall),
    ...points.map((p) => (fits(p) ? used(p)! * 1.14 : 0)),
    1,
  );
}

/** What colours and shapes mean, as far as they are there. */
function entries(points: Point[]): Parameters<typeof legend>[0] {
  const colour = theme(),
    some = (is: (p: Point) => boolean) => points.some(is);
  return [
    { ink: colour("fine"), text: "reaches the goal", mark: "●" },
    ...(some((p) => ink(p) === "warning")
      ? [{ ink: colour("warning"), text: "runs, and does not reach it", mark: "●" }]
      : []),
    ...(some((p) => !fits(p))
      ? [{ ink: colour("critical"), text: "out of memory", mark: "▲" }]
      : []),
    ...(some((p) => fits(p) && moved(p) > 0)
      ? [{ ink: colour("text"), text: "activations or states go to the host", mark: "■" }]
      : []),
    ...(some((p) => fits(p) && !p.numbers_stay)
      ? [{ ink: colour("text"), text: "numbers change, or may", mark: "◆" }]
      : []),
    ...(some((p) => p.on_frontier)
      ? [{ ink: colour("accent"), text: "none takes less at no more cost", dash: true }]
      : []),
  ];
}

/** The axis of what is computed again. */
function shares({ f, x, most }: Plan): SVGElement[] {
  const fill = theme()("muted"),
    floor = f.top + f.height,
    step = [0.02, 0.05, 0.1, 0.2, 0.25, 0.5].find((n) => (most / n) * 56 < f.width) ?? 1;
  return [
    ...Array.from({ length: Math.floor(most / step) + 1 }, (_, i) =>
      s(
        "text",
        { x: x(i * step), y: floor + 18, "text-anchor": "middle", fill, "font-size": 11 },
        percent(i * step),
      ),
    ),
    fitted("of the forward pass is computed again", f.width, {
      x: f.left + f.width,
      y: floor + 38,
      "text-anchor": "end",
      fill,
      "font-size": 11,
    }),
  ];
}

/** The device's memory, and below it what the goal wants to stay free. */
function limit({ f }: Plan, total: number, room: number | undefined): SVGElement[] {
  const colour = theme(),
    y = up(f, total);
  return [
    ...(room
      ? [
          s("rect", {
            x: f.left,
            y,
            width: f.width,
            height: Math.max(0, up(f, total - room) - y),
            fill: colour("warning"),
            "fill-opacity": 0.16,
          }),
        ]
      : []),
    s("line", {
      x1: f.left,
      x2: f.left + f.width,
      y1: y,
      y2: y,
      stroke: colour("limit"),
      "stroke-width": 1.5,
      "stroke-dasharray": "6 4",
    }),
    fitted(
      `${bytes(total)} of the device${room ? "; shaded: the room that is asked for" : ""}`,
      f.width - 10,
      {
        x: f.left + f.width - 4,
        y: y - 8,
        "text-anchor": "end",
        fill: colour("limit"),
        "font-size": 11,
        "font-weight": 600,
      },
    ),
  ];
}

/** Steps through the plans that keep numbers and move nothing: at a share, the least peak. */
function frontier({ f, x }: Plan, points: Point[]): SVGElement[] {
  const on = points
    .filter((p) => p.on_frontier && fits(p) && p.numbers_stay && !moved(p))
    .sort((a, b) => again(a) - again(b) || used(b)! - used(a)!);
  if (on.length < 2) return [];
  const d = on
    .map((p, i) => {
      const [px, py] = [x(again(p)).toFixed(1), up(f, used(p)!).toFixed(1)];
      return i === 0 ? `M${px} ${py}` : `H${px}V${py}`;
    })
    .join("");
  return [
    s("path", {
      d,
      fill: "none",
      stroke: theme()("accent"),
      "stroke-width": 1.75,
      "stroke-dasharray": "4 4",
    }),
  ];
}

/** A mark for each plan; of a plan that ran out of memory only its cost is known. */
function marks({ f, x, total }: Plan, seen: Drawn, pick: (p: Point) => void): SVGElement[] {
  const above = new Map<number, number>();
  return seen.points.map((p) => {
    const share = again(p),
      before = above.get(share) ?? 0;
    if (fits(p)) return mark(p, x(share), up(f, used(p)!), seen.chosen === p, pick);
    above.set(share, before + 1);
    const y = Math.max(f.top + 8, up(f, total ?? f.top_value) - first - apart * before);
    return mark(p, x(share), y, seen.chosen === p, pick);
  });
}

function mark(p: Point, x: number, y: number, chosen: boolean, pick: (p: Point) => void) {
  const colour = theme(),
    look = { fill: colour(ink(p)), stroke: colour("panel"), "stroke-width": 1.5 };
  const shape = !fits(p)
    ? s("path", { d: `M${x - 6} ${y + 5}h12l-6 -11z`, ...look })
    : !p.numbers_stay
      ? s("path", { d: `M${x - 7} ${y}l7 -7l7 7l-7 7z`, ...look })
      : moved(p)
        ? s("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11, ...look })
        : s("circle", { cx: x, cy: y, r: 6, ...look });
  const element = s(
    "g",
    {
      class: "plan-mark",
      role: "button",
      tabindex: 0,
      "aria-pressed": String(chosen),
      "aria-label": said(p),
    },
    s("title", {}, said(p)),
    s("circle", { cx: x, cy: y, r: 12, fill: "transparent" }),
    chosen &&
      s("circle", {
        cx: x,
        cy: y,
        r: 10,
        fill: "none",
        stroke: colour("accent"),
        "stroke-width": 2.5,
      }),
    shape,
  );
  element.addEventListener("click", () => pick(p));
  element.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    pick(p);
  });
  return element;
}

/** The words beside the plan that is recommended. */
function recommended({ f, x }: Plan, points: Point[]): SVGElement[] {
  const p = points.find((one) => one.recommended && fits(one));
  if (!p) return [];
  const at = x(again(p)),
    right = at - 20 - wide("recommended", 12, 700) < f.left, // on its left the line does not pass
    colour = theme();
  return [
    s(
      "text",
      {
        x: at + (right ? 16 : -16),
        y: up(f, used(p)!) + (right ? 30 : 18),
        "text-anchor": right ? "start" : "end",
        "font-size": 12,
        "font-weight": 700,
        fill: colour("text"),
        ...halo(colour("panel")),
      },
      "recommended",
    ),
  ];
}
