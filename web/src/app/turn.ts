// Who may listen. A browser has six connections to a server, for all tabs together; those that
// listen leave two of them for all else.
//
//	hidden ──▶ waits until it is seen ──▶ waits for a place ──▶ listens ─┐
//	   ▲                         hidden, or another waits for its place │
//	   └────────────────────────────────────────────────────────────────┘
//
// Tabs know of each other by navigator.locks, and where a page has none, by tickets (tickets.ts).

import { drawnTickets, type Locks } from "./tickets";

export interface Turn {
  end(): void;
}

const places = 4,
  heldMs = 2_000,
  nameOf = (place: number) => `hightide-listens-${place}`;

/**
 * Begins when it is this page's turn, over and over until the end; the signal is given when a turn
 * has passed.
 */
export function turn(begin: (signal: AbortSignal) => void): Turn {
  const ending = new AbortController(),
    { signal } = ending;
  const listen = async (waited: () => Promise<boolean>) => {
    if (signal.aborted || document.hidden) return;
    const mine = new AbortController();
    begin(AbortSignal.any([mine.signal, signal]));
    const left = hidden(true, signal);
    do await after(heldMs, left);
    while (!signal.aborted && !document.hidden && !(await waited()));
    mine.abort();
  };
  const go = async () => {
    while (!signal.aborted) {
      await hidden(false, signal);
      if (!signal.aborted) await placed(listen, signal);
    }
  };
  void go().catch((e: unknown) => {
    if (!signal.aborted) throw e;
  });
  return { end: () => ending.abort() };
}

/** Runs with the place that the fewest wait for, and gives it back. */
async function placed(
  run: (waited: () => Promise<boolean>) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const locks = (navigator as { locks?: Locks }).locks ?? drawnTickets;
  const waiting = async (name: string) =>
    (await locks.query()).pending?.filter((l) => l.name === name).length ?? 0;
  const { held = [], pending = [] } = await locks.query(),
    names = Array.from({ length: places }, (_, i) => nameOf(i));
  const load = (name: string) => [...held, ...pending].filter((l) => l.name === name).length;
  const name = names.reduce((best, n) => (load(n) < load(best) ? n : best));
  await locks.request(name, { signal }, () => run(async () => (await waiting(name)) > 0));
}

/** Resolves once the page is hidden, or seen, or the signal is given. */
const hidden = (is: boolean, signal: AbortSignal) =>
  new Promise<void>((done) => {
    if (document.hidden === is || signal.aborted) return done();
    const over = new AbortController(),
      end = () => {
        if (document.hidden === is || signal.aborted) {
          over.abort();
          done();
        }
      };
    document.addEventListener("visibilitychange", end, { signal: over.signal });
    signal.addEventListener("abort", end, { signal: over.signal });
  });

/** Resolves after a time, or sooner with the other. */
const after = (ms: number, sooner: Promise<void>) => {
  let timer = 0;
  return Promise.race([
    sooner,
    new Promise<void>((done) => {
      timer = window.setTimeout(done, ms);
    }),
  ]).finally(() => clearTimeout(timer));
};
