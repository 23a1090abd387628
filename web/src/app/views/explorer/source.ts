// The lines around a frame, where their file is readable. The server is asked by the number of the
// frame's place: no request names a file.

import type { Lines } from "../../../api";
import { h } from "../../../views/dom";
import type { Board } from "./board";

export interface Source {
  element: HTMLElement;
  show(place: number, quiet?: boolean): void;
  clear(): void;
}

/**
 * The lines around a place; quiet: where they can be read, else nothing. what tells its questions
 * from those of another panel.
 */
export function source(board: Board, what: string): Source {
  const element = h("div", { class: "source", role: "region", "aria-label": "Source", hidden: "" });
  const lines = (l: Lines) =>
    h(
      "ol",
      { start: String(l.first) },
      ...(l.text ?? []).map((text, i) =>
        h(
          "li",
          l.first + i === l.line
            ? { class: "here", "aria-current": "true", value: String(l.first + i) }
            : { value: String(l.first + i) },
          h("code", {}, text || " "),
        ),
      ),
    );
  let asked = -1;
  return {
    element,
    clear: () => {
      asked = -1;
      element.hidden = true;
    },
    show: (place, quiet = false) => {
      if (place === asked && !element.hidden) return;
      asked = place;
      if (place < 0) {
        element.hidden = true;
        return;
      }
      board.ask<Lines>(
        `source-${what}`,
        board.path("source", { place, device: undefined }),
        (l) => {
          if (asked !== place) return;
          element.hidden = quiet && l.why !== undefined;
          element.replaceChildren(
            h("h4", { title: l.file }, l.line ? `${l.file}:${l.line}` : l.file || "native code"),
            l.why ? h("p", { class: "hint" }, `Not readable here: ${l.why}.`) : lines(l),
          );
        },
      );
    },
  };
}
