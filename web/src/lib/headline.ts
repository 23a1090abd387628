// A headline with one figure: what else its sentence says stands below it.

const figure = /\d[\d,.]*\s(?:B|[KMGTP]iB|ns|µs|ms|s|min|h|%)(?![A-Za-z])/g,
  seam = /(?:\. |[,:;] | \(| ± | in a trace that )/g;

/** Whether a place is within parentheses. */
const within = (text: string, at: number): boolean =>
  (text.slice(0, at).match(/\(/g)?.length ?? 0) > (text.slice(0, at).match(/\)/g)?.length ?? 0);

const figures = (text: string): number => text.match(figure)?.length ?? 0;

/**
 * The clauses of a headline as one with at most one figure, where it has a seam there, and the rest
 * as a sentence or more.
 */
export function headed(clauses: string[]): { head: string; rest: string } {
  const [first = "", ...more] = clauses;
  const at =
    figures(first) > 1
      ? [...first.matchAll(seam)]
          .map((m) => m.index)
          .filter((i) => i > 0 && !within(first, i) && figures(first.slice(0, i)) <= 1)
          .at(-1)
      : undefined;
  const head = at === undefined ? first : first.slice(0, at),
    left = at === undefined ? "" : first.slice(at).replace(/^[.,:;]?\s+/, "");
  return { head, rest: [left, ...more].filter(Boolean).join("; ") };
}
