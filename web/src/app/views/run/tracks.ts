// The tracks of a run's page: its history in a selection, all of a stretch that is looked at, and
// what comes while it is recorded.

import type { CurveList, Mark, PhaseBar, Report, StepPoint } from "../../../api";
import { branch, store } from "../../../state/store";
import { tracks } from "../../../tracks";
import { layoutOf, paramsOf, type Layout } from "../../../tracks/layout";
import { seen, type Span } from "../../../tracks/look";
import { curveOf, isInner, type Curve } from "../../../tracks/model";
import { emptySource, phasesKnown, setFacts, setPhases, setSteps } from "../../../tracks/source";
import { get, query } from "../../api";
import { givenUp } from "../../parts";
import type { App } from "../../state";
import type { CurveHead, Feed } from "./feed";
import type { Part } from "./part";

const mostPoints = 300_000,
  pointsAtMost = 1500,
  pointsAtLeast = 150,
  finePoints = 3000,
  mostSpans = 20_000,
  keptSpans = 20_000;

export function tracksPart(feed: Feed, app: App): Part {
  const source = emptySource(),
    curves = new Map<number, Curve>(),
    layout = layoutInAddress(app);
  let spans: PhaseBar[] = [],
    steps: StepPoint[] = [],
    asked = new AbortController(),
    phasesAsked = new AbortController(),
    report: Report | null = null,
    detail: { spans: PhaseBar[]; of: Span } | null = null,
    spansUntil = 0;
  const made = tracks(source, app, layout),
    holder = made.element;
  holder.hidden = true;
  const changed = (list: boolean) => {
    holder.hidden = source.curves.length === 0;
    source.changed(list);
  };

  const curve = (head: CurveHead): Curve | null => {
    if (isInner(head.name)) return null;
    const known = curves.get(head.series);
    if (known) return known;
    const fresh = curveOf(head);
    curves.set(head.series, fresh);
    source.curves.push(fresh);
    return fresh;
  };
  const points = () =>
    Math.round(
      Math.min(Math.max(mostPoints / Math.max(curves.size, 20), pointsAtLeast), pointsAtMost),
    );
  const history = async (): Promise<void> => {
    const wanted = points(),
      got = await get<CurveList>(query(`${feed.path}/series`, { points: wanted }), feed.closed);
    // the lowest and the highest of a part may be one, so that a selection can have far fewer
    // points than it may
    for (const s of got.series) curve(s)?.readings.replace(s, s.x.length >= wanted / 8);
    source.end = Math.max(source.end, got.at_ns);
    settle();
    changed(true);
    refineNow();
  };
  /** A report corrects the proportional set size of the tree by what is known later. */
  const settle = () => {
    for (const s of source.live ? [] : (report?.series ?? [])) {
      const c = s.name === "tree.pss" && !s.process && source.curves.find((o) => o.name === s.name);
      if (c) c.readings.replace(s, false);
    }
  };
  const refineNow = () => {
    const stretch = seen({ window: app.get().window, last: layout.get().last }, source.end);
    source.refine?.(
      stretch,
      source.curves.filter((c) => c.readings.wants(stretch)),
    );
  };
  /**
   * What a question about a stretch asks for: some more, so that a little panning needs no other.
   */
  const around = ([from, to]: Span): Span => {
    const room = (to - from) / 2;
    return [Math.max(0, Math.floor(from - room)), Math.ceil(Math.min(to + room, source.end))];
  };

  source.refine = (stretch: Span, rough: Curve[]) => {
    // the whole run is known as finely as it is drawn
    if (stretch[0] <= 0 && stretch[1] >= source.end) return;
    if (rough.length > 0) finer(around(stretch), [...new Set(rough.map((c) => c.name))]);
    if (!phasesKnown(source, [stretch[0], Math.min(stretch[1], spansUntil)]))
      morePhases(around(stretch));
  };
  const finer = (wide: Span, names: string[]) => {
    asked.abort();
    asked = new AbortController();
    const words = new URLSearchParams([
      ...names.map((n) => ["name", n]),
      ["from_ns", String(wide[0])],
      ["to_ns", String(wide[1])],
      ["points", String(finePoints)],
    ]);
    void get<CurveList>(
      `${feed.path}/series?${words}`,
      AbortSignal.any([asked.signal, feed.closed]),
    ).then((got) => {
      for (const s of got.series) curve(s)?.readings.refine(s, ...wide);
      changed(false);
    }, quiet);
  };
  const morePhases = (wide: Span) => {
    phasesAsked.abort();
    phasesAsked = new AbortController();
    void get<{ spans: PhaseBar[]; more?: boolean }>(
      query(`${feed.path}/spans`, { from_ns: wide[0], to_ns: wide[1], limit: mostSpans }),
      AbortSignal.any([phasesAsked.signal, feed.closed]),
    ).then((got) => {
      if (got.more) return; // more than could be told apart: the selection stands
      detail = { spans: got.spans, of: wide };
      phases();
      changed(true);
    }, quiet);
  };
  /**
   * The phases that are known: of a stretch that was asked for all, else the report's selection and
   * what came since.
   */
  const phases = () => {
    const of = detail?.of;
    source.whole = of ?? null;
    setPhases(
      source,
      of
        ? [...spans.filter((s) => s.end_ns < of[0] || s.start_ns > of[1]), ...detail!.spans]
        : spans,
    );
  };
  const quiet = (e: unknown) => {
    if (!givenUp(e)) console.info("the finer readings could not be fetched", e);
  };

  let came = () => {};
  const ready = new Promise<void>((done) => {
    came = done;
  });
  feed.begin((live) => {
    source.live = live;
    void history().catch(quiet).finally(came);
  });
  feed.report((newest) => {
    report = newest;
    const late = newest.phases.reduce((t, p) => Math.max(t, p.end_ns), 0),
      lateStep = newest.steps.reduce((t, s) => Math.max(t, s.time_ns), 0),
      marks = source.marks;
    setFacts(source, newest);
    source.marks = joined(source.marks, marks);
    spans = [...newest.phases, ...spans.filter((s) => s.start_ns > late)];
    spansUntil = late; // what came since came whole
    steps = [...newest.steps, ...steps.filter((s) => s.time_ns > lateStep)];
    phases();
    setSteps(source, steps);
    source.end = Math.max(source.end, newest.headline.duration_ns);
    if (!source.live) settle();
    changed(true);
    refineNow();
  });
  feed.on("series", (heads) => {
    for (const head of heads) curve(head);
  });
  feed.on("processes", (all) => {
    const now = new Map(source.processes.map((p) => [p.id, p]));
    for (const p of all) now.set(p.id, p);
    source.processes = [...now.values()];
    changed(true);
  });
  feed.on("samples", (all) => {
    let list = false;
    for (const { series, x, y } of all) {
      const c = curves.get(series);
      if (!c) continue;
      list ||= c.readings.shown.x.length === 0;
      c.readings.append({ x, y });
      source.end = Math.max(source.end, x.at(-1) ?? 0);
    }
    changed(list);
  });
  feed.on("spans", (all) => {
    spans = [...spans, ...all].slice(-keptSpans);
    const before = source.stays.size;
    phases();
    changed(source.stays.size !== before);
  });
  feed.on("steps", (all) => {
    steps = [...steps, ...all].slice(-keptSpans);
    setSteps(source, steps);
    changed(false);
  });
  feed.on("marks", (all) => {
    source.marks = joined(
      source.marks,
      all.filter((m) => m.kind !== "peak"),
    );
    changed(true);
  });
  feed.on("end", () => {
    source.live = false;
    changed(false);
  });
  return {
    element: holder,
    keys: made.keys,
    commands: made.commands,
    ready,
    close: () => {
      asked.abort();
      phasesAsked.abort();
      made.close();
    },
  };
}

/** Events of both, each once. */
function joined(a: Mark[], b: Mark[]): Mark[] {
  const all = new Map(
    [...a, ...b].map((m) => [`${m.time_ns} ${m.kind} ${m.process ?? 0} ${m.text}`, m]),
  );
  return [...all.values()].sort((x, y) => x.time_ns - y.time_ns);
}

/** The layout as the address has it: a change of one is a change of the other. */
function layoutInAddress(app: App) {
  const layout = branch(store<Layout>(layoutOf(app.get().params)));
  layout.follow(["pins", "open", "fit", "last", "by", "find"], (now) => {
    const params = paramsOf(now, app.get().params);
    if (JSON.stringify(params) !== JSON.stringify(app.get().params)) app.set({ params });
  });
  app.follow(["params"], ({ params }) => {
    const next = layoutOf(params);
    if (JSON.stringify(next) !== JSON.stringify(layout.get())) layout.set(next);
  });
  return layout;
}
