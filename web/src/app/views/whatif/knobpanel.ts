// The form of a what-if: the GPU, the memory, and a slider for each setting.

import { bytes } from "../../../lib/format";
import { h } from "../../../views/dom";
import { catalogue } from "../../jobs";
import { knobs, parsed, stepsOf } from "../../knobs";

/** What the allocator can have: a GPU's memory, or so much. */
export interface Limit { gpu?: string; memory?: string }

/** The knobs, the GPU and the memory. changed is told with true when a slider has come to rest. */
export function knobPanel(settings: Map<string, string>, changed: (rest: boolean) => void, limited: (to: Limit) => void): { element: HTMLElement; adopt(line: string): void; limit(to: Limit): void } {
  const places = h("div", { class: "knobs" });
  let now: Limit = {};
  const turned = (to: Limit) => { now = to; limited(to); };
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
  const gpu = h("select", { id: "knob-gpu", "aria-describedby": "knob-gpu-says" }, h("option", { value: "" }, "as recorded")), memory = h("input", { type: "text", id: "knob-memory", placeholder: "24GiB", spellcheck: "false", "aria-describedby": "knob-memory-says" });
  void catalogue().then((all) => gpu.append(...all.filter((g) => g.vendor.toLowerCase() === "nvidia").sort((a, b) => a.total_bytes - b.total_bytes).map((g) => h("option", { value: g.gpu }, `${g.name}, ${bytes(g.total_bytes)}`)))).then(() => { gpu.value = now.gpu ?? ""; }, () => undefined);
  gpu.addEventListener("change", () => { memory.value = ""; turned(gpu.value ? { gpu: gpu.value } : {}); });
  memory.addEventListener("change", () => { gpu.value = ""; turned(memory.value.trim() ? { memory: memory.value.trim() } : {}); });
  const back = h("button", { type: "button", class: "button" }, "Default settings");
  back.addEventListener("click", () => { settings.clear(); build(); changed(true); });
  build();
  const element = h("div", { class: "knobs" }, h("div", { class: "knob" }, h("label", { for: "knob-gpu" }, "GPU"), gpu, h("small", { id: "knob-gpu-says" }, "Its memory, less what a process's context takes, is the limit. As recorded, it is what the allocator could have, where the trace tells.")),
    h("div", { class: "knob" }, h("label", { for: "knob-memory" }, "Or so much memory"), memory, h("small", { id: "knob-memory-says" }, "What the allocator can have, as 24GiB.")), places, h("div", { class: "knobs-end" }, back));
  return { element, adopt: (line) => { settings.clear(); for (const [k, v] of parsed(line)) settings.set(k, v); build(); }, limit: (to) => { now = to; gpu.value = to.gpu ?? ""; memory.value = to.memory ?? ""; } };
}
