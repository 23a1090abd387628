// Two call trees as one: a bar is as wide as the larger of what a call held before and after, and coloured by the change.

import type { StackSet } from "../api";
import { mix } from "../draw/svg";
import { theme } from "../draw/theme";
import { merged, type Both } from "../lib/difference";
import { bytes, percent, place } from "../lib/format";
import { h } from "./dom";

const deepest = 40, thinnest = 0.003, tall = 21;

const size = (n: Both) => Math.max(n.before, n.after);

export function flameDiff(before: StackSet, after: StackSet): HTMLElement {
  const root = merged(before, after), box = h("div", { class: "icicle", role: "tree", "aria-label": "Calls before and after" }), said = h("p", { class: "reading", role: "status" });
  let trail = [root];
  const tell = (n: Both) => {
    const change = n.after - n.before;
    said.textContent = [n.name, `${bytes(n.before)} before, ${bytes(n.after)} after`, change === 0 ? "the same" : `${change < 0 ? "−" : "+"}${bytes(Math.abs(change))}${n.before > 0 ? `, ${percent((change / n.before) * 1000)}` : ", new"}`, n.file && place(n.file, n.line)].filter(Boolean).join(" · ");
  };
  const draw = (): void => {
    const top = trail[trail.length - 1]!, cells: HTMLElement[] = [], colour = theme(), [more, less, same] = [colour("curve-1"), colour("curve-2"), colour("panel")], grey = mix(colour("muted"), same, 0.75);
    let rows = 1;
    const put = (n: Both, depth: number, left: number, width: number): void => {
      if (depth > deepest || width < thinnest) return;
      rows = Math.max(rows, depth + 1);
      const share = Math.min(1, Math.abs(n.after - n.before) / size(n)), ink = share < 0.005 ? grey : mix(grey, n.after > n.before ? more : less, 0.25 + 0.75 * share);
      const mark = n.after === n.before ? "" : n.after > n.before ? "▲ " : "▼ "; // not by colour alone
      const cell = h("button", { type: "button", role: "treeitem", title: `${n.name}\n${bytes(n.before)} → ${bytes(n.after)}`, style: `left:${(left * 100).toFixed(3)}%;width:${(width * 100).toFixed(3)}%;top:${depth * tall}px;background:${mix(ink, same, 0.35)}` }, width > 0.03 ? mark + n.name : null);
      cell.addEventListener("focus", () => tell(n));
      cell.addEventListener("pointerenter", () => tell(n));
      cell.addEventListener("click", () => {
        if (n === top && trail.length > 1) trail.pop(); else if (n !== top) trail.push(n);
        draw();
        box.querySelector("button")?.focus();
      });
      cells.push(cell);
      const children = n.children.filter((c) => size(c) > 0).sort((a, b) => size(b) - size(a)), sum = Math.max(size(n), children.reduce((t, c) => t + size(c), 0));
      let at = left;
      for (const child of children) { const part = (size(child) / sum) * width; put(child, depth + 1, at, part); at += part; }
    };
    put(top, 0, 0, 1);
    box.style.height = `${rows * tall}px`;
    box.replaceChildren(...cells);
    tell(top);
  };
  draw();
  addEventListener("hightide:theme", () => { if (box.isConnected) draw(); });
  return h("div", {}, said, box, h("p", { class: "phases" }, h("span", {}, h("i", { style: "background:var(--curve-1)" }), "▲ holds more"), h("span", {}, h("i", { style: "background:var(--curve-2)" }), "▼ holds less"), h("span", {}, "a click goes deeper, a click on the top goes back")));
}
