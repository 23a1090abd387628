// What the parts of a run's page are fed with: its row, its report, and the events of its live
// stream while it is recorded.
//
//	GET /runs/ID ──▶ row ──▶ begin          of a run that has ended
//	                  └────▶ live ──▶ state ──▶ begin, then series, processes, samples, …, end
//	GET /runs/ID/report ──▶ report          again as the stream says that there is more to say

import type { Curve, Mark, PhaseBar, Process, Report, Run, StepPoint } from "../../../api";
import { complete } from "../../../state/report";
import { get, Problem, report as fetchReport } from "../../api";
import { givenUp } from "../../parts";
import { stream } from "../../stream";

/** A curve without its points. */
export type CurveHead = Omit<Curve, "x" | "y">;

/** The events of the stream; docs/formats/api.md says when each comes. */
export interface Live {
  state: Run & { at_ns: number; resync: boolean };
  series: CurveHead[];
  processes: Process[];
  samples: { series: number; x: number[]; y: number[] }[];
  spans: PhaseBar[];
  steps: StepPoint[];
  marks: Mark[];
  output: { at: number; next: number; text: string };
  report: { at_ns: number };
  end: Run & { reason: string; text: string };
}

export interface Feed {
  id: string;
  path: string; // /runs/ID, of the API
  closed: AbortSignal; // the page is gone: what is asked for with it is given up
  /** Calls with the report as soon as it is there, and again when there is a newer one. */
  report(then: (report: Report) => void): void;
  /**
   * Calls when what was before can be fetched: once of a run that has ended; of a live one after
   * each `state`, so again after a gap.
   */
  begin(then: (live: boolean) => void): void;
  on<K extends keyof Live>(event: K, then: (data: Live[K]) => void): void;
}

const events: (keyof Live)[] = [
  "state",
  "series",
  "processes",
  "samples",
  "spans",
  "steps",
  "marks",
  "output",
  "report",
  "end",
];

/** Told where the run stands: `failed` comes with what asks again. */
export interface Standing {
  live(): void;
  ended(text: string): void;
  gone(): void;
  failed(problem: unknown, again: () => void): void;
  shown(report: Report): void;
}

/**
 * A report whose fields are those of the one before where they say the same: panels tell by that
 * what is new, and none keeps an old report alive.
 */
function sharing(report: Report, before: Report): Report {
  const same = Object.keys(report).filter(
    (key) =>
      JSON.stringify(report[key as keyof Report]) === JSON.stringify(before[key as keyof Report]),
  );
  return {
    ...report,
    ...Object.fromEntries(same.map((key) => [key, before[key as keyof Report]])),
  };
}

type Heard = Record<keyof Live, ((data: never) => void)[]>;

/** What hands each event on to those who hear it. */
const telling = (heard: Heard): Record<string, (data: never) => void> =>
  Object.fromEntries(
    events.map((name) => [
      name,
      (data: never) => {
        for (const then of heard[name]) then(data);
      },
    ]),
  );

/** Hears whether a run that has ended is removed; returns what ends that. */
const removal = (id: string, path: string, gone: () => void): (() => void) =>
  stream(
    "/live",
    path,
    {
      runs: ({ removed }: { removed: string[] | null }) => {
        if (removed?.includes(id)) gone();
      },
    },
    gone,
  ).close;

/**
 * Asks and listens until close; parts are told what they asked for in the order in which they
 * asked.
 */
export function feed(id: string, standing: Standing): Feed & { start(): void; close(): void } {
  const path = `/runs/${encodeURIComponent(id)}`,
    asking = new AbortController();
  const reports: ((report: Report) => void)[] = [],
    begins: ((live: boolean) => void)[] = [];
  const heard = Object.fromEntries(events.map((name) => [name, []])) as unknown as Heard;
  let sequence = 0,
    newest: Report | null = null,
    closing = () => {},
    unread = false;

  const load = async (): Promise<void> => {
    const mine = ++sequence;
    try {
      const raw = await fetchReport(id, asking.signal);
      if (mine !== sequence) return;
      newest = newest ? sharing(complete(raw), newest) : complete(raw);
      standing.shown(newest);
      for (const then of reports) then(newest);
    } catch (problem) {
      if (!givenUp(problem) && mine === sequence)
        standing.failed(problem, () => {
          void load();
          if (unread) row();
        });
    }
  };
  const row = (): void => {
    unread = false;
    void get<Run>(path, asking.signal).then(
      (row) => {
        if (asking.signal.aborted) return;
        if (row.state === "running") follow();
        else {
          for (const then of begins) then(false);
          closing = removal(row.id, path, standing.gone);
        }
      },
      (problem: unknown) => {
        if (asking.signal.aborted) return;
        // it is asked for again together with the report
        unread = problem instanceof Problem && problem.status === 503;
        // parts that fail too have then been asked
        if (!unread) for (const then of begins) then(false);
      },
    );
  };
  const follow = () => {
    standing.live();
    heard.state.push(() => {
      for (const then of begins) then(true);
    });
    heard.report.push(() => void load());
    heard.end.push(({ text }: Live["end"]) => {
      standing.ended(text);
      void load();
    });
    ({ close: closing } = stream(`${path}/live`, path, telling(heard), standing.gone));
  };
  return {
    id,
    path,
    closed: asking.signal,
    report: (then) => {
      reports.push(then);
      if (newest) then(newest);
    },
    begin: (then) => void begins.push(then),
    on: (event, then) => void heard[event].push(then as (data: never) => void),
    start: () => {
      void load();
      row();
    },
    close: () => {
      asking.abort();
      closing();
    },
  };
}
