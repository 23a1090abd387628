// How many columns of a terminal a character takes: 0, 1 or 2, as wcwidth has it.

const nothing = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff\ufe00-\ufe0f]$/u;
const emoji = /^\p{Emoji_Presentation}$/u;

/**
 * Ranges of East Asian characters of two columns (Unicode's EastAsianWidth W and F), as pairs in
 * order.
 */
const wide = [
  0x1100, 0x115f, 0x2e80, 0x303e, 0x3041, 0x33ff, 0x3400, 0x4dbf, 0x4e00, 0xa4cf, 0xa960, 0xa97f,
  0xac00, 0xd7a3, 0xf900, 0xfaff, 0xfe30, 0xfe6f, 0xff00, 0xff60, 0xffe0, 0xffe6, 0x16fe0, 0x18aff,
  0x1b000, 0x1b2ff, 0x1f200, 0x1f2ff, 0x20000, 0x3fffd,
];

/** The columns of one character (a whole code point). */
export function columns(char: string): 0 | 1 | 2 {
  const code = char.codePointAt(0)!;
  if (code < 0x300) return code === 0xad ? 0 : 1;
  if (nothing.test(char)) return 0;
  if (code < 0x1100) return 1;
  for (let i = 0; i < wide.length && code >= wide[i]!; i += 2) if (code <= wide[i + 1]!) return 2;
  return emoji.test(char) ? 2 : 1;
}

/**
 * Characters that turn the reading order around, by which a text can look like another. They are
 * not shown.
 */
export const turns = (code: number): boolean =>
  (code >= 0x202a && code <= 0x202e) ||
  (code >= 0x2066 && code <= 0x2069) ||
  code === 0x200e ||
  code === 0x200f ||
  code === 0x061c;

const joiner = "\u200d";

/**
 * Whether a character continues the picture before it: skin tones, what follows a joiner, the
 * second letter of a flag.
 */
export function continues(before: string, char: string): boolean {
  const code = char.codePointAt(0)!;
  if (code < 0x1f000) return before.endsWith(joiner) && columns(char) > 0;
  const letter = (c: number) => c >= 0x1f1e6 && c <= 0x1f1ff;
  return (
    before.endsWith(joiner) ||
    (code >= 0x1f3fb && code <= 0x1f3ff && before !== " " && before !== "") ||
    (letter(code) && before.length === 2 && letter(before.codePointAt(0)!))
  );
}
