// A tile as GET /snapshots/{id}/blocks answers it (docs/formats/api.md), and the shapes that it
// draws.

import type { Blocks } from "../../../api";

/** A block of a tile. It lies at offset[i] bytes of the stack from point[i] to point[i + 1]. */
export interface Shape {
  n: number;
  begin: number;
  end: number;
  bytes: number;
  site: number;
  category: number;
  module: number;
  stream: number;
  point: number[];
  offset: number[];
  found: boolean;
}

/** The shapes of a tile, in the order in which they lie on each other. */
export function shapes(tile: Blocks): Shape[] {
  const { blocks, from, step, to, low, unit } = tile,
    found = new Set(blocks.first ?? []);
  let next = 0;
  return blocks.n.map((n, i) => {
    const point: number[] = [],
      offset: number[] = [],
      steps = blocks.steps[next++]!,
      end = blocks.end[i]!;
    for (let column = 0, units = 0, k = 0; k < steps; k++) {
      column += blocks.steps[next++]!;
      units += blocks.steps[next++]!;
      point.push(from + column * step);
      offset.push(low + units * unit);
    }
    // it is drawn in columns whose first point it lives at
    point.push(end < 0 ? to : Math.min(from + Math.ceil((end - from) / step) * step, to));
    return {
      n,
      begin: blocks.begin[i]!,
      end,
      bytes: blocks.bytes[i]!,
      site: blocks.site[i]!,
      category: blocks.category[i]!,
      module: blocks.module[i]!,
      stream: blocks.stream[i]!,
      point,
      offset,
      found: found.has(i),
    };
  });
}

/** Where a shape lies at a point, in bytes of the stack; null: it does not live then. */
export function offsetAt(shape: Shape, point: number): number | null {
  const { point: points, offset } = shape;
  if (point < points[0]! || point >= points[points.length - 1]!) return null;
  let low = 0,
    high = offset.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (points[middle]! <= point) low = middle;
    else high = middle - 1;
  }
  return offset[low] ?? null;
}

/** The shape at a point and an offset of the stack; undefined: none that is drawn singly. */
export const hit = (all: Shape[], point: number, bytes: number): Shape | undefined =>
  all.find((s) => {
    const offset = offsetAt(s, point);
    return offset !== null && bytes >= offset && bytes < offset + s.bytes;
  });

export type Range = [from: number, to: number];

/**
 * A range, longer by a factor, that keeps a place where it is; inside the whole, and at least so
 * long.
 */
export function zoomed(
  [from, to]: Range,
  place: number,
  factor: number,
  whole: Range,
  least: number,
): Range {
  const length = Math.min(Math.max((to - from) * factor, least), whole[1] - whole[0]),
    share = (place - from) / (to - from);
  return moved([place - share * length, place + (1 - share) * length], 0, whole);
}

/** A range moved by so much, as far as the whole goes. */
export function moved([from, to]: Range, by: number, whole: Range): Range {
  const length = to - from,
    start = Math.min(Math.max(from + by, whole[0]), whole[1] - length);
  return [start, start + length];
}
