// What the line above the tracks says of a moment.

import { count, duration } from "../lib/format";
import { called } from "../lib/phases";
import type { Span } from "./look";
import { lastBefore } from "./paint";
import type { Row } from "./rows";
import type { Source } from "./source";

const near = 1 / 200; // of what is in view, an event is at the moment

/** The moment, its step, its phase and the event there. */
export function said(source: Source, [from, to]: Span, at: number): string {
  const stays = source.stays.get(source.lead) ?? [],
    stay = stays[lastBefore(stays, at)],
    step = source.steps.get(source.lead)?.find((s) => s.time_ns >= at),
    event = source.marks.find((m) => Math.abs(m.time_ns - at) < (to - from) * near);
  return [
    `at ${duration(at)}`,
    step && `step ${count(step.step + 1)}`,
    stay && stay.to >= at && called(stay),
    event && (event.text || event.kind),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The values of the first track in view, for who cannot see them. */
export function valuesOf(rows: Row[]): string[] {
  const lead = rows.find((r) => r.track.kind === "curves" && r.shown);
  return [...(lead?.element.querySelectorAll("dl > div") ?? [])]
    .slice(0, 3)
    .map((d) => `${d.querySelector("dt")?.textContent} ${d.querySelector("dd")?.textContent}`);
}

/** What the values are where no moment is chosen. */
export const valuesWithoutMoment = (latest: number | null, end: number): string =>
  latest !== null
    ? `The values are those of now, ${duration(end)} after the start.`
    : "The values are the highest readings in view, and a short peak may lie between two; " +
      "point at the tracks for those of a moment.";
