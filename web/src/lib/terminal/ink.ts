// The colours in which a style is shown: as the program asked for, and always readable (WCAG AA,
// 4.5 to 1) on the page's own background.

import { trueColour, type Colour, type Style } from "./style";

export type Rgb = readonly [number, number, number];

const light: Rgb[] = [
  [36, 41, 47],
  [192, 37, 58],
  [20, 112, 74],
  [138, 90, 0],
  [10, 102, 194],
  [136, 57, 190],
  [11, 115, 135],
  [86, 99, 116],
  [86, 99, 116],
  [207, 34, 46],
  [26, 127, 55],
  [154, 103, 0],
  [33, 110, 220],
  [150, 70, 200],
  [20, 130, 150],
  [20, 28, 38],
];
const dark: Rgb[] = [
  [110, 122, 138],
  [255, 116, 131],
  [98, 216, 162],
  [245, 192, 79],
  [107, 176, 255],
  [211, 158, 255],
  [79, 209, 224],
  [201, 209, 219],
  [151, 165, 184],
  [255, 150, 160],
  [130, 230, 180],
  [255, 212, 120],
  [140, 195, 255],
  [225, 185, 255],
  [120, 225, 238],
  [255, 255, 255],
];
const backgrounds: Rgb[] = [
  [48, 54, 61],
  [176, 40, 56],
  [28, 120, 80],
  [150, 104, 10],
  [26, 92, 176],
  [120, 60, 170],
  [14, 112, 130],
  [200, 206, 214],
  [110, 118, 129],
  [220, 80, 92],
  [60, 170, 110],
  [214, 160, 40],
  [70, 140, 225],
  [170, 110, 220],
  [50, 165, 180],
  [245, 247, 250],
];

const levels = [0, 95, 135, 175, 215, 255];

function rgb(colour: Colour, sixteen: Rgb[]): Rgb {
  if (colour >= trueColour) return [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255];
  if (colour < 16) return sixteen[colour]!;
  if (colour >= 232) {
    const v = 8 + 10 * (colour - 232);
    return [v, v, v];
  }
  const n = colour - 16;
  return [levels[Math.floor(n / 36)]!, levels[Math.floor(n / 6) % 6]!, levels[n % 6]!];
}

function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((c) => {
    const v = c / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

const between = (a: Rgb, b: Rgb, share: number): Rgb =>
  [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * share)) as unknown as Rgb;
const black: Rgb = [0, 0, 0],
  white: Rgb = [255, 255, 255],
  enough = 4.5;

/**
 * The colour itself where it can be read on the background, else the nearest on its way to black or
 * white that can.
 */
function readableOn(colour: Rgb, background: Rgb): Rgb {
  if (contrast(colour, background) >= enough) return colour;
  const to = contrast(white, background) > contrast(black, background) ? white : black;
  for (let share = 0.1; share < 1; share += 0.1) {
    const tried = between(colour, to, share);
    if (contrast(tried, background) >= enough) return tried;
  }
  return to;
}

export interface Ink {
  fg: Rgb | null;
  bg: Rgb | null;
} // null: the page's own

/** What a style is drawn in, on a page of these colours. */
export function ink(style: Style, page: { dark: boolean; text: Rgb; back: Rgb }): Ink {
  let fg = style.fg === undefined ? null : rgb(style.fg, page.dark ? dark : light),
    bg = style.bg === undefined ? null : rgb(style.bg, backgrounds);
  if (style.inverse) [fg, bg] = [bg ?? page.back, fg ?? page.text];
  const back = bg ?? page.back;
  if (style.dim) fg = between(fg ?? page.text, back, 0.4);
  if (!fg && bg) fg = page.text;
  return { fg: fg && readableOn(fg, back), bg };
}
