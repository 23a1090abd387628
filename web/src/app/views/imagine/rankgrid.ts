// The ranks of a cluster as a grid: a row is a node, a cell a rank, as dark as its device is full.

import type { RankUse } from "../../../api";
import { whileShown } from "../../../draw/shown";
import { mix, readable } from "../../../draw/svg";
import { theme } from "../../../draw/theme";
import { bytes, percent } from "../../../lib/format";
import { h } from "../../../views/dom";

/** null: there is one rank, or none. total is each device's memory; a node has so many GPUs. */
export function rankGrid(ranks: RankUse[], total: number, node: number): HTMLElement | null {
  if (ranks.length < 2 || total <= 0) return null;
  const most = ranks.reduce((a, b) => (a.peak_used_bytes >= b.peak_used_bytes ? a : b)),
    said = h("p", { class: "reading", role: "status" });
  const grid = h("div", {
    class: "rank-grid",
    role: "group",
    "aria-label": "Ranks, each with what it has in use of its device at its peak",
    style: `--across:${Math.max(1, Math.min(node || 8, 16, ranks.length))}`,
  });
  const tell = (r: RankUse) => {
    said.textContent =
      `rank ${r.rank ?? r.process}${r.world_size ? ` of ${r.world_size}` : ""}: ` +
      `${bytes(r.peak_used_bytes)}, ${percent((r.peak_used_bytes / total) * 1000)} of its ` +
      `device${r.played ? ", played alone" : ""}`;
  };
  const fill = () => {
    const colour = theme(),
      low = colour("track"),
      high = colour("accent");
    grid.replaceChildren(
      ...ranks
        .toSorted((a, b) => (a.rank ?? a.process) - (b.rank ?? b.process))
        .map((r) => {
          const ink = mix(low, high, Math.min(1, r.peak_used_bytes / total)),
            cell = h(
              "button",
              {
                type: "button",
                style: `background:${ink};color:${readable(ink, "#101820", "#ffffff")}`,
                class: r === most ? "most" : "",
              },
              h("b", {}, String(r.rank ?? r.process)),
              h("small", {}, bytes(r.peak_used_bytes)),
            );
          cell.addEventListener("pointerenter", () => tell(r));
          cell.addEventListener("focus", () => tell(r));
          return cell;
        }),
    );
  };
  fill();
  tell(most);
  whileShown(grid, "hightide:theme", fill);
  return h("div", {}, grid, said);
}
