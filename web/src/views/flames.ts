import type { Report, StackSet } from "../api";
import { bytes, count, percent, place } from "../lib/format";
import { h, section, type Child } from "./dom";

interface Node { frame: number; bytes: number; blocks: number; children: Node[] }

const deepest = 48, thinnest = 0.002;

/** Device memory by call stack: the outermost call at the top, as wide as what it holds. */
export function flames(report: Report): HTMLElement | null {
  const sets = (report.stacks ?? []).filter((s) => s.name === "device" && s.total_bytes > 0);
  return sets.length ? section("flames", "Who holds the device's memory", ...sets.map(picture)) : null;
}

function picture(set: StackSet): HTMLElement {
  const root = grow(set), box = h("div", { class: "icicle", role: "tree", "aria-label": set.title });
  const said = h("p", { class: "reading", role: "status" });
  const trail: Node[] = [root];
  const name = (n: Node) => {
    const f = n.frame < 0 ? undefined : set.frames[n.frame];
    return f ? `${f.function || place(f.file, f.line)}` : "all stacks";
  };
  const tell = (n: Node) => {
    const f = n.frame < 0 ? undefined : set.frames[n.frame];
    said.textContent = `${name(n)} · ${bytes(n.bytes)} · ${percent((n.bytes / set.total_bytes) * 1000)} · ${count(n.blocks)} blocks${f ? ` · ${f.file}${f.line ? `:${f.line}` : ""}` : ""}`;
  };
  const draw = (): void => {
    const top = trail[trail.length - 1]!, cells: Child[] = [];
    const put = (n: Node, depth: number, left: number, width: number): void => {
      if (depth > deepest || width < thinnest) return;
      const user = n.frame >= 0 && set.frames[n.frame]?.user;
      const cell = h("button", { type: "button", role: "treeitem", class: user ? "own" : "", title: `${name(n)}\n${bytes(n.bytes)}`,
        style: `left:${(left * 100).toFixed(3)}%;width:${(width * 100).toFixed(3)}%;top:${depth * 21}px` }, width > 0.03 ? name(n) : null);
      cell.addEventListener("focus", () => tell(n));
      cell.addEventListener("pointerenter", () => tell(n));
      cell.addEventListener("click", () => {
        if (n === top && trail.length > 1) trail.pop(); else if (n !== top) trail.push(n);
        draw();
        box.querySelector("button")?.focus();
      });
      cells.push(cell);
      let at = left;
      for (const child of n.children) { const part = (child.bytes / n.bytes) * width; put(child, depth + 1, at, part); at += part; }
    };
    put(top, 0, 0, 1);
    const rows = Math.max(...cells.map((c) => parseInt((c as HTMLElement).style.top) / 21 + 1));
    box.style.height = `${rows * 21}px`;
    box.replaceChildren(...cells as Node_[]);
    tell(top);
  };
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && trail.length > 1) { trail.pop(); draw(); box.querySelector("button")?.focus(); }
  });
  draw();
  return h("figure", {}, h("figcaption", {}, set.title), box, said,
    h("p", { class: "hint" }, "Click a call to look closer, click it again or press Escape to step back."));
}

type Node_ = globalThis.Node;

/** The tree of a set, each call with the sum of what is below it; chains of one child stay as they are. */
function grow(set: StackSet): Node {
  const root: Node = { frame: -1, bytes: 0, blocks: 0, children: [] };
  const nodes = set.places.map((frame): Node => ({ frame, bytes: 0, blocks: 0, children: [] }));
  nodes.forEach((n, i) => (nodes[set.parents[i]!] ?? root).children.push(n));
  for (const use of set.stacks) {
    root.bytes += use.bytes; root.blocks += use.count;
    for (let at = use.node; at >= 0; at = set.parents[at]!) { nodes[at]!.bytes += use.bytes; nodes[at]!.blocks += use.count; }
  }
  for (const n of [root, ...nodes]) n.children.sort((a, b) => b.bytes - a.bytes);
  return root;
}
