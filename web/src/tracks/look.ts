// The stretch of time that all tracks show, and how hands and keys move it. Times are ns since the
// run began.

import { inside } from "../lib/scales";

export type Span = [from: number, to: number];

const least = 1e6; // ns: below a millisecond there are no readings to tell apart

/** What is shown: a fixed stretch, the last so many ns, or everything there is. */
export interface Look {
  window: Span | null;
  last: number;
}

export const seen = ({ window, last }: Look, end: number): Span => {
  const whole: Span = [0, Math.max(end, 1)];
  return last > 0
    ? [Math.max(0, whole[1] - last), whole[1]]
    : window
      ? inside(window, whole, Math.min(least, whole[1]))
      : whole;
};

/** A stretch as it is kept: everything is null, so that it grows with the run. */
function kept(to: Span, end: number): Look {
  const [a, b] = inside(to, [0, Math.max(end, 1)], Math.min(least, end));
  return { window: b - a >= end * 0.9999 ? null : [Math.round(a), Math.round(b)], last: 0 };
}

/** Zooms at a moment; factor below 1 is in. While the end is followed, the end stays. */
export function zoomed(look: Look, end: number, at: number, factor: number): Look {
  if (look.last > 0) {
    const last = Math.max(look.last * factor, least);
    return last >= end ? { window: null, last: 0 } : { window: null, last: Math.round(last) };
  }
  const [from, to] = seen(look, end);
  if (factor < 1 && to - from <= least) return look;
  return kept([at - (at - from) * factor, at + (to - at) * factor], end);
}

/** Pans by a share of what is shown. Who looks back no longer follows the end. */
export function panned(look: Look, end: number, share: number): Look {
  const [from, to] = seen(look, end),
    by = (to - from) * share;
  return kept([from + by, to + by], end);
}

export const shownAs = (to: Span, end: number): Look => kept(to, end);

/** Follows the end with as much as is shown now; of everything, everything. */
export function following(look: Look, end: number): Look {
  const [from, to] = seen(look, end);
  return to - from >= end * 0.9999
    ? { window: null, last: 0 }
    : { window: null, last: Math.round(to - from) };
}
