// What the pointer does over the pictures of the tracks: it points, chooses a moment or a stretch,
// pans, and zooms with the wheel.

import type { Span } from "./look";

export interface Hand {
  seen(): Span;
  // where the pointer is, as a share of the width
  point(share: number | null, at: { x: number; y: number; plot: HTMLElement } | null): void;
  choose(time: number, plot: HTMLElement, y: number): void; // y: pixels from the top of the plot
  select(range: Span, done: boolean): void;
  pan(share: number): void;
  zoom(at: number, factor: number): boolean; // whether there was something to zoom
  fit(): void;
}

const slack = 4,
  wheelRestMs = 250;

const shareIn = (plot: HTMLElement, clientX: number): number => {
  const box = plot.getBoundingClientRect();
  return (clientX - box.left) / Math.max(box.width, 1);
};

/** The moment at a place of a plot. */
const timeIn = (does: Hand, plot: HTMLElement, clientX: number): number => {
  const [from, to] = does.seen();
  return from + Math.min(Math.max(shareIn(plot, clientX), 0), 1) * (to - from);
};

/** Listens on everything of the class plot within a root, until the signal. */
export function hand(root: HTMLElement, does: Hand, closed: AbortSignal): void {
  const plotOf = (e: Event) =>
    e.target instanceof Element ? e.target.closest<HTMLElement>(".plot") : null;
  const touches = new Map<number, number>();
  const drags = { now: false };
  let scrolled = 0,
    pointed: { x: number; y: number } | null = null; // on the screen
  const point = (plot: HTMLElement | null, at: { x: number; y: number }) =>
    does.point(
      plot && root.contains(plot) ? shareIn(plot, at.x) : null,
      plot && root.contains(plot) ? { ...at, plot } : null,
    );

  addEventListener(
    "scroll",
    () => {
      scrolled = performance.now();
      if (!drags.now && pointed)
        point(
          document.elementFromPoint(pointed.x, pointed.y)?.closest<HTMLElement>(".plot") ?? null,
          pointed,
        );
    },
    { signal: closed, passive: true },
  );
  root.addEventListener("pointermove", (e) => {
    if (drags.now) return;
    point(plotOf(e), (pointed = { x: e.clientX, y: e.clientY }));
  });
  root.addEventListener("pointerleave", () => {
    pointed = null;
    if (!drags.now) does.point(null, null);
  });
  root.addEventListener("auxclick", (e) => {
    if (plotOf(e)) e.preventDefault();
  });
  root.addEventListener("dblclick", (e) => {
    if (plotOf(e)) does.fit();
  });

  root.addEventListener("pointerdown", (e) => {
    const plot = plotOf(e);
    if (plot && e.button <= 1) pressed(root, plot, e, touches, does, drags, closed);
  });

  root.addEventListener(
    "wheel",
    (e) => {
      const plot = plotOf(e);
      if (!plot) return;
      const forced = e.ctrlKey || e.metaKey;
      // the page was being scrolled, and the tracks only came under the pointer
      if (!forced && performance.now() - scrolled < wheelRestMs) return;
      if (turned(e, plot, does) || forced) e.preventDefault();
    },
    { passive: false },
  );
}

/** What follows a pressed button or a finger: until it is let go, it pans, zooms or chooses. */
function pressed(
  root: HTMLElement,
  plot: HTMLElement,
  e: PointerEvent,
  touches: Map<number, number>, // where each finger is
  does: Hand,
  drags: { now: boolean },
  closed: AbortSignal,
): void {
  if (e.pointerType === "touch") {
    touches.set(e.pointerId, e.clientX);
    if (touches.size > 1) return;
  } else e.preventDefault();
  root.querySelector<HTMLElement>(".tracks")?.focus({ preventScroll: true });
  plot.setPointerCapture(e.pointerId);
  const begun = timeIn(does, plot, e.clientX),
    pans = e.button === 1 || e.shiftKey || e.pointerType === "touch";
  let last = e.clientX,
    moved = false,
    apart = 0;
  const drag = (m: PointerEvent) => {
    if (m.pointerType === "touch") {
      touches.set(m.pointerId, m.clientX);
      if (touches.size === 2) {
        // two fingers zoom between them
        const [a = 0, b = 0] = [...touches.values()],
          now = Math.abs(a - b);
        if (apart > 0 && now > 0) does.zoom(timeIn(does, plot, (a + b) / 2), apart / now);
        apart = now;
        last = m.clientX;
        moved = true;
        return;
      }
    }
    if (m.pointerId !== e.pointerId || (!moved && Math.abs(m.clientX - e.clientX) < slack)) return;
    moved = drags.now = true;
    if (pans) {
      does.pan((last - m.clientX) / Math.max(plot.clientWidth, 1));
      last = m.clientX;
      return;
    }
    const share = shareIn(plot, m.clientX),
      now = timeIn(does, plot, m.clientX);
    does.point(share, null);
    does.select([Math.min(begun, now), Math.max(begun, now)], false);
  };
  const up = (m: PointerEvent) => {
    touches.delete(m.pointerId);
    if (m.pointerId !== e.pointerId) return;
    removeEventListener("pointermove", drag);
    removeEventListener("pointerup", up);
    removeEventListener("pointercancel", up);
    drags.now = false;
    if (!moved && m.type === "pointerup")
      does.choose(begun, plot, e.clientY - plot.getBoundingClientRect().top);
    else if (moved && !pans) {
      const now = timeIn(does, plot, m.clientX);
      does.select([Math.min(begun, now), Math.max(begun, now)], true);
    }
  };
  addEventListener("pointermove", drag, { signal: closed });
  addEventListener("pointerup", up, { signal: closed });
  addEventListener("pointercancel", up, { signal: closed });
}

/** The wheel pans sideways and else zooms; false: there was nothing left to zoom out of. */
function turned(e: WheelEvent, plot: HTMLElement, does: Hand): boolean {
  const unit = e.deltaMode === 1 ? 16 : 1,
    sideways = e.shiftKey
      ? e.deltaX || e.deltaY
      : Math.abs(e.deltaX) > Math.abs(e.deltaY)
        ? e.deltaX
        : 0;
  if (sideways) {
    does.pan((sideways * unit) / Math.max(plot.clientWidth, 1));
    return true;
  }
  return does.zoom(
    timeIn(does, plot, e.clientX),
    Math.exp(Math.min(Math.max(e.deltaY * unit, -200), 200) / 300),
  );
}
