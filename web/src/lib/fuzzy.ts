// Finds what somebody means by a few letters: all of them in their order, better at the beginnings
// of words and side by side.

export interface Found {
  score: number;
  at: number[];
} // at: where the letters stand

/**
 * How well the letters fit a text; null where they are not in it in their order. Spaces ask for
 * words in any order.
 */
export function fuzzy(letters: string, text: string): Found | null {
  const words = letters.toLowerCase().split(/\s+/).filter(Boolean);
  let score = 0;
  const at = new Set<number>();
  for (const word of words) {
    const found = one(word, text);
    if (!found) return null;
    score += found.score;
    for (const i of found.at) at.add(i);
  }
  return { score: score - text.length / 1000, at: [...at].sort((a, b) => a - b) };
}

function one(word: string, text: string): Found | null {
  const low = text.toLowerCase(),
    whole = low.indexOf(word);
  if (whole >= 0)
    return {
      score: word.length * 3 + (begins(text, whole) ? 6 : 0) + (whole === 0 ? 2 : 0),
      at: Array.from(word, (_, i) => whole + i),
    };
  const at: number[] = [];
  let score = 0,
    from = 0;
  for (const letter of word) {
    let next = low.indexOf(letter, from);
    if (next < 0) return null;
    for (let i = next; i >= 0; i = low.indexOf(letter, i + 1))
      if (begins(text, i)) {
        next = rest(low, word, at.length, i) ? i : next;
        break;
      }
    score += (at.length > 0 && next === at.at(-1)! + 1 ? 2 : 0) + (begins(text, next) ? 2 : 0.5);
    at.push(next);
    from = next + 1;
  }
  return { score: score - (at.at(-1)! - at[0]!) / 50, at };
}

/** Whether what is left of the word can still follow. */
function rest(low: string, word: string, done: number, at: number): boolean {
  for (let i = done, from = at; i < word.length; i++) {
    const next = low.indexOf(word[i]!, from);
    if (next < 0) return false;
    from = next + 1;
  }
  return true;
}

const begins = (text: string, i: number) =>
  i === 0 ||
  /[\s/:._,(-]/.test(text[i - 1]!) ||
  (/[a-z]/.test(text[i - 1]!) && /[A-Z]/.test(text[i]!));

/** What fits, best first; all of it in its order where nothing is asked. */
export function search<T>(
  letters: string,
  items: T[],
  text: (item: T) => string,
): { item: T; at: number[] }[] {
  if (!letters.trim()) return items.map((item) => ({ item, at: [] }));
  return items
    .flatMap((item) => {
      const found = fuzzy(letters, text(item));
      return found ? [{ item, ...found }] : [];
    })
    .sort((a, b) => b.score - a.score);
}
