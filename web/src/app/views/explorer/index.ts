// The explorer of a snapshot: its blocks stacked event by event, the block that is chosen, and the segments at one event.
//
//	hand ──▶ look (events, bytes) ──▶ picture, at once
//	           └──▶ address, tile     when the hand rests
//	app's state: window, at, block, search, device ──▶ all panels

import "../../../style/explorer.css";
import { theme } from "../../../draw/theme";
import { elsewhere } from "../../../draw/paint";
import { bytes, count } from "../../../lib/format";
import { h, section } from "../../../views/dom";
import { get, query } from "../../api";
import { failure, givenUp } from "../../parts";
import type { App } from "../../state";
import type { Shown } from "..";
import { facts, tip, type Block } from "./facts";
import { hand } from "./hand";
import { picture, siteInk } from "./picture";
import { segmentMap, type Moment } from "./segments";
import { shapes, type Range, type Shape, type Site, type Tile } from "./tile";

interface Device { device: number; events: number; blocks: number; peak_bytes: number; peak_at?: number }

/** The section of a snapshot's page; it asks for what it shows. */
export function explorer(app: App, id: string): Shown {
  const closing = new AbortController(), body = h("div", { class: "explorer" });
  void get<{ devices: Device[] | null }>(`/snapshots/${encodeURIComponent(id)}`, closing.signal).then(({ devices }) => {
    if (devices?.some((d) => d.events > 0)) panels(app, id, devices, body, closing.signal);
    else body.replaceChildren(h("p", { class: "hint" }, "This snapshot has no trace of events, so there are no blocks over time to show."));
  }, (e: unknown) => { if (!givenUp(e)) body.replaceChildren(failure(e)); });
  return { element: section("explorer", "Every block, event by event", body), close: () => closing.abort() };
}

function panels(app: App, id: string, devices: Device[], body: HTMLElement, closed: AbortSignal): void {
  const of = (rest: string) => `/snapshots/${encodeURIComponent(id)}/${rest}`;
  const highest = devices.reduce((a, b) => b.peak_bytes > a.peak_bytes ? b : a);
  const device = () => devices.find((d) => String(d.device) === app.get().device) ?? highest;
  const whole = (): { events: Range; bytes: Range } => ({ events: [0, device().events + 1], bytes: [0, Math.max(device().peak_bytes * 1.03, 1)] });
  const at = () => Math.min(app.get().at ?? device().peak_at ?? device().events, device().events);
  const drawing = picture(), side = h("aside", { "aria-label": "The selected block" }), floating = h("div", { class: "float", hidden: "" }), problem = h("div", {}), said = h("p", { class: "hint found-blocks", role: "status" }), legend = h("p", { class: "phases sites" });
  const unseen = h("p", { class: "hint", hidden: "" }, "None that matches is large enough to draw here. Zoom in, with shift in bytes.");
  const known: { sites: Site[]; categories: string[]; modules: string[]; device: number } = { sites: [], categories: [], modules: [], device: -1 }, blocks = new Map<number, Block>();
  let events: Range = app.get().window ?? whole().events, high: Range = whole().bytes;

  const ask = asker(closed, problem);
  const look = () => drawing.look({ events, bytes: high, at: at(), block: app.get().block, dim: app.get().search !== "" });
  const tile = () => {
    const d = device().device, search = app.get().search;
    if (d !== known.device) { Object.assign(known, { sites: [], categories: [], modules: [], device: d }); blocks.clear(); }
    ask<Tile>("tile", query(of("blocks"), { device: d, from: Math.floor(events[0]), to: Math.ceil(events[1]), low: Math.round(high[0]), high: Math.round(high[1]), width: drawing.canvas.clientWidth, height: drawing.canvas.clientHeight, q: search, sites: known.sites.length, categories: known.categories.length, modules: known.modules.length }), (t) => {
      for (const of of ["sites", "categories", "modules"] as const) (known[of] as unknown[]).push(...t.labels[of]);
      const all = shapes(t);
      drawing.show(t, all);
      unseen.hidden = !search || all.some((s) => s.found);
      legend.replaceChildren(...key(all, known.sites), h("span", {}, h("i", { class: "rest" }), `${count(all.length)} of ${count(t.inside)} blocks are drawn singly, the rest is too small or not in view`));
      body.dataset.tile = `${Math.floor(events[0])}-${Math.ceil(events[1])}`;
    });
  };
  const one = (n: number, then: (b: Block) => void, what: string) => {
    const before = blocks.get(n);
    if (before) then(before);
    else ask<Block>(what, query(of("block"), { device: device().device, n, at: at() }), (b) => { if (blocks.size > 500) blocks.clear(); blocks.set(n, b); then(b); });
  };
  const map = segmentMap((n) => app.set({ block: n }));
  const moment = () => ask<Moment>("moment", query(of("moment"), { device: device().device, at: at(), width: Math.max(drawing.canvas.clientWidth, 300) * 12 }), (m) => { map.show(m); map.choose(app.get().block); body.dataset.moment = String(m.point); });
  const chosen = () => {
    const n = app.get().block;
    map.choose(n);
    if (n === null) side.replaceChildren(h("p", { class: "hint" }, "Click a block for its facts. The wheel zooms, with shift in bytes; drag to pan; F shows everything; ← and → step by one event."));
    else one(n, (b) => { if (app.get().block === n) side.replaceChildren(facts(b)); }, "chosen");
  };
  const search = () => {
    said.textContent = "";
    if (app.get().search) ask<{ blocks: number; bytes: number; at_peak: number }>("search", query(of("search"), { device: device().device, q: app.get().search }), (f) => { said.textContent = `${count(f.blocks)} blocks match, ${bytes(f.bytes)} in all, ${bytes(f.at_peak)} at the peak.`; });
  };

  const over = (shape: Shape | undefined, x: number, y: number) => {
    drawing.hover(shape?.n ?? null);
    floating.hidden = !shape;
    if (!shape) return;
    const fill = (b?: Block) => floating.replaceChildren(...tip(shape, known.sites[shape.site], [known.categories[shape.category], known.modules[shape.module]].filter(Boolean).join(" · "), b).filter((c): c is Node => c instanceof Node));
    if (floating.dataset.n !== String(shape.n) || !floating.hasChildNodes()) { floating.dataset.n = String(shape.n); fill(blocks.get(shape.n)); one(shape.n, (b) => { if (floating.dataset.n === String(b.n)) fill(b); }, "hover"); }
    const wide = drawing.canvas.clientWidth, w = floating.offsetWidth;
    floating.style.left = `${Math.max(0, Math.min(x + 14, wide - w))}px`;
    floating.style.top = `${y + 16}px`;
  };
  let rest = 0;
  const moveTo = (to: { events?: Range; bytes?: Range }) => {
    [events, high] = [to.events ?? events, to.bytes ?? high];
    look();
    clearTimeout(rest);
    rest = window.setTimeout(() => { // the address and the server follow when the hand rests
      if (closed.aborted) return;
      const all = whole().events, rounded: Range = [Math.floor(events[0]), Math.ceil(events[1])];
      shown = rounded.join("-");
      app.set({ window: rounded[0] <= all[0] && rounded[1] >= all[1] ? null : rounded });
      tile();
    }, 90);
  };
  const fit = () => moveTo(whole());
  hand(drawing, { look: () => ({ events, bytes: high }), whole, moveTo, over, pick: (point, bytes, shape) => {
    const at = Math.min(Math.max(Math.floor(point), 0), device().events);
    app.set({ at, block: shape?.n ?? null });
    if (!shape && drawing.covered(point, bytes)) ask<Block>("picked", query(of("block"), { device: device().device, at, offset: Math.floor(bytes) }), (b) => { if (app.get().at === at) app.set({ block: b.n }); }); // too small to draw, but there
  } });

  const box = h("input", { type: "search", placeholder: "file, function, category …", "aria-label": "Search blocks" });
  box.value = app.get().search;
  let typing = 0;
  box.addEventListener("input", () => { clearTimeout(typing); typing = window.setTimeout(() => app.set({ search: box.value.trim() }), 200); });
  const button = (text: string, then: () => void) => { const b = h("button", { type: "button", class: "plain" }, text); b.addEventListener("click", then); return b; };
  const choice = h("select", { "aria-label": "Device" }, ...devices.map((d) => h("option", { value: String(d.device) }, `device ${d.device}`)));
  choice.value = String(device().device);
  choice.addEventListener("change", () => app.set({ device: choice.value, window: null, at: null, block: null }));
  const step = (by: number) => app.set({ at: Math.min(Math.max(at() + by, 0), device().events) });
  body.addEventListener("keydown", (e) => {
    const keys: Record<string, () => void> = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), f: fit, Escape: () => app.set({ block: null }), "+": () => around(0.5), "=": () => around(0.5), "-": () => around(2) };
    const does = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!does || elsewhere(e) || e.defaultPrevented) return;
    e.preventDefault();
    does();
  });
  const around = (factor: number) => moveTo({ events: hand.zoom(events, (events[0] + events[1]) / 2, factor, whole().events) });
  body.replaceChildren(h("div", { class: "tools" }, devices.length > 1 && choice, box, button("Show everything", fit), button("← event", () => step(-1)), button("event →", () => step(1)), said, unseen), problem,
    h("div", { class: "explorer-main" }, h("div", { class: "stacked" }, drawing.canvas, floating, legend), side), map.element);

  let shown = "";
  const follow = (fields: (keyof ReturnType<App["get"]>)[], then: () => void) => { app.follow(fields, () => { if (!closed.aborted) then(); }); };
  follow(["window"], () => { const w = app.get().window ?? whole().events; if (w.join("-") !== shown) { shown = w.join("-"); events = w; look(); queueMicrotask(tile); } });
  follow(["device"], () => { choice.value = String(device().device); if (known.device >= 0 && known.device !== device().device) { ({ events, bytes: high } = whole()); look(); tile(); moment(); chosen(); search(); } });
  follow(["at"], () => { look(); moment(); });
  follow(["block"], () => { look(); chosen(); });
  follow(["search"], () => { look(); search(); if (known.device >= 0) tile(); });
}

/** Asks for one thing at a time of each kind: a newer question gives the older one up. What fails is said, and what was drawn stays. */
function asker(closed: AbortSignal, problem: HTMLElement) {
  const asked = new Map<string, AbortController>();
  return <T>(what: string, path: string, then: (answer: T) => void): void => {
    asked.get(what)?.abort();
    const own = new AbortController();
    asked.set(what, own);
    get<T>(path, AbortSignal.any([own.signal, closed])).then((answer) => { if (!own.signal.aborted) { problem.replaceChildren(); then(answer); } }, (e: unknown) => { if (!givenUp(e) && !own.signal.aborted && !closed.aborted) problem.replaceChildren(failure(e)); });
  };
}

/** The lines that have most bytes among what is drawn, with their colours. */
function key(all: Shape[], sites: Site[]): HTMLElement[] {
  const sums = new Map<number, number>(), colour = theme();
  for (const s of all) sums.set(s.site, (sums.get(s.site) ?? 0) + s.bytes);
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([site]) => h("span", {}, h("i", { style: `background:${siteInk(colour, site)}` }), sites[site]?.name ?? ""));
}
