// What if: the trace of a snapshot under other allocator settings or on another GPU, replayed while a slider moves. Both curves and both
// segment maps lie on one scale; they obey and set the selection of the page.

import "../../style/jobs.css";
import uPlot from "uplot";
import type { Label } from "../../api";
import { axis, byteAxis, chart, fade } from "../../draw/chart";
import { theme } from "../../draw/theme";
import { bytes, count, duration } from "../../lib/format";
import { fromZero } from "../../lib/scales";
import { badge, copier, h, section } from "../../views/dom";
import { post } from "../api";
import { begin, catalogue, job as whole, type Progress, type Told } from "../jobs";
import { knobs, parsed, stepsOf, written } from "../knobs";
import { failure } from "../parts";
import { sameOn, type App } from "../state";
import { stream, type Stream } from "../stream";
import type { Shown } from ".";
import { tape, type Segment } from "./tape";

interface Figures { alloc_conf: string; peak_reserved_bytes: number; peak_allocated_bytes: number; segment_calls: number; alloc_retries: number; oom: number | null }
interface Side extends Figures { curve: { event: number[]; reserved_bytes: number[]; active_bytes: number[] }; moment: { event: number; reserved_bytes: number; active_bytes: number; segments: Segment[] } }
export interface Tried { label: Label; device: number; torch: string; events: number; exact: boolean; capacity_bytes?: number; recorded: Side; replayed: Side; peak_reserved_spread_bytes?: [number, number]; line: string; sentence: string }
interface Found { search?: Figures[] | null; best?: (Figures & { gain_bytes: number }) | null; searched?: { settings: number; duration_ns: number }; recorded: Figures }

const rows = 12;

export function whatIfPanel(app: App, id: string): Shown {
  const settings = new Map<string, string>(), first = app.get().params.settings;
  let limit: { gpu?: string; memory?: string } = {}, answer: Tried | null = null, record: { of: string; side: Side } | null = null, asking: AbortController | null = null, waiting = false, closed = false, touched = first !== undefined;
  const said = h("p", { class: "said", role: "status" }), tip = h("p", { class: "reading", role: "status" }), facts = h("dl", { class: "figures" }), line = h("div", {}), problem = h("div", {}), spread = h("p", { class: "hint" });
  const box = h("div", { class: "chart", role: "img", "aria-label": "Reserved memory as recorded and as replayed, event by event" });
  const pick = (n: number) => app.set({ block: n >= 0 ? n : null });
  const tell = (text: string) => { tip.textContent = text; };
  const [before, after] = [tape("as recorded", pick, tell), tape("as replayed", pick, tell)];
  const whole = h("button", { type: "button", class: "plain", hidden: "" }, "Show the peaks");
  whole.addEventListener("click", () => app.set({ at: null }));

  // one request at a time while a slider moves, the last position when it comes to rest
  const ask = (now = false): void => {
    if (asking && !now) { waiting = true; return; }
    asking?.abort();
    waiting = false;
    const own = asking = new AbortController(), { at, device } = app.get(), of = `${device} ${at}`, known = record?.of === of ? record.side : null;
    void post<Tried>(`/snapshots/${encodeURIComponent(id)}/whatif`, { ...(device ? { device: Number(device) } : {}), ...(touched ? { settings: written(settings) } : {}), ...limit, ...(at !== null ? { event: Math.max(0, at - 1) } : {}), ...(known ? { known: true } : {}) }, own.signal).then((t) => {
      if (closed || asking !== own) return;
      if (known) t.recorded = known; // it does not change with the settings: it comes once
      record = { of, side: t.recorded };
      asking = null;
      problem.replaceChildren();
      if (!answer && !touched) adopt(t.recorded.alloc_conf);
      answer = t;
      show();
      if (waiting) ask();
    }, (e: unknown) => {
      if (own.signal.aborted || closed || asking !== own) return;
      asking = null;
      problem.replaceChildren(failure(e));
      if (waiting) ask();
    });
  };
  const changed = (now: boolean) => { touched = true; ask(now); };
  const { element: panel, adopt } = knobPanel(settings, changed, (to) => { limit = to; ask(true); });
  if (first !== undefined) adopt(first);

  const plot = () => {
    const colour = theme(), t = answer, x = t?.replayed.curve.event ?? [], r = t?.recorded.curve, cap = t?.capacity_bytes;
    const known = new Map(r?.event.map((e, i) => [e, i])), xs = [...new Set([...(r?.event ?? []), ...x])].sort((a, b) => a - b), mine = new Map(x.map((e, i) => [e, i]));
    const column = (of: Map<number, number>, values: number[] | undefined) => xs.map((e) => { const i = of.get(e); return i === undefined ? null : values?.[i] ?? null; });
    const options: Omit<uPlot.Options, "width" | "height"> = { padding: [12, 18, 0, 0], legend: { show: false }, cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: false, auto: false, min: app.get().window?.[0] ?? 0, max: app.get().window?.[1] ?? (t?.events ?? 1) }, y: { range: (_, low, high) => fromZero(low, high) } }, axes: [axis({ values: (_, ticks) => ticks.map((v) => count(v)), space: 90 }), byteAxis()],
      series: [{}, { label: "reserved, as recorded", stroke: colour("curve-7"), width: 2, spanGaps: true }, { label: "reserved, as replayed", stroke: colour("curve-0"), width: 2, fill: fade(colour("curve-0"), 0.2, 0.02), spanGaps: true }, { label: "in use", stroke: colour("curve-2"), width: 1.25, spanGaps: true },
        { label: "the device", stroke: colour("limit"), width: 1.25, dash: [6, 4], spanGaps: true, show: cap !== undefined }],
      hooks: { draw: [(u) => marks(u, t, app.get().at)], ready: [(u) => u.over.addEventListener("click", (e) => { const at = u.posToVal(e.offsetX, "x"); app.set({ at: Math.round(at) }); })],
        setSelect: [(u) => { if (u.select.width < 6) return; const w: [number, number] = [Math.round(u.posToVal(u.select.left, "x")), Math.round(u.posToVal(u.select.left + u.select.width, "x"))]; u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); app.set({ window: w }); }] } };
    return { options, data: [xs, column(known, r?.reserved_bytes), column(mine, t?.replayed.curve.reserved_bytes), column(mine, t?.replayed.curve.active_bytes), xs.map(() => cap ?? null)] as uPlot.AlignedData };
  };
  let drawn: { redraw(): void } | null = null;
  queueMicrotask(() => { if (!closed) drawn = chart(box, 280, plot); });
  const show = () => {
    const t = answer!;
    said.textContent = t.sentence;
    const per = Math.max(t.recorded.moment.reserved_bytes, t.replayed.moment.reserved_bytes, 1) / rows;
    const of = (s: Side) => `${bytes(s.moment.reserved_bytes)} reserved, ${bytes(s.moment.active_bytes)} in use, ${count(s.moment.segments.length)} segments, after event ${count(Math.max(0, s.moment.event))}`;
    before.show(t.recorded.moment.segments, per, "As recorded", of(t.recorded));
    after.show(t.replayed.moment.segments, per, t.replayed.oom === null ? "As replayed" : "As replayed, where memory runs out", of(t.replayed));
    const delta = (a: number, b: number, as: (n: number) => string) => `${as(b)}${a === b ? "" : ` (${b > a ? "+" : "−"}${as(Math.abs(b - a))})`}`, waste = (s: Side) => s.peak_reserved_bytes - s.peak_allocated_bytes;
    facts.replaceChildren(...([["Peak reserved", delta(t.recorded.peak_reserved_bytes, t.replayed.peak_reserved_bytes, bytes)], ["Above what tensors hold", delta(waste(t.recorded), waste(t.replayed), bytes)], ["Calls of the driver", delta(t.recorded.segment_calls, t.replayed.segment_calls, count)], ["Cache emptied for lack of memory", delta(t.recorded.alloc_retries, t.replayed.alloc_retries, count)]] as [string, string][])
      .map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))));
    line.replaceChildren(...(t.line ? [copier(t.line, { class: "command" }, h("code", {}, t.line))] : [h("p", { class: "hint" }, "These are the settings of the record.")]));
    spread.textContent = t.exact ? `Every address of the record comes out of the model (rules of torch ${t.torch}). Addresses of new segments are made up, so ties between equal blocks may turn out otherwise.` : `The model does not place every block of this trace where the record has it, so this is an estimate (rules of torch ${t.torch}).`;
    whole.hidden = app.get().at === null;
    drawn?.redraw();
  };
  let at = app.get().at, device = app.get().device;
  app.follow(["at", "device"], (s) => { if (s.at !== at || s.device !== device) { if (s.device !== device) answer = null; [at, device] = [s.at, s.device]; ask(true); } });
  app.follow(["window"], () => drawn?.redraw());
  app.follow(["block"], ({ block }) => { before.choose(block); after.choose(block); });
  const found = searching(app, id, () => limit, (line) => { adopt(line); changed(true); });
  ask(true);
  const element = section("whatif", "What if the allocator were set otherwise?", h("div", { class: "whatif" }, h("div", { class: "knobs" }, panel, found.element),
    h("div", { class: "result" }, said, problem, line, facts, h("div", { class: "tools" }, h("p", { class: "phases" }, ...([["curve-7", "reserved, as recorded"], ["curve-0", "reserved, as replayed"], ["curve-2", "in use"], ["limit", "the device"]] as const).map(([ink, text]) => h("span", {}, h("i", { style: `background:var(--${ink})` }), text))), whole), box,
      h("div", { class: "tapes" }, before.element, after.element), tip, h("p", { class: "phases" }, h("span", {}, h("i", { style: "background:var(--curve-0)" }), "in use"), h("span", {}, h("i", { style: "background:var(--warning)" }), "freed, another stream still uses it"), h("span", {}, h("i", { class: "free" }), "cached"), h("span", {}, "by address, both on one scale; click a block to choose it in every panel")), spread)));
  return { element, close: () => { closed = true; asking?.abort(); found.close(); } };
}

/** Where memory ran out, and the chosen moment. */
function marks(u: uPlot, t: Tried | null, at: number | null): void {
  const colour = theme(), { ctx } = u, { top, height } = u.bbox;
  const draw = (x: number, ink: string, text: string) => {
    const px = Math.round(u.valToPos(x, "x", true));
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath(); ctx.moveTo(px, top); ctx.lineTo(px, top + height); ctx.stroke();
    ctx.font = `600 ${11 * devicePixelRatio}px system-ui, sans-serif`;
    const left = px > u.bbox.left + u.bbox.width * 0.8;
    ctx.textAlign = left ? "right" : "left";
    ctx.fillText(text, px + (left ? -5 : 5) * devicePixelRatio, top + 12 * devicePixelRatio);
    ctx.restore();
  };
  if (t && t.replayed.oom !== null) draw(t.replayed.oom, colour("critical"), "out of memory");
  if (at !== null) draw(at, colour("text"), `after event ${count(Math.max(0, at - 1))}`);
}

/** The knobs, the GPU and the memory. changed is told with true when a slider has come to rest. */
function knobPanel(settings: Map<string, string>, changed: (rest: boolean) => void, limited: (to: { gpu?: string; memory?: string }) => void): { element: HTMLElement; adopt(line: string): void } {
  const places = h("div", { class: "knobs" });
  const build = () => places.replaceChildren(...knobs.map((k) => {
    const own = settings.get(k.name) ?? "", steps = stepsOf(k, own), id = `knob-${k.name}`, out = h("output", { for: id }, k.shown(own)), slider = h("input", { type: "range", id, min: "0", max: String(steps.length - 1), step: "1", value: String(steps.indexOf(own)), "aria-describedby": `${id}-says`, "aria-valuetext": k.shown(own) });
    const whole = h("div", { class: own ? "knob changed" : "knob" }, h("label", { for: id }, k.title, out), slider, h("small", { id: `${id}-says` }, k.says));
    const turn = (rest: boolean) => {
      const value = steps[Number(slider.value)]!;
      if (value) settings.set(k.name, value); else settings.delete(k.name);
      out.textContent = k.shown(value);
      slider.setAttribute("aria-valuetext", k.shown(value));
      whole.classList.toggle("changed", value !== "");
      changed(rest);
    };
    slider.addEventListener("input", () => turn(false));
    slider.addEventListener("change", () => turn(true));
    return whole;
  }));
  const gpu = h("select", { id: "knob-gpu", "aria-describedby": "knob-gpu-says" }, h("option", { value: "" }, "no limit")), memory = h("input", { type: "text", id: "knob-memory", placeholder: "24GiB", spellcheck: "false", "aria-describedby": "knob-memory-says" });
  void catalogue().then((all) => gpu.append(...all.filter((g) => g.vendor.toLowerCase() === "nvidia").sort((a, b) => a.total_bytes - b.total_bytes).map((g) => h("option", { value: g.gpu }, `${g.name}, ${bytes(g.total_bytes)}`))), () => undefined);
  gpu.addEventListener("change", () => { memory.value = ""; limited(gpu.value ? { gpu: gpu.value } : {}); });
  memory.addEventListener("change", () => { gpu.value = ""; limited(memory.value.trim() ? { memory: memory.value.trim() } : {}); });
  const back = h("button", { type: "button", class: "button" }, "Default settings");
  back.addEventListener("click", () => { settings.clear(); build(); changed(true); });
  build();
  const element = h("div", { class: "knobs" }, h("div", { class: "knob" }, h("label", { for: "knob-gpu" }, "GPU"), gpu, h("small", { id: "knob-gpu-says" }, "Its memory, less what a process's context takes, is the limit.")),
    h("div", { class: "knob" }, h("label", { for: "knob-memory" }, "Or so much memory"), memory, h("small", { id: "knob-memory-says" }, "What the allocator can have, as 24GiB.")), places, back);
  return { element, adopt: (line) => { settings.clear(); for (const [k, v] of parsed(line)) settings.set(k, v); build(); } };
}

/** The search for the best settings, as a job. */
function searching(app: App, id: string, limit: () => { gpu?: string; memory?: string }, apply: (line: string) => void): { element: HTMLElement; close(): void } {
  const button = h("button", { type: "button", class: "button" }, "Search the best settings"), bar = h("progress", { hidden: "", "aria-label": "Settings tried" }), said = h("p", { class: "hint", role: "status" }), list = h("ul", { class: "found" });
  let live: Stream | null = null;
  const end = (text: string) => { bar.hidden = true; button.disabled = false; said.textContent = text; };
  button.addEventListener("click", () => {
    button.disabled = true;
    list.replaceChildren();
    void begin("search", { snapshot: id, device: app.get().device ? Number(app.get().device) : -1, ...limit() }).then((j) => {
      bar.hidden = false;
      live = stream(`/jobs/${j.id}/events`, `/jobs/${j.id}`, { told: ({ name, data }: Told) => { if (name !== "progress") return; const p = data as Progress; bar.max = p.all; bar.value = p.done; said.textContent = `${count(p.done)} of ${count(p.all)} settings tried`; },
        end: () => void whole<Found>(j.id).then(({ result: r, problem }) => {
          if (!r) return end(problem ?? "It came to nothing.");
          const best = r.best;
          end(`${count(r.searched?.settings ?? 0)} settings in ${duration(r.searched?.duration_ns ?? 0)}. ${!best ? "None is as good as the record in every order of addresses." : best.gain_bytes > 0 ? `The best reserves ${bytes(best.gain_bytes)} less and holds in every order of addresses.` : "None is better than the record."}`);
          const some = [...(best ? [best] : []), ...(r.search ?? []).filter((f) => f.alloc_conf !== best?.alloc_conf)].slice(0, 6);
          list.replaceChildren(...some.map((f) => {
            const use = h("button", { type: "button", class: "button", title: "Try these" }, `${bytes(f.peak_reserved_bytes)}${f.oom !== null ? ", out of memory" : ""} · ${f.alloc_conf || "default settings"}`);
            use.addEventListener("click", () => apply(f.alloc_conf));
            return h("li", {}, use);
          }));
        }, (e: unknown) => end(e instanceof Error ? e.message : String(e))) });
    }, (e: unknown) => end(e instanceof Error ? e.message : String(e)));
  });
  return { element: h("div", { class: "knob" }, button, bar, said, list), close: () => live?.close() };
}

/** The panel as a page of its own. */
export function whatIfPage(app: App, part: string): Shown {
  const id = decodeURIComponent(part), panel = whatIfPanel(app, id), back = h("a", {}, "The snapshot");
  app.follow(["window", "at", "block", "device"], (state) => { back.setAttribute("href", sameOn(state, `/snapshots/${encodeURIComponent(id)}`)); });
  return { ...panel, element: h("div", { class: "job-page" }, h("h1", {}, "What if?"), h("p", { class: "facts" }, h("span", {}, badge("replayed")), h("span", {}, back)), panel.element) };
}
