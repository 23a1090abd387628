// A panel as a picture: what stands in it (boxes, texts, charts) is drawn once more on a canvas, as
// it is shown now.

// what is there to be clicked
const left = ".learn, .as-picture, .saves, .copied, .tip, input, button.plain, [hidden]";

/**
 * The panel at twice its size. It holds what is in view of scrolling boxes, and not their bars;
 * gradients and shadows are left out.
 */
export async function pictureOf(panel: HTMLElement, caption: string): Promise<Blob | null> {
  const { left: x, top: y, width, height } = panel.getBoundingClientRect(),
    foot = 26,
    scale = Math.min(2, 16_000 / Math.max(width, height + foot));
  const canvas = document.createElement("canvas"),
    on = canvas.getContext("2d")!;
  [canvas.width, canvas.height] = [Math.ceil(width * scale), Math.ceil((height + foot) * scale)];
  on.scale(scale, scale);
  on.translate(-x, -y);
  const style = getComputedStyle(panel);
  on.fillStyle = opaque(style.backgroundColor)
    ? style.backgroundColor
    : getComputedStyle(document.body).backgroundColor;
  on.fillRect(x, y, width, height + foot);
  const charts = new Map(
    await Promise.all(
      [...panel.querySelectorAll("svg")]
        .filter((s) => s.checkVisibility() && s.clientWidth > 0)
        .map(async (s) => [s, await still(s)] as const),
    ),
  );
  draw(panel, on, charts);
  on.font = `12px ${style.fontFamily}`;
  on.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--muted");
  on.textBaseline = "alphabetic";
  on.fillText(caption, x + 16, y + height + 13);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const opaque = (colour: string) => colour !== "transparent" && !/^rgba\(.*, 0\)$/.test(colour);

function draw(
  e: Element,
  on: CanvasRenderingContext2D,
  charts: Map<SVGSVGElement, HTMLImageElement>,
): void {
  if (e.matches(left) || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    return;
  const style = getComputedStyle(e),
    { left: x, top: y, width, height } = e.getBoundingClientRect();
  on.save();
  on.globalAlpha *= Number(style.opacity);
  box(on, style, x, y, width, height);
  if (style.overflow !== "visible" && style.display !== "inline") {
    on.beginPath();
    on.rect(x, y, width, height);
    on.clip();
  }
  if (e instanceof HTMLCanvasElement) {
    if (e.width && e.height) on.drawImage(e, x, y, width, height);
  } else if (e instanceof SVGSVGElement) {
    const image = charts.get(e);
    if (image) on.drawImage(image, x, y, width, height);
  } else if (e instanceof HTMLSelectElement) choice(on, e, style, x, y, height);
  else
    for (const child of e.childNodes)
      if (child instanceof Element) draw(child, on, charts);
      else if (child instanceof Text) words(on, child, style);
  on.restore();
}

function box(
  on: CanvasRenderingContext2D,
  style: CSSStyleDeclaration,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  on.beginPath();
  on.roundRect(
    x,
    y,
    width,
    height,
    Math.min(parseFloat(style.borderTopLeftRadius) || 0, height / 2),
  );
  if (opaque(style.backgroundColor)) {
    on.fillStyle = style.backgroundColor;
    on.fill();
  }
  const [top, right, bottom, start] = (["Top", "Right", "Bottom", "Left"] as const).map((side) =>
    style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]),
  ) as [number, number, number, number];
  if (top && right && bottom && start) {
    on.strokeStyle = style.borderTopColor;
    on.lineWidth = top;
    on.stroke();
    return;
  }
  for (const [wide, colour, at] of [
    [top, style.borderTopColor, [x, y, width, top]],
    [bottom, style.borderBottomColor, [x, y + height - bottom, width, bottom]],
    [start, style.borderLeftColor, [x, y, start, height]],
    [right, style.borderRightColor, [x + width - right, y, right, height]],
  ] as const)
    if (wide) {
      on.fillStyle = colour;
      on.fillRect(...at);
    }
}

/** Word by word, where the browser put each. */
function words(on: CanvasRenderingContext2D, text: Text, style: CSSStyleDeclaration): void {
  const range = document.createRange();
  on.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  on.fillStyle = style.color;
  on.textBaseline = "alphabetic";
  for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    const { left: x, top, width, height } = range.getBoundingClientRect(),
      said = style.textTransform === "uppercase" ? word.toUpperCase() : word;
    if (!width) continue;
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = on.measureText(said);
    on.fillText(said, x, top + (height - up - down) / 2 + up);
  }
}

function choice(
  on: CanvasRenderingContext2D,
  e: HTMLSelectElement,
  style: CSSStyleDeclaration,
  x: number,
  y: number,
  height: number,
): void {
  on.font = `${style.fontSize} ${style.fontFamily}`;
  on.fillStyle = style.color;
  on.textBaseline = "middle";
  on.fillText(
    e.selectedOptions[0]?.text ?? "",
    x + parseFloat(style.paddingLeft) + 1,
    y + height / 2,
  );
}

/**
 * A chart as an image of its own, with the colours and sizes that the style sheet gives its parts.
 */
async function still(svg: SVGSVGElement): Promise<HTMLImageElement> {
  const copy = svg.cloneNode(true) as SVGSVGElement,
    { width, height } = svg.getBoundingClientRect();
  const parts = [...svg.querySelectorAll("*")];
  for (const [i, part] of [...copy.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(parts[i]!);
    for (const name of [
      "fill",
      "stroke",
      "stroke-width",
      "stroke-dasharray",
      "opacity",
      "fill-opacity",
      "font-size",
      "font-weight",
      "font-family",
      "text-anchor",
    ])
      part.setAttribute(name, style.getPropertyValue(name));
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const image = new Image();
  const text = new XMLSerializer().serializeToString(copy);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  return image;
}
