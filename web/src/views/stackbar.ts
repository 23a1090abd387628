// Parts of a whole in one bar, and in words below it.

import { bytes, percent } from "../lib/format";
import { h } from "./dom";

/** A part: `ink` names a colour of the theme, `free` is what nobody took. */
export interface Part {
  name: string;
  bytes: number;
  ink: string;
  free?: boolean;
}

/** The parts side by side in their proportions; a free one is hatched. */
export function stackBar(parts: Part[]): HTMLElement {
  const total = parts.reduce((sum, p) => sum + p.bytes, 0);
  return h(
    "figure",
    { class: "parts" },
    h(
      "div",
      {
        class: "stack-bar",
        role: "img",
        "aria-label": parts.map((p) => `${p.name} ${bytes(p.bytes)}`).join(", "),
      },
      ...parts.map((p) =>
        h("span", {
          ...(p.free ? { class: "free" } : {}),
          style: `flex:${p.bytes / total};--ink:var(--${p.ink})`,
          title: `${p.name}: ${bytes(p.bytes)}`,
        }),
      ),
    ),
    h(
      "ul",
      {},
      ...parts.map((p) =>
        h(
          "li",
          { title: p.name },
          h("i", { ...(p.free ? { class: "free" } : {}), style: `--ink:var(--${p.ink})` }),
          h("span", {}, p.name),
          h("b", {}, bytes(p.bytes)),
          h("small", {}, percent((p.bytes / total) * 1000)),
        ),
      ),
    ),
  );
}
