// Memory as a tape: one address after the other, row under row on a canvas.

/** Where the tape lies: so many bytes a row; the last row takes all that is left. */
export interface Tape {
  ctx: CanvasRenderingContext2D;
  width: number;
  per: number; // bytes
  row: number; // pixels from one to the next
  rows: number; // Infinity: as many as it takes
}

interface Sized {
  size_bytes: number;
}

/** Paints a stretch of memory, row by row; paint is told where a part of it lies. */
export function put(
  { width, per, row, rows }: Tape,
  from: number,
  size: number,
  paint: (x: number, y: number, w: number) => void,
): void {
  for (let at = from; at < from + size - 1e-6;) {
    const line = Math.min(Math.floor(at / per + 1e-9), rows - 1),
      end = Math.min(from + size, line === rows - 1 ? Infinity : (line + 1) * per);
    paint(((at - line * per) / per) * width, line * row, ((end - at) / per) * width);
    at = end;
  }
}

/** A thin line where each segment begins that is wider than so many pixels. */
export function edges(
  { ctx, width, per, row, rows }: Tape,
  segments: Sized[],
  { least, y, high }: { least: number; y: number; high: number },
): void {
  let from = 0;
  for (const { size_bytes: size } of segments) {
    const line = Math.min(Math.floor(from / per + 1e-9), rows - 1);
    if ((size / per) * width > least)
      ctx.fillRect(((from - line * per) / per) * width, line * row + y, 1, high);
    from += size;
  }
}

/** The number of the last of some stretches that begins at an offset or before it. */
export function lastAt(
  all: { from: number }[],
  offset: number,
  low = 0,
  high = all.length - 1,
): number {
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (all[middle]!.from <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
