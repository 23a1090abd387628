export interface Box<T> {
  item: T;
  x: number;
  y: number;
  w: number;
  h: number;
}

/**
 * Squarified treemap (Bruls, Huizing, van Wijk, 2000): boxes whose areas are as the sizes, near
 * squares, the largest first. Sizes of zero or less get no box.
 */
export function treemap<T>(
  items: T[],
  size: (item: T) => number,
  width: number,
  height: number,
): Box<T>[] {
  const left = items.filter((i) => size(i) > 0).sort((a, b) => size(b) - size(a));
  const total = left.reduce((sum, i) => sum + size(i), 0);
  if (!(total > 0) || !(width > 0) || !(height > 0)) return [];
  const scale = (width * height) / total,
    boxes: Box<T>[] = [];
  let x = 0,
    y = 0,
    w = width,
    h = height;
  while (left.length > 0) {
    const side = Math.min(w, h);
    let row: T[] = [],
      area = 0,
      worst = Infinity;
    while (left.length > 0) {
      const next = size(left[0]!) * scale,
        sum = area + next;
      const ratio = Math.max(
        ...[size(row[0] ?? left[0]!) * scale, next].map((a) =>
          Math.max((side * side * a) / (sum * sum), (sum * sum) / (side * side * a)),
        ),
      );
      if (row.length > 0 && ratio > worst) break;
      row = [...row, left.shift()!];
      area = sum;
      worst = ratio;
    }
    const thick = area / side;
    let along = 0;
    for (const item of row) {
      const length = (size(item) * scale) / thick;
      boxes.push(
        w >= h
          ? { item, x, y: y + along, w: thick, h: length }
          : { item, x: x + along, y, w: length, h: thick },
      );
      along += length;
    }
    if (w >= h) {
      x += thick;
      w -= thick;
    } else {
      y += thick;
      h -= thick;
    }
  }
  return boxes;
}
