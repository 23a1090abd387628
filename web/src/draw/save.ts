// What is shown as a file: a picture as SVG or PNG of twice its size, with its title above it; a
// table as CSV.

import { pictureOf } from "./panel";
import { s, wide } from "./svg";
import { theme } from "./theme";

/** A copy of a picture that stands alone: on its background, below its title. */
export function alone(svg: SVGSVGElement, title: string, lines: string[]): string {
  const colour = theme(),
    pad = 20,
    width = svg.width.baseVal.value,
    head = 34 + lines.length * 19;
  const whole = [width + 2 * pad, svg.height.baseVal.value + head + pad] as const;
  const copy = svg.cloneNode(true) as SVGSVGElement;
  for (const e of copy.querySelectorAll("[tabindex], [role], [data-on]"))
    for (const a of ["tabindex", "role", "aria-pressed", "data-on", "class"]) e.removeAttribute(a);
  const inner = s("g", { transform: `translate(${pad} ${head})` }, ...copy.childNodes);
  const out = s(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      width: whole[0],
      height: whole[1],
      viewBox: `0 0 ${whole[0]} ${whole[1]}`,
      "font-family": svg.getAttribute("font-family")!,
      "font-size": 12,
    },
    s("title", {}, title),
    s("rect", { width: whole[0], height: whole[1], fill: colour("panel") }),
    s(
      "text",
      {
        x: pad,
        y: 27,
        "font-size": 16,
        "font-weight": 650,
        fill: colour("text"),
        ...(wide(title, 16, 650) > width
          ? { textLength: width, lengthAdjust: "spacingAndGlyphs" }
          : {}),
      },
      title,
    ),
    ...lines.map((line, i) =>
      s(
        "text",
        {
          x: pad,
          y: 48 + i * 19,
          fill: colour("muted"),
          ...(wide(line) > width ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {}),
        },
        line,
      ),
    ),
    inner,
  );
  return new XMLSerializer().serializeToString(out);
}

/** Has the browser save a file. */
export const save = (blob: Blob, name: string): void => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

export const saveSVG = (text: string, name: string): void =>
  save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);

export const saveCSV = (text: string, name: string): void =>
  save(new Blob([text], { type: "text/csv" }), `${name}.csv`);

/**
 * Draws the picture at twice its size. It asks for nothing outside the page: the picture is a data
 * address.
 */
export async function savePNG(text: string, name: string): Promise<void> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas"),
    scale = Math.min(2, 16_000 / Math.max(image.width, image.height));
  [canvas.width, canvas.height] = [image.width * scale, image.height * scale];
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  context.drawImage(image, 0, 0);
  await new Promise<void>((done) =>
    canvas.toBlob((blob) => {
      if (blob) save(blob, `${name}.png`);
      done();
    }, "image/png"),
  );
}

/** A panel as it is shown, named after its title and the page's. */
export async function savePanel(panel: HTMLElement, title: string): Promise<void> {
  const blob = await pictureOf(panel, document.title);
  if (blob) save(blob, `${fileName(document.title.replace(/ · hightide$/, ""), title)}.png`);
}

/** A file's name from words. */
export const fileName = (...words: string[]): string =>
  words
    .join("-")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "") || "chart";
