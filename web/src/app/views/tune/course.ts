// Memory over one step: of the chosen plan, and of the program as it is. The x axis counts
// allocations and frees, as no kernel runs in an imagined run and its times say nothing.

import type { Point, StepCurve } from "../../../api";
import { canvas, fitted, grid, legend, s, up, type Frame } from "../../../draw/svg";
import { theme } from "../../../draw/theme";
import { bytes, count } from "../../../lib/format";

const left = 66,
  right = 14,
  tall = 190,
  strip = 9;

const highest = (c: StepCurve): number => Math.max(0, ...c.points.map((p) => p.allocated_bytes));

/** In words, for readers who do not see the picture. */
const said = (name: string, c: StepCurve): string =>
  `${name}: at most ${bytes(highest(c))} in ${count(c.events)} allocations and frees ` +
  `of step ${c.step}`;

/**
 * The plan's curve beside that of the unchanged program, which ran where there is plenty of memory.
 * Null: neither is known.
 */
export function courseChart(
  p: Point,
  today: StepCurve | undefined,
  width: number,
): SVGSVGElement | null {
  const changes = Object.keys(p.plan.levers).length > 0,
    plan = changes ? p.curve : undefined,
    curves = [today, plan].filter((c) => c !== undefined);
  if (curves.length === 0) return null;
  const colour = theme(),
    total = p.verdict.total_bytes,
    events = Math.max(2, ...curves.map((c) => c.events)),
    names = { today: "as it is, with plenty of memory", plan: "with the plan" };
  const phases = (plan ?? today)!.phases;
  const key = legend(
    [
      ...(plan ? [{ ink: colour("accent"), text: names.plan }] : []),
      ...(today ? [{ ink: colour("muted"), text: names.today, dash: true }] : []),
      ...phaseNames(phases).map((name) => ({ ink: colour(`phase-${name}`), text: name })),
    ],
    width,
  );
  const f: Frame = {
    left,
    top: key.height + 8,
    width: width - left - right,
    height: tall,
    top_value: Math.max(1, total, ...curves.map(highest)) * 1.08,
    unit: "bytes",
  };
  const x = (event: number) => f.left + (event / (events - 1)) * f.width;
  const floor = f.top + f.height;
  const svg = canvas(
    width,
    floor + strip + 44,
    `Memory over one step. ${[today && said(names.today, today), plan && said(names.plan, plan)]
      .filter(Boolean)
      .join("; ")}`,
  );
  svg.append(
    key.element,
    grid(f, true),
    ...(total > 0 ? limit(f, total) : []),
    ...(today ? [line(today, f, x, colour("muted"), "5 4")] : []),
    ...(plan ? [line(plan, f, x, colour("accent"))] : []),
    ...phases.map((phase) =>
      s(
        "rect",
        {
          x: x(phase.from_event),
          y: floor + 5,
          width: Math.max(1, x(phase.to_event) - x(phase.from_event)),
          height: strip,
          fill: colour(`phase-${phase.phase}`),
        },
        s("title", {}, phase.phase),
      ),
    ),
    fitted(`${count(events)} allocations and frees in one step`, f.width, {
      x: f.left + f.width,
      y: floor + strip + 24,
      "text-anchor": "end",
      fill: colour("muted"),
      "font-size": 11,
    }),
  );
  return svg;
}

const phaseNames = (phases: StepCurve["phases"]): string[] => [
  ...new Set(phases.map((p) => p.phase)),
];

/** Each part of the step stays at its highest until the next part's. */
function line(c: StepCurve, f: Frame, x: (event: number) => number, ink: string, dash?: string) {
  const d = c.points
    .map((p, i) => {
      const [px, py] = [x(p.event).toFixed(1), up(f, p.allocated_bytes).toFixed(1)];
      return i === 0 ? `M${px} ${py}` : `L${px} ${py}`;
    })
    .join("");
  return s("path", {
    class: dash ? "course-today" : "course-plan",
    d,
    fill: "none",
    stroke: ink,
    "stroke-width": 1.9,
    "stroke-linejoin": "round",
    "stroke-dasharray": dash,
  });
}

function limit(f: Frame, total: number): SVGElement[] {
  const ink = theme()("limit"),
    y = up(f, total);
  return [
    s("line", {
      x1: f.left,
      x2: f.left + f.width,
      y1: y,
      y2: y,
      stroke: ink,
      "stroke-width": 1.5,
      "stroke-dasharray": "6 4",
    }),
    fitted(`${bytes(total)} of the device`, f.width - 10, {
      x: f.left + f.width - 4,
      y: y - 5,
      "text-anchor": "end",
      fill: ink,
      "font-size": 11,
      "font-weight": 600,
    }),
  ];
}

/** What is to be known beside the picture, or why there is none. */
export function courseWords(p: Point, today: StepCurve | undefined): string {
  const ran = p.verdict.verdict !== "oom",
    changes = Object.keys(p.plan.levers).length > 0;
  if (p.curve === undefined && today === undefined)
    return "Not recorded: a step is shown where one process trains on one GPU.";
  const words =
    "What the allocator gave in the fullest step; libraries and idle segments come on top. ";
  if (!changes) return words;
  if (!ran) return `${words}The plan's curve is not known: memory ran out.`;
  return p.curve ? words : `${words}The plan's curve was not recorded.`;
}
