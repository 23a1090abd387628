// The form of a what-if: the GPU, the memory, and a slider or a switch for each setting.

import { bytes } from "../../../lib/format";
import { h } from "../../../views/dom";
import { catalogue } from "../../jobs";
import { knobs, parsed, stepsOf, type Knob } from "../../knobs";

/** What the allocator can have: a GPU's memory, or so much. */
export interface Limit {
  gpu?: string;
  memory?: string;
}

type Turn = (value: string, rest: boolean) => void;

/** What is on or off is a switch. */
function onOff(k: Knob, own: string, about: Record<string, string>, turn: Turn): HTMLElement[] {
  const box = h("input", { ...about, type: "checkbox", role: "switch" });
  box.checked = own !== "";
  box.addEventListener("change", () => turn(box.checked ? k.steps[1]! : "", true));
  return [h("label", { class: "on-off" }, h("span", {}, k.title), box)];
}

function slider(
  k: Knob,
  own: string,
  steps: string[],
  about: Record<string, string>,
  turn: Turn,
): HTMLElement[] {
  const out = h("output", { for: about.id! }, k.shown(own)),
    input = h("input", {
      ...about,
      type: "range",
      min: "0",
      max: String(steps.length - 1),
      step: "1",
      value: String(steps.indexOf(own)),
      "aria-valuetext": k.shown(own),
    });
  const to = (rest: boolean) => {
    const value = steps[Number(input.value)]!;
    out.textContent = k.shown(value);
    input.setAttribute("aria-valuetext", k.shown(value));
    turn(value, rest);
  };
  input.addEventListener("input", () => to(false));
  input.addEventListener("change", () => to(true));
  return [h("label", { for: about.id! }, k.title, out), input];
}

/** One setting of the allocator: a switch where it has two values, else a slider. */
function knobOf(k: Knob, own: string, set: (value: string, rest: boolean) => void): HTMLElement {
  const steps = stepsOf(k, own),
    id = `knob-${k.name}`,
    about = { id, "aria-describedby": `${id}-says` },
    says = h("small", { id: `${id}-says` }, k.says);
  const turn = (value: string, rest: boolean) => {
    whole.classList.toggle("changed", value !== "");
    set(value, rest);
  };
  const whole = h(
    "div",
    { class: own ? "knob changed" : "knob" },
    ...(steps.length === 2 ? onOff(k, own, about, turn) : slider(k, own, steps, about, turn)),
    says,
  );
  return whole;
}

/** Adds the GPUs of the catalogue that PyTorch's allocator runs on, the smallest first. */
async function fillGPUs(select: HTMLSelectElement): Promise<void> {
  const all = await catalogue();
  select.append(
    ...all
      .filter((g) => g.vendor.toLowerCase() === "nvidia")
      .sort((a, b) => a.total_bytes - b.total_bytes)
      .map((g) => h("option", { value: g.gpu }, `${g.name}, ${bytes(g.total_bytes)}`)),
  );
}

/** The two ways to say how much memory there is. */
const limits = (gpu: HTMLElement, memory: HTMLElement): HTMLElement[] => [
  h(
    "div",
    { class: "knob" },
    h("label", { for: "knob-gpu" }, "GPU"),
    gpu,
    h(
      "small",
      { id: "knob-gpu-says" },
      "Its memory, less what a process's context takes, is the limit. " +
        "As recorded, it is what the allocator could have, where the trace tells.",
    ),
  ),
  h(
    "div",
    { class: "knob" },
    h("label", { for: "knob-memory" }, "Or so much memory"),
    memory,
    h("small", { id: "knob-memory-says" }, "What the allocator can have, as 24GiB."),
  ),
];

/**
 * The knobs, the GPU and the memory. changed is told with true when a slider has come to rest, or a
 * switch was turned.
 */
export function knobPanel(
  settings: Map<string, string>,
  changed: (rest: boolean) => void,
  limited: (to: Limit) => void,
): { element: HTMLElement; adopt(line: string): void; limit(to: Limit): void } {
  const places = h("div", { class: "knobs" });
  let now: Limit = {};
  const turned = (to: Limit) => {
    now = to;
    limited(to);
  };
  const build = () =>
    places.replaceChildren(
      ...knobs.map((k) =>
        knobOf(k, settings.get(k.name) ?? "", (value, rest) => {
          if (value) settings.set(k.name, value);
          else settings.delete(k.name);
          changed(rest);
        }),
      ),
    );
  const gpu = h(
      "select",
      { id: "knob-gpu", "aria-describedby": "knob-gpu-says" },
      h("option", { value: "" }, "as recorded"),
    ),
    memory = h("input", {
      type: "text",
      id: "knob-memory",
      placeholder: "24GiB",
      spellcheck: "false",
      "aria-describedby": "knob-memory-says",
    });
  void fillGPUs(gpu).then(
    () => {
      gpu.value = now.gpu ?? "";
    },
    () => undefined,
  );
  gpu.addEventListener("change", () => {
    memory.value = "";
    turned(gpu.value ? { gpu: gpu.value } : {});
  });
  memory.addEventListener("change", () => {
    gpu.value = "";
    turned(memory.value.trim() ? { memory: memory.value.trim() } : {});
  });
  const back = h("button", { type: "button", class: "button" }, "Default settings");
  back.addEventListener("click", () => {
    settings.clear();
    build();
    changed(true);
  });
  build();
  const element = h(
    "div",
    { class: "knobs" },
    ...limits(gpu, memory),
    places,
    h("div", { class: "knobs-end" }, back),
  );
  return {
    element,
    adopt: (line) => {
      settings.clear();
      for (const [k, v] of parsed(line)) settings.set(k, v);
      build();
    },
    limit: (to) => {
      now = to;
      gpu.value = to.gpu ?? "";
      memory.value = to.memory ?? "";
    },
  };
}
