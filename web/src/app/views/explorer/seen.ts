// What is not looked at is not asked for: a panel asks once it has come into view, and then when
// what it shows has rested.

import type { Board } from "./board";

/** Asks as soon as the panel is in view; again() is for when something changed. */
export function whenSeen(
  { closed }: Board,
  restMs: number,
  ask: () => void,
): { watch(panel: HTMLElement): void; again(): void } {
  let seen = false,
    waiting = 0;
  const again = () => {
    clearTimeout(waiting);
    if (seen)
      waiting = window.setTimeout(() => {
        if (!closed.aborted) ask();
      }, restMs);
  };
  return {
    again,
    watch: (panel) => {
      const watch = new IntersectionObserver(
        ([e]) => {
          if (!e?.isIntersecting) return;
          watch.disconnect();
          seen = true;
          again();
        },
        { rootMargin: "200px" },
      );
      watch.observe(panel);
      closed.addEventListener("abort", () => watch.disconnect());
    },
  };
}
