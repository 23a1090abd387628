// Paints a tile on a raster: where what lies, in which colour.

import type { Blocks } from "../../../api";
import { faint } from "../../../draw/theme";
import { area, course, fill, mix, pixel, type Box, type Raster } from "./raster";
import type { Shape } from "./tile";

export type Colours = (name: string) => string;

/**
 * What decides about the colours of shapes: a function for each, and whether what a search did not
 * find is dim.
 */
export interface Inking {
  ink: (s: Shape) => string;
  dim: boolean;
}

/** A tile with its shapes, and their colours once they were painted. */
export interface Drawn {
  tile: Blocks;
  all: Shape[];
  inks?: Int32Array;
  inked?: string;
  by?: Inking["ink"];
}

/**
 * Where the window begins, in points and bytes, and pixels of each; ratio is pixels of the screen
 * in one of the page.
 */
export interface Scale {
  from: number;
  low: number;
  perPoint: number;
  perByte: number;
  ratio: number;
}

/** Reads each colour of the theme once. */
export function remembered(colour: Colours): Colours {
  const known = new Map<string, string>();
  return (name) => {
    let c = known.get(name);
    if (c === undefined) known.set(name, (c = colour(name)));
    return c;
  };
}

/** Where a tile lies. */
export function boxOf(t: Blocks, s: Scale, on: Raster): Box {
  const y = (b: number) => Math.round(on.height - (b - s.low) * s.perByte),
    x = (p: number) => Math.round((p - s.from) * s.perPoint);
  const inside = (v: number, most: number) => Math.min(Math.max(v, 0), most);
  return {
    left: inside(x(t.from), on.width),
    right: inside(x(t.to), on.width),
    top: inside(y(t.high), on.height),
    bottom: inside(y(t.low), on.height),
  };
}

/**
 * Paints a tile into a box: what was allocated as an area, where what no block covers are blocks
 * too small to draw; what was reserved as a line.
 */
export function paint(
  on: Raster,
  box: Box,
  of: Drawn,
  s: Scale,
  by: Inking,
  colour: Colours,
): void {
  const { tile: t, all } = of,
    { from, low, perPoint, perByte } = s,
    high = on.height,
    ground = pixel(colour("raised")),
    last = t.at.length - 1;
  const level = (values: number[]) => {
    const heights = new Int32Array(on.width);
    for (let x = box.left; x < box.right; x++) {
      const i = Math.floor((from + (x + 0.5) / perPoint - t.from) / t.step);
      heights[x] = i < 0 || i > last ? high + 9 : Math.round(high - (values[i]! - low) * perByte);
    }
    return heights;
  };
  area(on, box, level(t.at), pixel(faint(colour("muted"), 0.45), ground), ground);
  const inks = inksOf(of, by, colour, ground),
    begin = from + box.left / perPoint,
    end = from + box.right / perPoint;
  for (let k = 0; k < all.length; k++) {
    const { point, offset, bytes } = all[k]!,
      steps = offset.length;
    if (point[steps]! <= begin || point[0]! >= end) continue;
    const ink = inks[k]!,
      edge = mix(ink, ground, 0.6);
    for (let i = 0; i < steps; i++) {
      const left = Math.round((point[i]! - from) * perPoint),
        right = Math.round((point[i + 1]! - from) * perPoint);
      if (right <= left || right <= box.left || left >= box.right) continue;
      const bottom = Math.round(high - (offset[i]! - low) * perByte),
        top = Math.round(high - (offset[i]! + bytes - low) * perByte);
      if (bottom <= top || bottom <= box.top || top >= box.bottom) continue;
      fill(on, box, left, top, right, bottom, ink);
      // tells neighbours of one colour apart
      if (bottom - top > 3 * s.ratio) fill(on, box, left, top, right, top + 1, edge);
      if (i === steps - 1 && right - left > 4 * s.ratio)
        fill(on, box, right - 1, top, right, bottom, edge);
    }
  }
  course(on, box, level(t.reserved), Math.round(s.ratio), pixel(colour("reserved"), ground));
}

/** The colours of a tile's shapes, made once for what decides about them. */
function inksOf(of: Drawn, by: Inking, colour: Colours, ground: number): Int32Array {
  const inked = `${by.dim} ${ground} ${colour("muted")}`;
  if (of.inks && of.by === by.ink && of.inked === inked) return of.inks;
  const dim = pixel(faint(colour("muted"), 0.25), ground),
    known = new Map<string, number>();
  of.inks = Int32Array.from(of.all, (s) => {
    if (by.dim && !s.found) return dim;
    const ink = by.ink(s);
    let made = known.get(ink);
    if (made === undefined) known.set(ink, (made = pixel(ink, ground)));
    return made;
  });
  [of.by, of.inked] = [by.ink, inked];
  return of.inks;
}
