// Small curves of the rows in view: asked for in one request, drawn once, and kept as long as the
// run does not change.

import { bytes, quantity } from "../../../lib/format";
import type { Run, Spark } from "../../../api";
import { svg } from "../../../views/dom";
import { get } from "../../api";

const most = 100,
  soonMs = 60,
  againMs = 150,
  seldomMs = 2_000,
  liveMs = 2_000;
const wide = 120,
  tall = 26;

export interface Sparks {
  /** The curve of a run as it is known now; null: it is not yet. */
  of(run: Run): SVGElement | null;
  /** Asks for those of the rows in view which are not known, or of runs that went on since. */
  want(runs: Run[]): void;
  close(): void;
}

/** arrived is told which runs have a new curve. */
export function sparks(arrived: (ids: string[]) => void): Sparks {
  const known = new Map<string, { mark: string; at: number; picture: SVGElement }>(),
    asking = new AbortController();
  let view: Run[] = [],
    timer = 0,
    busy = false,
    pause = againMs / 2,
    unanswered = new Set<string>();
  const mark = (run: Run) => `${run.state} ${run.size_bytes}`;
  const lacking = () =>
    view.filter((run) => {
      const has = known.get(run.id);
      return (
        !has ||
        (run.state === "running" ? performance.now() - has.at > liveMs : has.mark !== mark(run))
      );
    });
  const key = (run: Run) => `${run.id} ${run.state}`;
  /**
   * Whether all that lack a curve were asked for in vain: the server reads them, or is away. The
   * pause before they are asked for again grows.
   */
  const inVain = () => lacking().every((run) => unanswered.has(key(run)));
  const later = (ms: number) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void ask(), ms);
  };
  const ask = async (): Promise<void> => {
    const wanted = lacking().slice(0, most);
    timer = 0;
    if (busy || asking.signal.aborted) return;
    if (wanted.length > 0) {
      const missing = new Set(wanted.map(key));
      busy = true;
      try {
        const { sparks } = await get<{ sparks: Spark[] }>(
          `/sparks?${new URLSearchParams(wanted.map((run) => ["run", run.id]))}`,
          asking.signal,
        );
        const rows = new Map(wanted.map((run) => [run.id, run]));
        for (const spark of sparks) {
          const run = rows.get(spark.id);
          if (!run) continue;
          missing.delete(key(run));
          known.set(spark.id, {
            mark: mark(run),
            at: performance.now(),
            picture: drawn(spark, run),
          });
        }
        if (sparks.length) arrived(sparks.map((s) => s.id));
      } catch {
        /* the banner tells; the list is of use without them */
      }
      busy = false;
      unanswered = missing;
      pause = missing.size < wanted.length ? againMs : Math.min(2 * pause, seldomMs);
    }
    if (asking.signal.aborted) return;
    if (lacking().length > 0) later(inVain() ? pause : againMs);
    else if (view.some((run) => run.state === "running")) later(liveMs);
  };
  return {
    of: (run) => known.get(run.id)?.picture ?? null,
    want: (runs) => {
      view = runs;
      if (!busy && !(timer && inVain())) later(soonMs);
    },
    close: () => {
      asking.abort();
      clearTimeout(timer);
    },
  };
}

/** From the run's begin to its end, and from zero to its highest reading. */
function drawn(spark: Spark, run: Run): SVGElement {
  const end = Math.max(spark.x[spark.x.length - 1] ?? 0, 1),
    top = Math.max(1, ...spark.y),
    pad = 1.5;
  const points = spark.x.map(
    (x, i) =>
      `${((x / end) * wide).toFixed(1)} ` +
      `${(tall - pad - (spark.y[i]! / top) * (tall - 2 * pad)).toFixed(1)}`,
  );
  const line = points.length ? `M${points.join("L")}` : "",
    from = ((spark.x[0] ?? 0) / end) * wide;
  const picture = svg(
    "run-spark",
    wide,
    tall,
    ["area", line && `${line}L${wide} ${tall}L${from.toFixed(1)} ${tall}Z`],
    ["curve", line],
  );
  const said = points.length
    ? `${spark.title}${spark.of ? `, ${spark.of}` : ""}: ` +
      `at most ${spark.unit === "bytes" ? bytes(top) : quantity(top, spark.unit)}, ` +
      `${spark.label}${run.state === "running" ? ", so far" : ""}`
    : "No curve was recorded";
  picture.removeAttribute("aria-hidden");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", said);
  picture.dataset.of = /^(tree|host|process)\b|rss|pss/i.test(spark.name) ? "host" : "device";
  const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
  title.textContent = said;
  picture.prepend(title);
  return picture;
}
