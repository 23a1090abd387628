// The colours of the theme, measured: text and marks against what they lie on (WCAG 2.2, 1.4.3 and
// 1.4.11), and the colours of one legend against each other, also as people with protanopia and
// deuteranopia see them.

import { describe, expect, test } from "vitest";
import { readable } from "../draw/svg";
import { categories, inkOf } from "../lib/categories";
import { phaseNames } from "../lib/phases";
import { laneText } from "../tracks/paint";
import sheet from "./theme.css?raw";

type Three = [number, number, number];

const [light, dark] = [...sheet.matchAll(/\{([^}]*)\}/g)].map((block) =>
  Object.fromEntries(
    [...block[1]!.matchAll(/--([\w-]+): *(#[0-9a-f]{6});/g)].map((m) => [m[1]!, m[2]!]),
  ),
);
const themes: Record<string, Record<string, string>> = {
  light: light!,
  dark: { ...light, ...dark },
};

const linear = (hex: string) =>
  [1, 3, 5].map((i) => {
    const v = parseInt(hex.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  }) as Three;
const luminance = (hex: string) => {
  const [r, g, b] = linear(hex);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a: string, b: string) => {
  const [low, high] = [luminance(a), luminance(b)].sort((p, q) => p - q);
  return (high! + 0.05) / (low! + 0.05);
};

// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
// Deficiency", IEEE Transactions on Visualization and Computer Graphics 15(6), 2009; severity 1.0,
// on linear RGB.
const sights: Record<string, [Three, Three, Three]> = {
  "full colour vision": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};

/** A colour in CIELAB (D65), as someone with that sight sees it. */
function lab(hex: string, sight: string): Three {
  const c = linear(hex),
    [r, g, b] = sights[sight]!.map((row) =>
      Math.min(1, Math.max(0, row[0] * c[0] + row[1] * c[1] + row[2] * c[2])),
    ) as Three;
  const f = (t: number) => (t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047),
    y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b),
    z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const distance = (a: string, b: string, sight: string) => {
  const to = lab(b, sight);
  return Math.hypot(...lab(a, sight).map((v, i) => v - to[i]!));
};

// A difference of about 2.3 (CIE76) is just noticed where two large patches touch (Mahy, Van Eycken
// and Oosterlinck, 1994). A legend's sample and its mark are small and lie apart: four times that,
// rounded up.
const least = 10;

const curves = Array.from({ length: 8 }, (_, i) => `curve-${i}`),
  blocks = Array.from({ length: 7 }, (_, i) => `block-${i}`),
  steps = Array.from({ length: 7 }, (_, i) => `step-${i}`);
const legends: Record<string, string[]> = {
  "curves of a chart": curves,
  "blocks by size, stack or stream": blocks,
  phases: phaseNames.map((n) => `phase-${n}`),
  categories: categories.map(inkOf),
  "host memory": ["rss", "pss", "uss"],
  "figures of a run": ["rss", "pss", "heap", "allocated"],
  "framework allocator": ["reserved", "allocated", "curve-0", "curve-2", "gaps"],
  "device memory": ["device", "curve-6"],
  "control group": ["group", "limit"],
  "memory of the host": ["system", "limit"],
  "cached memory": ["curve-7", "block-1", "block-0", "reserved"],
  "as recorded and as replayed": ["curve-7", "curve-0", "curve-1"],
  "page faults": ["curve-7", "limit"],
  "retries and failures": ["curve-4", "limit"],
  "a segment's bytes": ["curve-0", "curve-7", "warning", "curve-5", "critical"],
  states: ["critical", "warning", "info", "fine"],
};

describe.each(Object.entries(themes))("%s", (_, colours) => {
  const of = (name: string) => {
    const value = colours[name];
    if (!value) throw new Error(`theme.css has no --${name}`);
    return value;
  };
  const pale = (pairs: [string, string][], bar: number) =>
    pairs
      .map(([ink, on]) => ({ ink, on, is: contrast(of(ink), of(on)) }))
      .filter(({ is }) => is < bar)
      .map(({ ink, on, is }) => `${ink} on ${on}: ${is.toFixed(2)}`);
  const across = (inks: string[], grounds: string[]) =>
    inks.flatMap((ink) => grounds.map((on): [string, string] => [ink, on]));

  test("text reads on what it lies on: 4.5 to 1", () => {
    const states = ["critical", "warning", "info", "fine"];
    expect(
      pale(
        [
          ...across(
            ["text", "muted", "accent", ...states],
            ["page", "panel", "raised", "tint", "track", "bar"],
          ),
          ...states.flatMap((s) => across([s, "text", "muted"], [`${s}-tint`])),
        ],
        4.5,
      ),
    ).toEqual([]);
  });
  test("marks stand out from what they lie on: 3 to 1", () => {
    // of --step-… only the order is held below: a scale that runs from pale to dark cannot stand
    // out at both ends
    expect(
      pale(across([...new Set(Object.values(legends).flat())], ["panel", "raised", "page"]), 3),
    ).toEqual([]);
  });
  test("the name of a phase reads in its lane: 4.5 to 1", () => {
    expect(
      phaseNames
        .map((n) => of(`phase-${n}`))
        .map((ink) => contrast(readable(ink, ...laneText), ink))
        .filter((is) => is < 4.5),
    ).toEqual([]);
  });
  test.each(Object.keys(sights))("colours of one legend differ with %s", (sight) => {
    const near = Object.entries(legends)
      .flatMap(([legend, names]) =>
        names.flatMap((a, i) =>
          names.slice(i + 1).map((b) => ({ legend, a, b, is: distance(of(a), of(b), sight) })),
        ),
      )
      .filter(({ is }) => is < least);
    expect(
      near.map(({ legend, a, b, is }) => `${legend}: ${a} and ${b} by ${is.toFixed(1)}`),
    ).toEqual([]);
  });
  test.each(Object.keys(sights))(
    "the steps of the ordered scale go one way in lightness with %s",
    (sight) => {
      const lightness = steps.map((n) => lab(of(n), sight)[0]),
        way = Math.sign(lightness[6]! - lightness[0]!);
      lightness
        .slice(1)
        .forEach((l, i) =>
          expect((l - lightness[i]!) * way, `${steps[i]} to ${steps[i + 1]}`).toBeGreaterThan(3),
        );
    },
  );
});
