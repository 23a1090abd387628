// Where the ticks of an axis stand, and what stands beside them.

import type { Unit } from "../api";

/** Steps of an axis in bytes: powers of two, so that every tick is a round binary size. */
export const byteSteps = Array.from({ length: 66 }, (_, i) => 2 ** i);

/** Steps of an axis in seconds: 1, 2, 5 below a minute, then what clocks count in. */
export const secondSteps = [
  ...Array.from({ length: 9 }, (_, i) => i - 9).flatMap((d) => [
    Number(`1e${d}`),
    Number(`2e${d}`),
    Number(`5e${d}`),
  ]),
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  14400,
  28800,
  43200,
  ...[1, 2, 5, 10, 20, 50, 100].map((d) => d * 86400),
];

/** Steps of an axis of anything else: 1, 2, 5. */
const plainSteps = Array.from({ length: 20 }, (_, i) => i - 2).flatMap((d) => [
  Number(`1e${d}`),
  Number(`2e${d}`),
  Number(`5e${d}`),
]);

/** Round values from zero up to a highest one, at most so many steps. */
export function ticks(top: number, unit: Unit, most: number): number[] {
  const steps =
    unit === "bytes" ? byteSteps : unit === "ns" ? secondSteps.map((s) => s * 1e9) : plainSteps;
  const step = steps.find((s) => top / s <= most) ?? top;
  return step > 0 ? Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step) : [0];
}

/** Round values within a range, at most so many steps apart. */
export function between(
  [low, high]: readonly [number, number],
  unit: Unit,
  most: number,
): number[] {
  const [, step = 0] = ticks(high - low, unit, most);
  if (!(step > 0)) return [];
  const first = Math.ceil(low / step - 1e-9);
  return Array.from(
    { length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) },
    (_, i) => (first + i) * step,
  );
}

/** A moment on an axis whose ticks stand step seconds apart: 0.25 s, 45 s, 1:30, 2:00:00. */
export function moment(seconds: number, step: number): string {
  if (seconds < 60 && step < 60) {
    const [unit, scale] =
      step >= 0.01 || step === 0
        ? ["s", 1]
        : step >= 1e-5
          ? ["ms", 1e3]
          : step >= 1e-8
            ? ["µs", 1e6]
            : ["ns", 1e9];
    const digits = Math.max(0, Math.ceil(-Math.log10(step * scale || 1) - 1e-9));
    return `${(seconds * scale).toFixed(Math.min(digits, 3))} ${unit}`;
  }
  const two = (n: number) => String(n).padStart(2, "0");
  const whole = Math.floor(seconds + 1e-6),
    fraction = step < 1 ? (seconds - whole).toFixed(2).slice(1) : "";
  const h = Math.floor(whole / 3600),
    m = Math.floor((whole % 3600) / 60),
    s = two(whole % 60) + fraction;
  return h ? `${h}:${two(m)}:${s}` : `${m}:${s}`;
}

/** Limits of a vertical axis that begins at zero and leaves room above the highest value. */
export function fromZero(low: number | null, high: number | null): [number, number] {
  const top = high !== null && high > 0 ? high * 1.14 : 1;
  return [low !== null && low < 0 ? low * 1.1 : 0, top];
}

/** A window of a whole range, kept inside it and no smaller than least. */
export function inside(
  [from, to]: [number, number],
  [begin, end]: [number, number],
  least: number,
): [number, number] {
  const width = Math.min(Math.max(to - from, least), end - begin);
  const start = Math.min(Math.max(from, begin), end - width);
  return [start, start + width];
}
