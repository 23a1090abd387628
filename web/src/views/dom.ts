// Elements, and the small parts that several views have.

import type { Label } from "../api";
import { lessonOf } from "../lib/learn";

export type Child = Node | string | null | undefined | false | 0;

/**
 * An element with attributes and children. Texts are texts: nothing from a report is ever markup.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child) element.append(child);
  return element;
}

/** A picture of one path, in a box of width × height that stretches. */
export function svg(
  className: string,
  width: number,
  height: number,
  ...paths: [className: string, d: string][]
): SVGElement {
  const space = "http://www.w3.org/2000/svg";
  const element = document.createElementNS(space, "svg");
  element.setAttribute("class", className);
  element.setAttribute("viewBox", `0 0 ${width} ${height}`);
  element.setAttribute("preserveAspectRatio", "none");
  element.setAttribute("aria-hidden", "true");
  for (const [name, d] of paths) {
    const path = document.createElementNS(space, "path");
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    element.append(path);
  }
  return element;
}

/** A text whose `quoted` parts are code. */
export const rich = (text: string): (Node | string)[] =>
  text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));

const meanings: Record<string, string> = {
  measured: "read from the system or the framework",
  sampled: "a random sample, with an error",
  estimated: "computed from other figures",
  imagined: "of a device that is not there",
  replayed: "of a recording that was run again",
};

/** Where a figure comes from. */
export const badge = (label: Label) =>
  label ? h("span", { class: `badge ${label}`, title: meanings[label] ?? "" }, label) : null;

/** The button that explains a panel (see learn.ts); null where lib/learn.ts has no text for it. */
export const explainer = (id: string, title: string): HTMLElement | null =>
  lessonOf(id)
    ? h(
        "button",
        {
          type: "button",
          class: "learn",
          "data-lesson": id,
          "aria-label": `Explain: ${title}`,
          "aria-expanded": "false",
          title: "What is this? (key i)",
        },
        "i",
      )
    : null;

/**
 * A section with a heading that a link can point at. Where lib/learn.ts has a text, a button
 * explains it (learn.ts) and one saves its picture.
 */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title` }, title),
    button = explainer(id, title);
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    button
      ? h(
          "div",
          { class: "titled" },
          heading,
          button,
          h(
            "button",
            {
              type: "button",
              class: "as-picture",
              "aria-label": `Panel as PNG: ${title}`,
              title: "Save this panel as a picture (PNG)",
            },
            "⤓",
          ),
        )
      : heading,
    ...children,
  );
}

/**
 * What may be wider than its place: it scrolls, and fades at the right edge while there is more.
 */
export function sideways(attributes: Record<string, string>, ...children: Child[]): HTMLElement {
  const element = h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", ...attributes },
    ...children,
  );
  const look = () =>
    element.classList.toggle(
      "goes-on",
      element.scrollWidth - element.clientWidth - element.scrollLeft > 2,
    );
  element.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(element);
  return element;
}

/** A button that puts a text on the clipboard and says so. */
export function copier(
  text: string,
  attributes: Record<string, string>,
  ...children: Child[]
): HTMLButtonElement {
  const button = h(
    "button",
    { type: "button", ...attributes, title: `${text}\nClick to copy` },
    ...children,
    h("span", { class: "copied", role: "status" }),
  );
  const said = button.lastElementChild!;
  button.addEventListener(
    "click",
    () =>
      void copy(text).then((done) => {
        said.textContent = done ? "copied" : "select it to copy";
        setTimeout(() => {
          said.textContent = "";
        }, 1500);
      }),
  );
  return button;
}

/**
 * Whether it could. Pages from a disk, or over plain HTTP, have no clipboard's interface; the old
 * way still works there.
 */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement,
      field = h("textarea", { readonly: "", style: "position:fixed;opacity:0" });
    field.value = text;
    // beside a dialog that is open nothing takes the focus
    (document.querySelector("dialog:modal") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true }); // the field took it
    return done;
  }
}
