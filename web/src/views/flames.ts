import type { Report, StackSet } from "../api";
import { bytes, count, percent, place, quantity } from "../lib/format";
import { figures, fold, grow, unfold, type Call } from "../lib/icicle";
import { h, section, type Child } from "./dom";

const deepest = 48, thinnest = 0.002, tall = 21;

/** Device memory by call stack: the outermost call at the top, as wide as what it holds. */
export function flames(report: Report): HTMLElement | null {
  const sets = (report.stacks ?? []).filter((s) => s.name === "device" && (s.total_bytes > 0 || s.measures?.some((m) => m.total > 0)));
  return sets.length ? section("flames", "Who holds the device's memory", ...oneAtATime(sets.map((s) => [`device ${s.device_number}`, s.file, () => picture(s)]))) : null;
}

function picture(set: StackSet): HTMLElement {
  const box = h("div", { class: "icicle", role: "tree", "aria-label": set.title });
  const said = h("p", { class: "reading", role: "status" });
  const measures = set.measures?.filter((m) => m.total > 0) ?? [];
  const native = (n: Call) => n.frame >= 0 && !!set.frames[n.frame]!.native;
  let measure = measures[0], root = fold(grow(set, "bytes"), native);
  let trail: Call[] = [root];
  const frame = (n: Call) => n.frame < 0 ? undefined : set.frames[n.frame];
  const name = (n: Call) => {
    const f = frame(n);
    return f ? `${f.function || place(f.file, f.line)}${n.folded ? ` and ${n.folded - 1} more of C++` : ""}` : "all stacks";
  };
  const figure = (n: Call) => quantity(n.value, measure?.unit ?? "bytes");
  const tell = (n: Call) => {
    const f = frame(n), what = measure?.name === "bytes-time" ? " on average" : measure?.name === "count" ? " allocations" : measure?.name === "churn" ? " freed again" : "";
    said.textContent = [`${name(n)}`, `${figure(n)}${what}`, percent((n.value / root.value) * 1000), n.blocks > 0 && `${count(n.blocks)} block${n.blocks === 1 ? "" : "s"} at the moment explained`,
      f && f.file && (f.line ? `${f.file}:${f.line}` : f.file)].filter(Boolean).join(" · ");
  };
  const draw = (): void => {
    const top = trail[trail.length - 1]!, cells: HTMLElement[] = [];
    let rows = 1;
    const put = (n: Call, depth: number, left: number, width: number): void => {
      if (depth > deepest || width < thinnest) return;
      rows = Math.max(rows, depth + 1);
      const cell = h("button", { type: "button", role: "treeitem", class: frame(n)?.user ? "own" : n.folded ? "folded" : "", title: `${name(n)}\n${figure(n)}`,
        style: `left:${(left * 100).toFixed(3)}%;width:${(width * 100).toFixed(3)}%;top:${depth * tall}px` }, width > 0.03 ? name(n) : null);
      cell.addEventListener("focus", () => tell(n));
      cell.addEventListener("pointerenter", () => tell(n));
      cell.addEventListener("click", () => {
        if (n.folded) unfold(n, native);
        else if (n === top && trail.length > 1) trail.pop(); else if (n !== top) trail.push(n);
        draw();
        box.querySelector("button")?.focus();
      });
      cells.push(cell);
      let at = left;
      for (const child of n.children) { const part = (child.value / n.value) * width; put(child, depth + 1, at, part); at += part; }
    };
    put(top, 0, 0, 1);
    box.style.height = `${rows * tall}px`;
    box.replaceChildren(...cells);
    tell(top);
  };
  const choose = (m: (typeof measures)[number]): void => {
    measure = m;
    root = fold(grow(set, figures[m.name] ?? "bytes"), native);
    trail = [root];
    draw();
  };
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && trail.length > 1) { trail.pop(); draw(); box.querySelector("button")?.focus(); }
  });
  draw();
  const rest = measures[0]?.rest ? `Stacks too small to draw hold ${bytes(measures[0].rest)} more. ` : "";
  return h("figure", {}, h("figcaption", {}, set.title, measures.length > 1 && switcher("Measure", measures.map((m): [string, () => void] => [short[m.name] ?? m.name, () => choose(m)]))),
    box, said, h("p", { class: "hint" }, `${rest}Click a call to look closer, click it again or press Escape to step back.${folds(root) ? " Runs of C++ are folded: click one to unfold it." : ""}`));
}

const folds = (n: Call): boolean => !!n.folded || n.children.some(folds);

const short: Record<string, string> = { bytes: "bytes held", "bytes-time": "bytes × time", count: "allocations", churn: "churn" };

/** One picture of several devices, with a button for each, which names the file where there are several. A picture is drawn when it is
 *  first looked at. */
export function oneAtATime(pictures: [device: string, file: string | undefined, draw: () => HTMLElement][]): Child[] {
  if (pictures.length < 2) return pictures.map(([, , draw]) => draw());
  const drawn: HTMLElement[] = [], place = h("div", {}), files = new Set(pictures.map(([, file]) => file)).size;
  const show = (i: number) => place.replaceChildren(drawn[i] ??= pictures[i]![2]());
  show(0);
  return [h("p", { class: "tabs" }, switcher("Device", pictures.map(([device, file], i): [string, () => void] => [files > 1 ? `${device} of ${file}` : device, () => show(i)]))), place];
}

/** Buttons of which one is on. */
export function switcher(label: string, choices: [title: string, then: () => void][]): HTMLElement {
  const buttons = choices.map(([title, then], i) => {
    const button = h("button", { type: "button", "aria-pressed": String(i === 0) }, title);
    button.addEventListener("click", () => {
      buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      then();
    });
    return button;
  });
  return h("span", { class: "switch", role: "group", "aria-label": label }, ...buttons as Child[]);
}
