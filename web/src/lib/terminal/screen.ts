// What a program wrote to a terminal, as rows of text with styles:
//
//	text ──▶ Screen ──▶ rows ──▶ app/views/run/output
//
// The screen has no end: rows are counted from the program's first, and nothing scrolls away. What
// moves the cursor within it, as progress bars do, is followed; what has no meaning on paper
// (modes, titles, sounds, other screens) is dropped. internal/terminal counts rows the same way, so
// that a part of a long output can be shown without what is before it.

import { plain, safeLink, same, styled, type Style } from "./style";
import { columns, continues, turns } from "./width";

/** Neighbours of one look; wide ones take two columns each. */
export interface Run {
  text: string;
  style: Style;
  wide: boolean;
}
export interface Row {
  runs: Run[];
  text: string;
  cut: number;
} // cut: characters beyond the longest row that is kept

/** No row keeps more columns. */
export const mostColumns = 10_000;
/** So far above its lowest row a program can go back, as on the tallest screen. */
export const tallest = 200;
const mostMarks = 8; // above and below one letter
const mostSequence = 4096; // characters of a sequence that are looked at

interface Line {
  cells: string[];
  styles: Style[];
  cut: number;
} // "" is the right half of a wide character

type State = "text" | "escape" | "between" | "csi" | "string" | "stringEscape";

export class Screen {
  readonly lines = new Map<number, Line>();
  high: number; // the last row that there is
  low: number; // the first row that the cursor was in
  private row: number;
  private column = 0;
  private style: Style = plain;
  private page = -1; // the row at which the program cleared its screen last
  private saved: [row: number, column: number] = [0, 0];
  private state: State = "text";
  private sequence = "";
  private half = ""; // of a surrogate pair

  /** A screen whose cursor stands in a row, in a style that sequences before have set. */
  constructor(row = 0, high = row, before = "") {
    this.row = row;
    this.high = Math.max(row, high);
    this.low = row;
    if (before) this.write(before);
  }

  write(text: string): void {
    if (this.half) {
      text = this.half + text;
      this.half = "";
    }
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.state !== "text") {
        i = this.inSequence(code, text, i);
        continue;
      }
      if (code >= 0x20 && code < 0x7f) {
        this.put(text[i]!, 1);
        continue;
      }
      if (code < 0xa0) {
        this.control(code);
        continue;
      }
      if (code >= 0xd800 && code < 0xdc00) {
        if (i + 1 === text.length) {
          this.half = text[i]!;
          return;
        }
        const char = String.fromCodePoint(text.codePointAt(i)!);
        if (char.length === 2) {
          i++;
          this.letter(char);
        } else this.letter("\ufffd");
      } else this.letter(code >= 0xdc00 && code < 0xe000 ? "\ufffd" : text[i]!);
    }
  }

  /** A row as it stands; undefined: nothing was written there since the screen began. */
  at(row: number): Row | undefined {
    const line = this.lines.get(row);
    return line && frozen(line);
  }

  private letter(char: string): void {
    if (turns(char.codePointAt(0)!)) return;
    const line = this.lines.get(this.row),
      before =
        line && this.column > 0 && this.column <= line.cells.length
          ? this.owner(line, this.column - 1)
          : -1;
    const width = columns(char);
    if (before >= 0 && (width === 0 || continues(line!.cells[before]!, char))) {
      if ([...line!.cells[before]!].length <= mostMarks) line!.cells[before] += char;
    } else if (width > 0) this.put(char, width);
  }

  /** The cell that has the character of a column: of a wide one the left half. */
  private owner(line: Line, column: number): number {
    return line.cells[column] === "" && column > 0 ? column - 1 : column;
  }

  private put(char: string, width: number): void {
    const line = this.line();
    if (this.column + width > mostColumns) {
      line.cut++;
      return;
    }
    const { cells, styles } = line;
    while (cells.length < this.column) {
      cells.push(" ");
      styles.push(plain);
    }
    if (this.column < cells.length) {
      // what stands there goes, with the other half of a wide one
      if (cells[this.column] === "" && this.column > 0) cells[this.column - 1] = " ";
      if (cells[this.column + width] === "") cells[this.column + width] = " ";
    }
    cells[this.column] = char;
    styles[this.column] = this.style;
    if (width === 2) {
      cells[this.column + 1] = "";
      styles[this.column + 1] = this.style;
    }
    this.column += width;
  }

  private line(): Line {
    let line = this.lines.get(this.row);
    if (!line) this.lines.set(this.row, (line = { cells: [], styles: [], cut: 0 }));
    return line;
  }

  private control(code: number): void {
    if (code === 0x0a) this.down();
    else if (code === 0x0d) this.column = 0;
    else if (code === 0x08) this.column = Math.max(this.column - 1, 0);
    else if (code === 0x09) this.column = Math.min(((this.column >> 3) + 1) << 3, mostColumns);
    else if (code === 0x1b) {
      this.state = "escape";
      this.sequence = "";
    }
  }

  /** A new line, as a terminal makes it of "\n" where it adds the carriage return. */
  private down(): void {
    this.line();
    this.row++;
    this.column = 0;
    this.high = Math.max(this.high, this.row);
  }

  private go(row: number): void {
    this.row = Math.min(Math.max(row, this.high - tallest, 0), this.high);
    this.low = Math.min(this.low, this.row);
  }

  /** Takes one character of an escape sequence; gives the place up to which the text was taken. */
  private inSequence(code: number, text: string, i: number): number {
    if (code === 0x18 || code === 0x1a) {
      this.state = "text";
      return i;
    }
    if (code === 0x0a && this.state !== "text") {
      // none has a line within it: it was never ended
      this.state = "text";
      this.down();
      return i;
    }
    switch (this.state) {
      case "escape":
        if (code === 0x5b) this.state = "csi";
        else if (
          code === 0x5d ||
          code === 0x50 ||
          code === 0x58 ||
          code === 0x5e ||
          code === 0x5f
        ) {
          this.state = "string";
          this.sequence = code === 0x5d ? "]" : "";
        } else if (code >= 0x20 && code < 0x30) this.state = "between";
        else if (code !== 0x1b) {
          this.state = "text";
          this.single(code);
        }
        break;
      case "between":
        if (code >= 0x30) this.state = "text";
        else if (code === 0x1b) this.state = "escape";
        break;
      case "csi":
        if (code >= 0x40 && code < 0x7f) {
          this.state = "text";
          this.csi(String.fromCharCode(code), this.sequence);
        } else if (code === 0x1b) {
          this.state = "escape";
          this.sequence = "";
        } else if (code >= 0x20 && code < 0x40) {
          if (this.sequence.length < mostSequence) this.sequence += text[i]!;
        }
        break;
      case "string":
        if (code === 0x07) this.ended();
        else if (code === 0x1b) this.state = "stringEscape";
        else if (this.sequence && this.sequence.length < mostSequence) this.sequence += text[i]!;
        break;
      case "stringEscape": {
        if (code === 0x5c) {
          this.ended();
          break;
        }
        this.state = "escape"; // another sequence begins; this one was not ended
        this.sequence = "";
        return this.inSequence(code, text, i);
      }
    }
    return i;
  }

  private single(code: number): void {
    const letter = String.fromCharCode(code);
    if (letter === "M") this.go(this.row - 1);
    else if (letter === "D" || letter === "E") this.down();
    else if (letter === "7") this.saved = [this.row, this.column];
    else if (letter === "8") this.restore();
    else if (letter === "c") this.style = plain;
  }

  private restore(): void {
    this.go(this.saved[0]);
    this.column = this.saved[1];
  }

  private csi(final: string, parameters: string): void {
    if (final === "m") {
      if (/^[\d;:]*$/.test(parameters) && parameters.length < 256)
        this.style = styled(this.style, parameters);
      return;
    }
    if (!/^[\d;]*$/.test(parameters)) return;
    const numbers = parameters.split(";").map((p) => Math.min(Number(p), 1e6)),
      n = Math.max(numbers[0]!, 1);
    switch (final) {
      case "A":
        this.go(this.row - n);
        break;
      case "B":
        this.go(this.row + n);
        break;
      case "C":
        this.column = Math.min(this.column + n, mostColumns);
        break;
      case "D":
        this.column = Math.max(this.column - n, 0);
        break;
      case "E":
        this.go(this.row + n);
        this.column = 0;
        break;
      case "F":
        this.go(this.row - n);
        this.column = 0;
        break;
      case "G":
      case "`":
        this.column = Math.min(n - 1, mostColumns);
        break;
      case "H":
      case "f":
        if (this.page < 0) break; // where the screen of the program began is not known
        this.row = Math.max(this.page + Math.min(n, tallest) - 1, this.high - tallest);
        this.high = Math.max(this.high, this.row);
        this.low = Math.min(this.low, this.row);
        this.column = Math.min(Math.max(numbers[1] ?? 1, 1) - 1, mostColumns);
        break;
      case "J":
        if (numbers[0] === 0) {
          this.erase(this.column, Infinity);
          for (let r = this.row + 1; r <= this.high; r++) this.lines.delete(r);
        } else if (numbers[0] === 2) this.clear();
        break;
      case "K":
        this.erase(
          numbers[0] === 0 ? this.column : 0,
          numbers[0] === 1 ? this.column + 1 : Infinity,
        );
        break;
      case "P":
        this.line().cells.splice(this.column, n);
        this.line().styles.splice(this.column, n);
        break;
      case "X":
        this.erase(this.column, this.column + n);
        break;
      case "s":
        this.saved = [this.row, this.column];
        break;
      case "u":
        this.restore();
        break;
    }
  }

  /**
   * A program that clears its screen begins below what it wrote so far, so that nothing of that is
   * lost.
   */
  private clear(): void {
    this.page = this.row = this.high = this.high + 1;
    this.column = 0;
  }

  private erase(from: number, to: number): void {
    const line = this.line();
    if (from === 0 && to === Infinity) line.cut = 0;
    if (to >= line.cells.length) {
      line.cells.length = line.styles.length = Math.min(from, line.cells.length);
      return;
    }
    for (let c = from; c < to; c++) {
      line.cells[c] = " ";
      line.styles[c] = plain;
    }
  }

  /** The end of a string: of all of them only links are taken (OSC 8). */
  private ended(): void {
    this.state = "text";
    const link = /^\]8;[^;]*;(.*)$/s.exec(this.sequence);
    if (!link) return;
    const { link: _, ...rest } = this.style,
      to = link[1] ? safeLink(link[1]) : undefined;
    this.style = to === undefined ? rest : { ...rest, link: to };
  }
}

const shows = (style: Style) =>
  style.bg !== undefined || style.underline || style.inverse || style.strike;

function frozen({ cells, styles, cut }: Line): Row {
  let end = cells.length;
  // blanks at the end that nobody sees
  while (end > 0 && cells[end - 1] === " " && !shows(styles[end - 1]!)) end--;
  const runs: Run[] = [];
  let text = "";
  for (let i = 0; i < end; i++) {
    const cell = cells[i]!;
    if (cell === "") continue;
    const style = styles[i]!,
      wide = cells[i + 1] === "",
      last = runs[runs.length - 1];
    if (last && last.wide === wide && same(last.style, style)) last.text += cell;
    else runs.push({ text: cell, style, wide });
    text += cell;
  }
  return { runs, text, cut };
}
