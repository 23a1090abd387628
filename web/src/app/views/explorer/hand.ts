// What the pointer does on the picture: the wheel zooms where it points, a drag pans, a click
// picks.

import type { Picture } from "./picture";
import { moved, zoomed, type Range, type Shape } from "./tile";

interface Both {
  events: Range;
  bytes: Range;
}

export interface Wants {
  look(): Both;
  whole(): Both;
  moveTo(to: Partial<Both>): void;
  over(shape: Shape | undefined, x: number, y: number): void;
  pick(point: number, bytes: number, shape: Shape | undefined): void;
}

const leastEvents = 8,
  leastBytes = 4096;

export function hand(on: Picture, wants: Wants, closed: AbortSignal): void {
  const { canvas } = on;
  let from: { x: number; y: number; look: Both; moved: boolean } | null = null;
  canvas.addEventListener(
    "wheel",
    (e) => {
      e.preventDefault();
      const { point, bytes } = on.place(e.offsetX, e.offsetY),
        { events, bytes: high } = wants.look(),
        factor = Math.exp((e.deltaY || e.deltaX) * 0.0015);
      if (e.shiftKey) wants.moveTo({ bytes: hand.tall(high, bytes, factor, wants.whole().bytes) });
      else wants.moveTo({ events: hand.zoom(events, point, factor, wants.whole().events) });
    },
    { passive: false },
  );
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button === 0) {
      from = { x: e.offsetX, y: e.offsetY, look: wants.look(), moved: false };
      canvas.setPointerCapture(e.pointerId);
    }
  });
  canvas.addEventListener("pointermove", (e) => {
    if (!from) {
      wants.over(on.place(e.offsetX, e.offsetY).shape, e.offsetX, e.offsetY);
      return;
    }
    const dx = e.offsetX - from.x,
      dy = e.offsetY - from.y,
      { events, bytes } = from.look,
      whole = wants.whole();
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    from.moved = true;
    wants.over(undefined, 0, 0);
    wants.moveTo({
      events: moved(events, (-dx / canvas.clientWidth) * (events[1] - events[0]), whole.events),
      bytes: moved(bytes, (dy / canvas.clientHeight) * (bytes[1] - bytes[0]), whole.bytes),
    });
  });
  canvas.addEventListener("pointerup", (e) => {
    if (from && !from.moved) {
      const { point, bytes, shape } = on.place(e.offsetX, e.offsetY);
      wants.pick(point, bytes, shape);
    }
    from = null;
  });
  canvas.addEventListener("pointercancel", () => {
    from = null;
  });
  let pointed: { x: number; y: number } | null = null; // on the screen
  canvas.addEventListener("pointermove", (e) => {
    pointed = { x: e.clientX, y: e.clientY };
  });
  const leave = () => {
    pointed = null;
    wants.over(undefined, 0, 0);
  };
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (e) => {
    if (e.key === "Escape") leave();
  });
  addEventListener(
    "scroll",
    () => {
      // something else is under the pointer now, or nothing
      if (!pointed || from) return;
      const { left, top, width, height } = canvas.getBoundingClientRect(),
        x = pointed.x - left,
        y = pointed.y - top;
      if (x < 0 || y < 0 || x > width || y > height) leave();
      else wants.over(on.place(x, y).shape, x, y);
    },
    { passive: true, signal: closed },
  );
}

/** A window of events that is so much longer or shorter. */
hand.zoom = (events: Range, point: number, factor: number, whole: Range): Range =>
  zoomed(events, point, factor, whole, Math.min(leastEvents, whole[1]));
/** A window from one place to another, not too short and inside the whole. */
hand.span = ([from, to]: Range, whole: Range): Range =>
  moved(
    to - from < leastEvents
      ? [(from + to - leastEvents) / 2, (from + to + leastEvents) / 2]
      : [from, to],
    0,
    whole,
  );
/** The same of bytes. */
hand.tall = (bytes: Range, place: number, factor: number, whole: Range): Range =>
  zoomed(bytes, place, factor, whole, leastBytes);
