// The tracks of a run's page: its history in a selection, all of a stretch that is looked at, and
// what comes while it is recorded.

import type { CurveList, Mark, PhaseBar, Report, StepPoint } from "../../../api";
import { branch, store, type Store } from "../../../state/store";
import { tracks } from "../../../tracks";
import { layoutOf, paramsOf, type Layout } from "../../../tracks/layout";
import { seen, type Span } from "../../../tracks/look";
import { curveOf, isInner, type Curve } from "../../../tracks/model";
import { emptySource, phasesKnown, setFacts, setPhases, setSteps } from "../../../tracks/source";
import { get, query } from "../../api";
import { givenUp } from "../../parts";
import type { App } from "../../state";
import type { CurveHead, Feed, Live } from "./feed";
import type { Part } from "./part";

const mostPoints = 300_000,
  pointsAtMost = 1500,
  pointsAtLeast = 150,
  finePoints = 3000,
  mostSpans = 20_000,
  keptSpans = 20_000;

export function tracksPart(feed: Feed, app: App): Part {
  const history = new History(feed, app),
    { made } = history;
  return {
    element: history.holder,
    keys: made.keys,
    commands: made.commands,
    ready: history.begin(),
    close: () => history.close(),
  };
}

/** The history of a run, as its tracks have it. */
class History {
  readonly source = emptySource();
  readonly holder: HTMLElement;
  readonly made: ReturnType<typeof tracks>;
  private readonly curves = new Map<number, Curve>();
  private readonly layout: Store<Layout>;
  private spans: PhaseBar[] = [];
  private steps: StepPoint[] = [];
  private asked = new AbortController();
  private phasesAsked = new AbortController();
  private report: Report | null = null;
  private detail: { spans: PhaseBar[]; of: Span } | null = null;
  private spansUntil = 0;
  private readonly feed: Feed;
  private readonly app: App;

  constructor(feed: Feed, app: App) {
    [this.feed, this.app] = [feed, app];
    this.layout = layoutInAddress(app);
    this.made = tracks(this.source, app, this.layout);
    this.holder = this.made.element;
    this.holder.hidden = true;
    this.source.refine = this.refine;
    feed.report((newest) => this.told(newest));
    feed.on("series", (heads) => {
      for (const head of heads) this.curve(head);
    });
    feed.on("processes", (all) => {
      const now = new Map(this.source.processes.map((p) => [p.id, p]));
      for (const p of all) now.set(p.id, p);
      this.source.processes = [...now.values()];
      this.changed(true);
    });
    feed.on("samples", (all) => this.samples(all));
    feed.on("spans", (all) => {
      this.spans = [...this.spans, ...all].slice(-keptSpans);
      const before = this.source.stays.size;
      this.phases();
      this.changed(this.source.stays.size !== before);
    });
    feed.on("steps", (all) => {
      this.steps = [...this.steps, ...all].slice(-keptSpans);
      setSteps(this.source, this.steps);
      this.changed(false);
    });
    feed.on("marks", (all) => {
      this.source.marks = joined(
        this.source.marks,
        all.filter((m) => m.kind !== "peak"),
      );
      this.changed(true);
    });
    feed.on("end", () => {
      this.source.live = false;
      this.changed(false);
    });
  }

  /** Reads it once the run is known to go on or not; ends when it is there, or cannot be read. */
  begin(): Promise<void> {
    return new Promise((came) => {
      this.feed.begin((live) => {
        this.source.live = live;
        void this.history().catch(this.quiet).finally(came);
      });
    });
  }

  close(): void {
    this.asked.abort();
    this.phasesAsked.abort();
    this.made.close();
  }

  private changed(list: boolean) {
    this.holder.hidden = this.source.curves.length === 0;
    this.source.changed(list);
  }

  private curve(head: CurveHead): Curve | null {
    if (isInner(head.name)) return null;
    const known = this.curves.get(head.series);
    if (known) return known;
    const fresh = curveOf(head);
    this.curves.set(head.series, fresh);
    this.source.curves.push(fresh);
    return fresh;
  }

  private readonly points = () =>
    Math.round(
      Math.min(Math.max(mostPoints / Math.max(this.curves.size, 20), pointsAtLeast), pointsAtMost),
    );

  private async history(): Promise<void> {
    const wanted = this.points(),
      got = await get<CurveList>(
        query(`${this.feed.path}/series`, { points: wanted }),
        this.feed.closed,
      );
    // the lowest and the highest of a part may be one, so that a selection can have far fewer
    // points than it may
    for (const s of got.series) this.curve(s)?.readings.replace(s, s.x.length >= wanted / 8);
    this.source.end = Math.max(this.source.end, got.at_ns);
    this.settle();
    this.changed(true);
    this.refineNow();
  }

  /** A report corrects the proportional set size of the tree by what is known later. */
  private settle() {
    for (const s of this.source.live ? [] : (this.report?.series ?? [])) {
      const c =
        s.name === "tree.pss" && !s.process && this.source.curves.find((o) => o.name === s.name);
      if (c) c.readings.replace(s, false);
    }
  }

  private refineNow() {
    const stretch = seen(
      { window: this.app.get().window, last: this.layout.get().last },
      this.source.end,
    );
    this.source.refine?.(
      stretch,
      this.source.curves.filter((c) => c.readings.wants(stretch)),
    );
  }

  /**
   * What a question about a stretch asks for: some more, so that a little panning needs no other.
   */
  private around([from, to]: Span): Span {
    const room = (to - from) / 2;
    return [Math.max(0, Math.floor(from - room)), Math.ceil(Math.min(to + room, this.source.end))];
  }

  private readonly refine = (stretch: Span, rough: Curve[]) => {
    // the whole run is known as finely as it is drawn
    if (stretch[0] <= 0 && stretch[1] >= this.source.end) return;
    if (rough.length > 0) this.finer(this.around(stretch), [...new Set(rough.map((c) => c.name))]);
    if (!phasesKnown(this.source, [stretch[0], Math.min(stretch[1], this.spansUntil)]))
      this.morePhases(this.around(stretch));
  };

  private finer(wide: Span, names: string[]) {
    this.asked.abort();
    this.asked = new AbortController();
    const words = new URLSearchParams([
      ...names.map((n) => ["name", n]),
      ["from_ns", String(wide[0])],
      ["to_ns", String(wide[1])],
      ["points", String(finePoints)],
    ]);
    void get<CurveList>(
      `${this.feed.path}/series?${words}`,
      AbortSignal.any([this.asked.signal, this.feed.closed]),
    ).then((got) => {
      for (const s of got.series) this.curve(s)?.readings.refine(s, ...wide);
      this.changed(false);
    }, this.quiet);
  }

  private morePhases(wide: Span) {
    this.phasesAsked.abort();
    this.phasesAsked = new AbortController();
    void get<{ spans: PhaseBar[]; more?: boolean }>(
      query(`${this.feed.path}/spans`, { from_ns: wide[0], to_ns: wide[1], limit: mostSpans }),
      AbortSignal.any([this.phasesAsked.signal, this.feed.closed]),
    ).then((got) => {
      if (got.more) return; // more than could be told apart: the selection stands
      this.detail = { spans: got.spans, of: wide };
      this.phases();
      this.changed(true);
    }, this.quiet);
  }

  /**
   * The phases that are known: of a stretch that was asked for all, else the report's selection and
   * what came since.
   */
  private phases() {
    const of = this.detail?.of;
    this.source.whole = of ?? null;
    setPhases(
      this.source,
      of
        ? [
            ...this.spans.filter((s) => s.end_ns < of[0] || s.start_ns > of[1]),
            ...this.detail!.spans,
          ]
        : this.spans,
    );
  }

  private readonly quiet = (e: unknown) => {
    if (!givenUp(e)) console.info("the finer readings could not be fetched", e);
  };

  private told(newest: Report): void {
    this.report = newest;
    const late = newest.phases.reduce((t, p) => Math.max(t, p.end_ns), 0),
      lateStep = newest.steps.reduce((t, s) => Math.max(t, s.time_ns), 0),
      marks = this.source.marks;
    setFacts(this.source, newest);
    this.source.marks = joined(this.source.marks, marks);
    this.spans = [...newest.phases, ...this.spans.filter((s) => s.start_ns > late)];
    this.spansUntil = late; // what came since came whole
    this.steps = [...newest.steps, ...this.steps.filter((s) => s.time_ns > lateStep)];
    this.phases();
    setSteps(this.source, this.steps);
    this.source.end = Math.max(this.source.end, newest.headline.duration_ns);
    if (!this.source.live) this.settle();
    this.changed(true);
    this.refineNow();
  }

  private samples(all: Live["samples"]): void {
    let list = false;
    for (const { series, x, y } of all) {
      const c = this.curves.get(series);
      if (!c) continue;
      list ||= c.readings.shown.x.length === 0;
      c.readings.append({ x, y });
      this.source.end = Math.max(this.source.end, x.at(-1) ?? 0);
    }
    this.changed(list);
  }
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
