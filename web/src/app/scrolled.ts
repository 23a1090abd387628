// Where a reader stood on each page of the history: Back, Forward and a reload show it there again.

interface Stood {
  y: number;
  rows: number;
} // of the window, and of a list that scrolls by itself

const settledMs = 700,
  longestMs = 10_000;
const list = () => document.querySelector<HTMLElement>(".rows");

/** The name of an entry of the history; a new one has none yet. */
const entry = (): string => (history.state as { entry?: string } | null)?.entry ?? "";

/** What a new entry of the history keeps. */
export const newEntry = () => ({ entry: `${Date.now()}-${Math.random()}` });

/** Remembers from now on; to be called before anything else follows the history. */
export function keepScroll(): void {
  let restoring: AbortController | null = null,
    waiting = 0;
  history.scrollRestoration = "manual";
  if (!entry()) history.replaceState(newEntry(), "");
  const save = () => {
    waiting = 0;
    if (!restoring)
      try {
        sessionStorage.setItem(
          `stood ${entry()}`,
          JSON.stringify({ y: scrollY, rows: list()?.scrollTop ?? 0 } satisfies Stood),
        );
      } catch {
        /* there is no room */
      }
  };
  addEventListener(
    "scroll",
    () => {
      waiting ||= requestAnimationFrame(save);
    },
    { capture: true, passive: true },
  );
  const restore = (back = true) => {
    restoring?.abort();
    const text = sessionStorage.getItem(`stood ${entry()}`);
    if (!text) {
      restoring = null;
      if (back) scrollTo({ top: 0, behavior: "instant" });
      return;
    } // a page that nobody stood on yet
    const to: Stood = JSON.parse(text) as Stood,
      mine = (restoring = new AbortController()),
      began = performance.now();
    const end = () => {
      mine.abort();
      if (restoring === mine) restoring = null;
    };
    for (const moves of ["wheel", "touchstart", "pointerdown", "keydown"])
      // the reader goes on
      addEventListener(moves, end, { capture: true, passive: true, signal: mine.signal });
    let tall = 0,
      since = began,
      put = -1;
    const again = () => {
      // what a page shows comes piece by piece
      if (mine.signal.aborted) return;
      const now = performance.now(),
        rows = list(),
        height = document.documentElement.scrollHeight + (rows?.scrollHeight ?? 0);
      if (height === tall && put >= 0 && Math.abs(scrollY - put) > 1) {
        end();
        return;
      } // something else scrolled it, as a search in the page
      if (height !== tall) [tall, since] = [height, now];
      if (rows && rows.scrollTop !== to.rows) rows.scrollTop = to.rows;
      if (scrollY !== to.y) scrollTo({ top: to.y, behavior: "instant" });
      put = scrollY;
      const there = Math.abs(scrollY - to.y) < 2 && Math.abs((rows?.scrollTop ?? 0) - to.rows) < 2;
      if ((there && now - since > settledMs) || now - began > longestMs) end();
      else requestAnimationFrame(again);
    };
    again();
  };
  addEventListener("popstate", () => restore());
  restore(false);
}
