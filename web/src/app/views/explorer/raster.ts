// Rectangles of whole pixels, painted by hand: thousands of them in a frame are too many for a
// canvas without a graphics card. Edges lie on pixels, so blocks that touch neither overlap nor
// leave a gap.

/**
 * Pixels, row by row, each a colour of pixel(). Signed, so that a colour is a small integer:
 * Chromium writes those three times as fast.
 */
export interface Raster {
  width: number;
  height: number;
  pixels: Int32Array<ArrayBuffer>;
}

/** Whole pixels; right and bottom are the first outside. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export const raster = (width: number, height: number): Raster => ({
  width,
  height,
  pixels: new Int32Array(width * height),
});

/** A colour of the theme (#rgb, #rrggbb, #rrggbbaa) on a ground, as a pixel has it. */
export function pixel(colour: string, ground = 0xff000000 | 0): number {
  const digits =
      colour.length === 4 ? [...colour.slice(1)].map((d) => d + d).join("") : colour.slice(1),
    part = (i: number) => parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  const opacity = digits.length > 6 ? part(3) / 255 : 1,
    mixed = (i: number) =>
      Math.round(part(i) * opacity + ((ground >> (8 * i)) & 255) * (1 - opacity));
  // bytes are red, green, blue, opacity
  return 0xff000000 | (mixed(2) << 16) | (mixed(1) << 8) | mixed(0);
}

/** Two pixels mixed: so much of the first. */
export function mix(a: number, b: number, share: number): number {
  const mixed = (shift: number) =>
    Math.round(((a >> shift) & 255) * share + ((b >> shift) & 255) * (1 - share)) << shift;
  return 0xff000000 | mixed(16) | mixed(8) | mixed(0);
}

/** Fills what of a rectangle lies in a box. */
export function fill(
  on: Raster,
  within: Box,
  left: number,
  top: number,
  right: number,
  bottom: number,
  colour: number,
): void {
  const { width, pixels } = on,
    x0 = Math.max(left, within.left),
    x1 = Math.min(right, within.right),
    y1 = Math.min(bottom, within.bottom);
  if (x1 <= x0) return;
  for (let y = Math.max(top, within.top); y < y1; y++) {
    const from = y * width + x0,
      to = y * width + x1;
    if (x1 - x0 > 12) pixels.fill(colour, from, to);
    else for (let i = from; i < to; i++) pixels[i] = colour;
  }
}

/**
 * Fills a box: in each column from a height downwards with one colour, above with another. tops is
 * by pixel of the whole width.
 */
export function area(
  on: Raster,
  within: Box,
  tops: Int32Array,
  below: number,
  above: number,
): void {
  const { width, pixels } = on,
    { left, top, right, bottom } = within;
  if (right <= left) return;
  const all = tops.subarray(left, right),
    most = all.reduce((a, b) => Math.max(a, b)),
    least = all.reduce((a, b) => Math.min(a, b));
  for (let y = top; y < bottom; y++) {
    if (y < least || y >= most)
      pixels.fill(y < least ? above : below, y * width + left, y * width + right);
    else
      for (let x = left, i = y * width + left; x < right; x++, i++)
        pixels[i] = y >= tops[x]! ? below : above;
  }
}

/** Draws a course as a line of one pixel, with its rises and falls. */
export function course(
  on: Raster,
  within: Box,
  heights: Int32Array,
  thick: number,
  colour: number,
): void {
  for (let x = within.left; x < within.right; x++) {
    const y = heights[x]!,
      before = x > within.left ? heights[x - 1]! : y;
    fill(on, within, x, Math.min(y, before), x + 1, Math.max(y, before) + thick, colour);
  }
}
