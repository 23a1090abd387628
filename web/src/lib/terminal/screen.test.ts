import { describe, expect, test } from "vitest";
import { contrast, ink, type Rgb } from "./ink";
import { mostColumns, Screen, tallest } from "./screen";
import { safeLink, styled } from "./style";
import { columns } from "./width";

const esc = "\x1b";
function rows(text: string, pieces = 1): string[] {
  const screen = new Screen(),
    size = Math.ceil(text.length / pieces);
  for (let i = 0; i < text.length; i += size) screen.write(text.slice(i, i + size));
  return Array.from({ length: screen.high + 1 }, (_, r) => screen.at(r)?.text ?? "");
}
const first = (text: string) => {
  const s = new Screen();
  s.write(text);
  return s.at(0)!.runs;
};

describe("progress bars", () => {
  test("a carriage return writes over, as tqdm does", () =>
    expect(rows("\r 10%|#   |\r100%|####|\ndone")).toEqual(["100%|####|", "done"]));
  test("a shorter text leaves the rest, until it is erased", () => {
    expect(rows("loading\rok")).toEqual(["okading"]);
    expect(rows(`loading\rok${esc}[K`)).toEqual(["ok"]);
    expect(rows(`loading${esc}[2K\rok`)).toEqual(["ok"]);
  });
  test("two bars of tqdm, one below the other", () => {
    const bar = (n: number) => `\router ${n}\n\rinner ${n}${esc}[A`;
    expect(rows(`${bar(1)}${bar(2)}${bar(3)}\n\ndone`)).toEqual(["outer 3", "inner 3", "done"]);
  });
  test("a live display of rich, drawn again from its first row", () => {
    const frame = (n: number) => `step ${n}\nloss ${n}`;
    expect(rows(`${frame(1)}\r${esc}[2K${esc}[1A${esc}[2K${frame(2)}\nend`)).toEqual([
      "step 2",
      "loss 2",
      "end",
    ]);
  });
  test("a backspace goes back, a tab forward", () =>
    expect(rows("ab\b\bX\tY")).toEqual(["Xb      Y"]));
  test("a screen that is cleared begins below", () =>
    expect(rows(`old\n${esc}[2J${esc}[Hnew${esc}[Hnow`)).toEqual(["old", "", "now"]));
  test("wherever the text is torn, the rows are the same", () => {
    const text =
      `\r${esc}[32m 10%${esc}[0m\n漢字 👩‍💻 ` +
      `${esc}]8;;https://a.org/${esc}\\link${esc}]8;;\x07${esc}[A\r${esc}[Kok\n\nend`;
    for (let n = 1; n <= text.length; n++) expect(rows(text, n)).toEqual(rows(text));
  });
  test("a part goes on where the part before ended", () => {
    const screen = new Screen(7, 9, `${esc}[31m`);
    screen.write("x");
    expect(screen.at(7)!.runs).toEqual([{ text: "x", style: { fg: 1 }, wide: false }]);
    expect([screen.high, screen.at(6)]).toEqual([9, undefined]);
  });
});

describe("styles", () => {
  test("16, 256 and true colours", () => {
    expect(
      first(`${esc}[1;31ma${esc}[38;5;208mb${esc}[38;2;1;2;3mc${esc}[38:2::4:5:6md${esc}[0me`).map(
        (r) => [r.text, r.style],
      ),
    ).toEqual([
      ["a", { bold: true, fg: 1 }],
      ["b", { bold: true, fg: 208 }],
      ["c", { bold: true, fg: 0x1010203 }],
      ["d", { bold: true, fg: 0x1040506 }],
      ["e", {}],
    ]);
  });
  test("what is not a colour changes nothing", () => {
    for (const bad of [
      "38",
      "38;5",
      "38;5;999",
      "38;2;1;2",
      "38;2;999;0;0",
      "58;5;1",
      "999",
      "1e9",
    ])
      expect(styled({}, bad).fg).toBeUndefined();
    expect(first(`${esc}[<31mx${esc}[31$my`)).toEqual([{ text: "xy", style: {}, wide: false }]);
  });
  test("every colour can be read, in light and dark", () => {
    const pages: { dark: boolean; text: Rgb; back: Rgb }[] = [
      { dark: false, text: [20, 28, 38], back: [247, 249, 251] },
      { dark: true, text: [232, 237, 244], back: [25, 33, 44] },
    ];
    const faint: object[] = []; // asserted at once: 14,000 assertions take seconds
    const all = [
      undefined,
      ...Array.from({ length: 256 }, (_, i) => i),
      0x1000000,
      0x1ffffff,
      0x1808080,
    ];
    for (const page of pages)
      for (const fg of all)
        for (const bg of [undefined, 0, 1, 3, 7, 11, 15, 244, 0x1808080])
          for (const more of [{}, { dim: true }, { inverse: true }] as const) {
            const { fg: text, bg: back } = ink(
              { ...(fg === undefined ? {} : { fg }), ...(bg === undefined ? {} : { bg }), ...more },
              page,
            );
            if (!(contrast(text ?? page.text, back ?? page.back) >= 4.5))
              faint.push({ fg, bg, more });
          }
    expect(faint).toEqual([]);
  });
  test("wide and combining characters", () => {
    expect(["a", "é", "漢", "👍", "\u0301", "\u200b", "─"].map(columns)).toEqual([
      1, 1, 2, 2, 0, 0, 1,
    ]);
    expect(first("漢x").map((r) => [r.text, r.wide])).toEqual([
      ["漢", true],
      ["x", false],
    ]);
    expect(rows("漢\rx")).toEqual(["x"]);
    expect(first("e\u0301👩‍💻🇨🇭👍🏽")).toEqual([
      { text: "e\u0301", style: {}, wide: false },
      { text: "👩‍💻🇨🇭👍🏽", style: {}, wide: true },
    ]);
  });
});

describe("a stranger's stream", () => {
  test("links lead to the web alone", () => {
    for (const bad of [
      "javascript:alert(1)",
      "data:text/html,x",
      "file:///etc/passwd",
      "//a.org",
      "https://",
      "http://user:pw@a.org/",
      ` https://a.org`,
      "https://a.org/" + "x".repeat(3000),
    ])
      expect(safeLink(bad)).toBeUndefined();
    expect(safeLink("HTTPS://a.org/?a=1")).toBe("https://a.org/?a=1");
    expect(first(`${esc}]8;;javascript:alert(1)${esc}\\x${esc}]8;;${esc}\\`)).toEqual([
      { text: "x", style: {}, wide: false },
    ]);
  });
  test("sequences that are not known, or never ended, show nothing of themselves", () => {
    expect(
      rows(
        `a${esc}[?1049h${esc}[?25lb${esc}]0;title\x07c` +
          `${esc}P1;2|data${esc}\\d${esc}(Be${esc}=f\x07\x00\x7fg\u0085h`,
      ),
    ).toEqual(["abcdefgh"]);
    expect(rows(`a${esc}]0;never ended\nb`)).toEqual(["a", "b"]);
    expect(rows(`a${esc}[1;2\nb${esc}`)).toEqual(["a", "b"]);
    expect(rows(`x${esc}]8;;https://a.org${esc}[31my`)).toEqual(["xy"]);
  });
  test("markup is text", () =>
    expect(rows("<img src=x onerror=alert(1)>&amp;")).toEqual([
      "<img src=x onerror=alert(1)>&amp;",
    ]));
  test("what turns the reading order around is left out", () =>
    expect(rows("a\u202eb\u2066c")).toEqual(["abc"]));
  test("the cursor cannot go far from what was written", () => {
    const screen = new Screen();
    screen.write("\n".repeat(1000) + `${esc}[999999999A`);
    screen.write(`up${esc}[999999999B${esc}[99999999C${esc}[99999999;9Hx`);
    expect(screen.at(1000 - tallest)!.text).toBe("up");
    expect(screen.high).toBe(1000);
  });
  test("a row without an end is cut, and says by how much", () => {
    const screen = new Screen();
    screen.write("x".repeat(mostColumns + 5));
    expect([screen.at(0)!.text.length, screen.at(0)!.cut]).toEqual([mostColumns, 5]);
    screen.write(`\r${esc}[2Kshort`);
    expect([screen.at(0)!.text, screen.at(0)!.cut]).toEqual(["short", 0]);
  });
  test("marks are not piled up without end", () => {
    const screen = new Screen();
    screen.write("e" + "\u0301".repeat(100_000));
    expect(screen.at(0)!.text.length).toBeLessThan(20);
  });
  test("halves of characters and bytes of no meaning end nothing", () =>
    expect(rows("\ud800x\udc00y", 3)).toEqual(["\ufffdx\ufffdy"]));
  test("any bytes give rows", () => {
    let seed = 1;
    const next = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
    const odd = [
      esc,
      "[",
      "]",
      ";",
      "m",
      "A",
      "B",
      "H",
      "J",
      "2",
      "8",
      "K",
      "\n",
      "\r",
      "\b",
      "\t",
      "a",
      "漢",
      "\ud83d",
      "\u0301",
      "P",
      "X",
      "\\",
      "\x07",
      "9",
    ];
    for (let n = 0; n < 300; n++) {
      const text = Array.from({ length: 200 }, () => odd[Math.floor(next() * odd.length)]).join("");
      const all = rows(text);
      expect(all.length).toBeLessThanOrEqual(text.length * tallest);
      expect(all.join("")).not.toContain(esc);
    }
  });
});
