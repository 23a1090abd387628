// A page as it is shown now, as one file: what stands in it, its pictures and its style sheets. No
// script is in it, so its buttons and fields do nothing; what unfolds still does.

import { wallClock } from "../../lib/format";
import { h } from "../../views/dom";

/** Rows that are drawn only while they are in view are all drawn between these two. */
export const wholeEvents = ["hightide:whole", "hightide:again"] as const;

// what is there to be clicked, and what is not shown
const left =
  ".learn, .as-picture, .saves, .copied, .tip, .lesson, dialog, script, [hidden], [popover], " +
  "input[type=file], input[type=password]";

// a file that opens with a script in it is none of ours
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/** The page in an element, as the text of one HTML file. */
export function asShown(page: HTMLElement, now = Date.now()): string {
  dispatchEvent(new Event(wholeEvents[0]));
  const copy = page.cloneNode(true) as HTMLElement,
    from = [page, ...page.querySelectorAll("*")],
    to = [copy, ...copy.querySelectorAll("*")];
  dispatchEvent(new Event(wholeEvents[1]));
  for (const [i, e] of from.entries()) settle(e, to[i]!);
  for (const e of copy.querySelectorAll(left)) e.remove();
  for (const e of copy.querySelectorAll("h2, h3"))
    if (!e.textContent?.trim()) e.textContent = "Not drawn yet";
  for (const e of copy.querySelectorAll(".scroll:not([tabindex])")) e.setAttribute("tabindex", "0");
  copy.prepend(
    h(
      "p",
      { class: "hint as-it-was" },
      `As it was shown at ${wallClock(now * 1e6)}; this file does not change. ` +
        "Its buttons and fields do nothing.",
    ),
  );
  const file = document.implementation.createHTMLDocument(document.title),
    root = file.documentElement;
  root.lang = document.documentElement.lang;
  root.dataset.theme = document.documentElement.dataset.theme ?? "light";
  file.head.prepend(
    h("meta", { charset: "utf-8" }),
    h("meta", { "http-equiv": "Content-Security-Policy", content: policy }),
    h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
    h("meta", { name: "referrer", content: "no-referrer" }),
  );
  file.head.append(h("style", {}, styles(innerWidth)));
  file.body.append(copy);
  return `<!doctype html>\n${root.outerHTML}\n`;
}

/** What differs without scripts, after the page's style sheets: below a width pictures shrink. */
function styles(width: number): string {
  const own = `
button:disabled, button:disabled:hover { opacity: 1; cursor: auto; }
@media (max-width: ${width - 1}px) {
  canvas, svg.as-drawn { max-width: 100%; height: auto !important; }
  .uplot, .uplot * { max-width: 100%; }
}`;
  return [...document.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText))
    .concat(own)
    .join("\n");
}

/** Makes a copied element what its original looks like. */
function settle(e: Element, copy: Element): void {
  for (const { name, value } of [...copy.attributes])
    if (name.startsWith("on") || (leads.has(name) && !stays(e, name, value)))
      copy.removeAttribute(name);
  if (e instanceof HTMLCanvasElement) picture(e, copy as HTMLElement);
  else if (e instanceof HTMLInputElement) {
    copy.setAttribute("value", e.value);
    copy.toggleAttribute("checked", e.checked);
  } else if (e instanceof HTMLTextAreaElement) copy.textContent = e.value;
  else if (e instanceof HTMLOptionElement) copy.toggleAttribute("selected", e.selected);
  else if (e instanceof SVGSVGElement) drawn(e, copy);
  if (copy.matches("button, input, select, textarea")) copy.toggleAttribute("disabled", true);
}

const leads = new Set(["href", "xlink:href", "src", "srcset", "action", "formaction", "ping"]);

/** Whether an address works without the server: a place of this page, or another site's page. */
function stays(e: Element, name: string, value: string): boolean {
  if (name !== "href" || !(e instanceof HTMLAnchorElement)) return value.startsWith("#");
  if (value.startsWith("#")) return true;
  return /^https?:$/.test(e.protocol) && e.origin !== location.origin;
}

/** A canvas keeps its place and size, and has what was drawn on it behind it. */
function picture(e: HTMLCanvasElement, copy: HTMLElement): void {
  if (e.getAttribute("role") === "img" && !e.getAttribute("aria-label")) {
    copy.removeAttribute("role"); // nothing is drawn on it yet
  }
  if (e.width && e.height)
    copy.style.background = `url(${e.toDataURL("image/png")}) 0 0 / 100% 100% no-repeat`;
}

/** A chart of a fixed size can become smaller as a whole. */
function drawn(e: SVGSVGElement, copy: Element): void {
  const [width, height] = [e.getAttribute("width"), e.getAttribute("height")].map(Number);
  if (!width || !height) return;
  if (!e.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.classList.add("as-drawn");
}
