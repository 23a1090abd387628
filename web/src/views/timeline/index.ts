// Memory over time, and everything else that a report has readings of, as tracks on one axis.

import type { Report } from "../../api";
import type { PageStore } from "../../state/page";
import { store } from "../../state/store";
import { tracks } from "../../tracks";
import { plain, type Layout } from "../../tracks/layout";
import { reportSource } from "../../tracks/source";

/** The tracks of a report; keys are answered by the page. */
export function timeline(report: Report, page: PageStore): HTMLElement | null {
  const source = reportSource(report);
  if (source.curves.length === 0) return null;
  const made = tracks(source, page, store<Layout>(plain));
  addEventListener("keydown", (e) => {
    const key =
      e.defaultPrevented ||
      e.ctrlKey ||
      e.metaKey ||
      e.altKey ||
      (e.target instanceof Element && e.target.matches("input, select, textarea"))
        ? undefined
        : made.keys.flatMap((g) => g.keys).find((k) => k.run && k.keys.includes(e.key));
    if (key) {
      e.preventDefault();
      key.run!(e);
    }
  });
  return made.element;
}
