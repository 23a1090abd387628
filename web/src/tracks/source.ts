// What tracks are drawn from: curves, phases, steps and events of one run. It is all there, as in a
// report, or it grows.

import type { Host, Mark, PhaseBar, Process, Report, StepPoint } from "../api";
import { exclusive, stripped, type Stay } from "../lib/phases";
import { leader, span } from "../state/report";
import type { Span } from "./look";
import { curveOf, isInner, type Curve } from "./model";

export interface Source {
  curves: Curve[];
  stays: Map<number, Stay[]>; // phases of each process that has some, in ns, one at a time
  steps: Map<number, StepPoint[]>;
  // of how many steps of a process the phases were recorded, where that was said
  observed: Map<number, [recorded: number, all: number]>;
  selected: boolean; // the phases are an even selection of the steps of a long run
  whole: Span | null; // a stretch of which all phases are known nevertheless
  marks: Mark[];
  processes: Process[];
  host: Partial<Host>;
  lead: number; // the process that leads the training
  main: string; // the quantity that the report leads with
  end: number;
  live: boolean;
  /** Called after something has come; `list`: there may be other tracks now. */
  changed: (list: boolean) => void;
  /**
   * Asks for all there is of a stretch, and of these curves, which are known coarsely there. Absent
   * where there is no more to know.
   */
  refine?: (stretch: Span, curves: Curve[]) => void;
}

export const emptySource = (): Source => ({
  curves: [],
  stays: new Map(),
  steps: new Map(),
  observed: new Map(),
  selected: false,
  whole: null,
  marks: [],
  processes: [],
  host: {},
  lead: 0,
  main: "",
  end: 0,
  live: false,
  changed: () => {},
});

/** What belongs to a report beside its curves. */
export function setFacts(source: Source, report: Report): void {
  source.processes = report.processes;
  source.host = report.run.host;
  source.lead = leader(report, 0);
  source.main = report.headline.main_source ?? "";
  source.marks = report.marks.filter((m) => m.kind !== "peak");
  source.selected =
    new Set(report.phases.filter((p) => p.process === source.lead).map((p) => p.step)).size <
    report.headline.steps;
  source.observed = observedSteps(report);
  setPhases(source, report.phases);
  setSteps(source, report.steps);
}

/** Of how many of its steps each process told the phases, as the table of phases counts them. */
function observedSteps(report: Report): Source["observed"] {
  const table = report.tables.find((t) => t.name === "phases"),
    at = (name: string) => table?.columns.findIndex((c) => c.name === name) ?? -1;
  const [phase, process, n] = [at("phase"), at("process_id"), at("count")],
    lead = leader(report, 0);
  return new Map(
    (table?.rows ?? []).flatMap((r): [number, [number, number]][] =>
      r[phase] === "step" && typeof r[process] === "number" && typeof r[n] === "number"
        ? [
            [
              r[process],
              [
                r[n],
                r[process] === lead
                  ? report.headline.steps
                  : report.steps.filter((s) => s.process === r[process]).length,
              ],
            ],
          ]
        : [],
    ),
  );
}

const stayOf = ({ phase, name, start_ns, end_ns }: PhaseBar): Stay => ({
  phase,
  from: start_ns,
  to: end_ns,
  ...(phase === "user" && name ? { name } : {}),
});

/** The phases of each process, cut so that they do not overlap. */
export function setPhases(source: Source, phases: PhaseBar[]): void {
  source.stays = new Map(
    [...byProcess(stripped(phases))].map(([process, all]) => [process, exclusive(all.map(stayOf))]),
  );
}

export function setSteps(source: Source, steps: StepPoint[]): void {
  source.steps = byProcess(steps);
  for (const all of source.steps.values()) all.sort((a, b) => a.time_ns - b.time_ns);
}

/** Whether all phases of a stretch are known. */
export const phasesKnown = ({ selected, whole }: Source, [from, to]: Span): boolean =>
  !selected || (whole !== null && whole[0] <= from && whole[1] >= to);

function byProcess<T extends { process: number }>(all: T[]): Map<number, T[]> {
  const found = new Map<number, T[]>();
  for (const one of all) {
    const list = found.get(one.process);
    if (list) list.push(one);
    else found.set(one.process, [one]);
  }
  return found;
}

/** The source that a report carries. */
export function reportSource(report: Report): Source {
  const source = emptySource();
  setFacts(source, report);
  source.curves = report.series
    .filter((s) => s.x_unit === "ns" && s.x.length > 0 && !isInner(s.name))
    .map((s) => {
      const curve = curveOf(s);
      curve.readings.replace(s, false);
      return curve;
    });
  source.end = span(report)[1];
  return source;
}
