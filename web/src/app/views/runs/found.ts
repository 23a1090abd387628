// Runs that are asked for by a finding or a line: the server looks, as rows do not have them.

import type { Run, RunList } from "../../../api";
import { count } from "../../../lib/format";
import { get, query } from "../../api";
import type { Query } from "../../runlist";

/** What was found of a search. */
export interface Found {
  runs: Map<string, Run>;
  said: string;
}

const most = 10_000;

export interface Finder {
  /** What the search finds; null: it asks for neither; undefined: the server is asked. */
  of(asked: Query): Found | null | undefined;
  /** Runs have changed: what is known is asked for anew, and shown until it is answered. */
  again(): void;
  close(): void;
}

/** The requests of a search: a finding and a line together are of one place. */
const requests = ({ finding, line }: Query): string[] =>
  (finding.length ? finding : [""]).flatMap((kind) =>
    (line.length ? line : [""]).map((at) =>
      query("/runs", { finding: kind, line: at, limit: most }),
    ),
  );

function joined(answers: RunList[]): Found {
  const [first, ...rest] = answers.map((a) => new Map(a.runs.map((r) => [r.id, r]))),
    runs = new Map([...first!].filter(([id]) => rest.every((r) => r.has(id)))),
    left = Math.max(...answers.map((a) => a.not_searched ?? 0));
  return {
    runs,
    said:
      left === 0
        ? ""
        : `${count(left)}${left >= 1000 ? " or more" : ""} not searched, ` +
          "as no findings and lines of them are kept (hightide reindex --findings)",
  };
}

/** done is called with each answer. */
export function finder(done: () => void): Finder {
  let key = "",
    known: Found | undefined,
    asking = new AbortController();
  const ask = (paths: string[]) => {
    asking.abort();
    const { signal } = (asking = new AbortController());
    Promise.all(paths.map((path) => get<RunList>(path, signal))).then(
      (answers) => {
        known = joined(answers);
        done();
      },
      (e: unknown) => {
        if (signal.aborted) return;
        known = { runs: new Map(), said: (e as Error).message };
        done();
      },
    );
  };
  return {
    of(asked) {
      if (asked.finding.length + asked.line.length === 0) return null;
      const paths = requests(asked);
      if (paths.join("\n") !== key) {
        key = paths.join("\n");
        known = undefined;
        ask(paths);
      }
      return known;
    },
    again: () => {
      if (key) ask(key.split("\n"));
    },
    close: () => asking.abort(),
  };
}
