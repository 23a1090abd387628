// What a program wrote, fetched in the parts that are shown:
//
//	blocks (GET …/output/rows) ──▶ bytes of one ──▶ Screen ──▶ rows
//
// However much there is, a few blocks are kept. Of a run that is recorded, the last block is
// written on as the stream tells.

import type { OutputRows } from "../../../../api";
import { Screen, type Row } from "../../../../lib/terminal/screen";
import { get, Problem } from "../../../api";
import { api } from "../../../door";
import { givenUp } from "../../../parts";

interface Page {
  rows: Map<number, Row>;
  screen: Screen | null;
  end: number;
} // screen: of the last block alone, which goes on

const mostPages = 8,
  mostBytes = 4 << 20,
  againMs = 400,
  longTail = 768 << 10;

export interface Output {
  readonly rows: number;
  readonly size: number;
  readonly seen: number; // bytes whose rows are known
  /** A row; undefined: it is being fetched, and changed is called when it is there. */
  row(n: number): Row | undefined;
  /** Rows one after the other, fetched as needed. */
  read(from: number, to: number): Promise<Row[]>;
  /** Rows that contain the words, from a row on and then from the first: told as they are found. */
  find(
    words: string,
    from: number,
    signal: AbortSignal,
    found: (rows: number[], share: number) => void,
  ): Promise<void>;
  /** Takes what the stream tells. */
  told(part: { at: number; next: number; text: string }): void;
  /** Asks what there is by now. */
  refresh(): Promise<void>;
}

const nothing: Row = { runs: [], text: "", cut: 0 };

/** The output of a run. failed is told of what went wrong; changed that there is more to show. */
export const outputOf = (
  path: string,
  signal: AbortSignal,
  changed: () => void,
  failed: (problem: unknown) => void,
): Output => new Fetched(path, signal, changed, failed);

class Fetched implements Output {
  size = 0;
  seen = 0;
  rows = 0;

  // by block: where it begins, its first row, the lowest and the highest that it writes to
  private readonly at: number[] = [];
  private readonly first: number[] = [];
  private readonly low: number[] = [];
  private readonly high: number[] = [];
  private readonly styles = new Map<number, string>();
  // of each block the first row that it or a later one writes to: ascending
  private owners: number[] = [];
  private readonly pages = new Map<number, Page>();
  private readonly asked = new Set<number>();
  private asking: Promise<void> | null = null;
  private again = false;
  private timer = 0;
  private readonly path: string;
  private readonly signal: AbortSignal;
  private readonly changed: () => void;
  private readonly failed: (problem: unknown) => void;

  constructor(
    path: string,
    signal: AbortSignal,
    changed: () => void,
    failed: (problem: unknown) => void,
  ) {
    [this.path, this.signal, this.changed, this.failed] = [path, signal, changed, failed];
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  private async bytes(from: number, to: number): Promise<string> {
    const answer = await api(
      `${this.path}/output?from=${from}&limit=${Math.max(Math.min(to - from, mostBytes), 1)}`,
      { headers: { Accept: "text/plain" }, signal: this.signal },
    );
    if (!answer.ok) throw new Problem(answer.status, "The output cannot be read any more.");
    return new TextDecoder("utf-8").decode(await answer.arrayBuffer());
  }

  private readonly endOf = (block: number) => this.at[block + 1] ?? this.seen;

  /** The block that wrote a row last. */
  private owner(n: number): number {
    let a = 0,
      b = this.owners.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (this.owners[m]! <= n) a = m + 1;
      else b = m;
    }
    return a - 1;
  }

  private own() {
    this.owners = this.low.slice();
    for (let i = this.owners.length - 2; i >= 0; i--)
      this.owners[i] = Math.min(this.owners[i]!, this.owners[i + 1]!);
  }

  /** Draws a block, with the one before it: what it writes over stands there. */
  private async fetchPage(block: number): Promise<Page> {
    const first = Math.max(block - 1, 0),
      end = this.endOf(block),
      last = block === this.at.length - 1;
    const screen = new Screen(
      this.first[first],
      first > 0 ? this.high[first - 1] : 0,
      this.styles.get(first) ?? "",
    );
    screen.write(
      await this.bytes(this.at[first]!, this.at[block]! > this.at[first]! ? this.at[block]! : end),
    );
    if (first < block) screen.write(await this.bytes(this.at[block]!, end));
    const page: Page = { rows: new Map(), screen: last ? screen : null, end };
    if (!last)
      for (const n of screen.lines.keys())
        if (n >= this.low[block]!) page.rows.set(n, screen.at(n)!);
    return page;
  }

  private keep(block: number, page: Page) {
    this.pages.delete(block);
    this.pages.set(block, page);
    for (const old of this.pages.keys()) {
      if (this.pages.size <= mostPages) break;
      if (old !== this.at.length - 1) this.pages.delete(old);
    }
  }

  private async load(block: number): Promise<void> {
    if (this.asked.has(block)) return;
    this.asked.add(block);
    try {
      const page = await this.fetchPage(block);
      this.keep(block, page);
      this.changed();
    } catch (problem) {
      if (!givenUp(problem)) this.failed(problem);
    } finally {
      this.asked.delete(block);
    }
  }

  /** What a page has of a row; a row that a later block only passed by belongs to one before. */
  private lookup(n: number): { row: Row } | { block: number } {
    for (let block = this.owner(n), tries = 0; block >= 0 && tries < 4; block--, tries++) {
      if (this.low[block]! > n || this.high[block]! < n) continue;
      const page = this.pages.get(block);
      if (!page) return { block };
      const found = page.screen ? page.screen.at(n) : page.rows.get(n);
      if (found) return { row: found };
    }
    return { row: nothing };
  }

  private async ask(): Promise<void> {
    do {
      this.again = false;
      const from = Math.max(this.at.length - 1, 0),
        told = await get<OutputRows>(`${this.path}/output/rows?from=${from}`, this.signal);
      if (told.missing) throw new Problem(404, "The output was not kept.");
      if (told.seen < this.seen || told.from !== from) {
        this.anew();
        continue;
      }
      const tail = this.at.length - 1,
        grown = told.seen > this.seen;
      this.take(told);
      const page = this.pages.get(tail);
      if (page && grown && (this.at.length - 1 > tail || page.end < this.seen)) {
        this.pages.delete(tail);
        await this.load(tail);
      }
      this.changed();
      if (this.seen < this.size) this.again = true;
    } while (this.again && !this.signal.aborted);
  }

  /** It is another file: begins anew. */
  private anew(): void {
    for (const list of [this.at, this.first, this.low, this.high]) list.length = 0;
    this.styles.clear();
    this.pages.clear();
    this.seen = 0;
    this.again = true;
  }

  /** Takes where the blocks begin from one on, and which rows they write to. */
  private take(told: OutputRows): void {
    for (const [list, fresh] of [
      [this.at, told.at],
      [this.first, told.row],
      [this.low, told.low],
      [this.high, told.high],
    ] as const) {
      list.length = told.from;
      for (const v of fresh) list.push(v);
    }
    for (const [block, style] of Object.entries(told.styles)) this.styles.set(Number(block), style);
    ({ size: this.size, seen: this.seen, rows: this.rows } = told);
    this.own();
  }

  refresh(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return this.asking;
    }
    return (this.asking = this.ask().finally(() => {
      this.asking = null;
    }));
  }

  private later() {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      this.refresh().catch((e: unknown) => {
        if (!givenUp(e)) this.failed(e);
      });
    }, againMs);
  }

  row(n: number): Row | undefined {
    const found = this.lookup(n);
    if ("row" in found) return found.row;
    void this.load(found.block);
    return undefined;
  }

  async read(from: number, to: number): Promise<Row[]> {
    const all: Row[] = [];
    for (let n = from; n < to; n++) {
      let found = this.lookup(n);
      for (let tries = 0; !("row" in found) && tries < 3; tries++) {
        this.keep(found.block, await this.fetchPage(found.block));
        found = this.lookup(n);
      }
      all.push("row" in found ? found.row : nothing);
    }
    return all;
  }

  async find(
    words: string,
    from: number,
    stop: AbortSignal,
    found: (rows: number[], share: number) => void,
  ): Promise<void> {
    const needle = words.toLowerCase(),
      first = Math.max(this.owner(from), 0),
      all = this.at.length;
    for (let i = 0; i < all && !stop.aborted; i++) {
      const block = (first + i) % all,
        text = await this.bytes(this.at[block]!, this.endOf(block)),
        hits: number[] = [];
      if (text.includes("\x1b") || text.includes("\r") || text.toLowerCase().includes(needle)) {
        const screen = new Screen(this.first[block], block > 0 ? this.high[block - 1] : 0),
          over = this.owners[block + 1] ?? Infinity; // rows from there on belong to a later block
        screen.write(text);
        for (const n of screen.lines.keys())
          if (n < over && screen.at(n)!.text.toLowerCase().includes(needle)) hits.push(n);
      }
      if (!stop.aborted) found(hits, (i + 1) / all);
    }
  }

  told({ at: from, next, text }: { at: number; next: number; text: string }): void {
    const tail = this.at.length - 1,
      page = this.pages.get(tail);
    this.size = Math.max(this.size, next);
    if (
      !page?.screen ||
      from !== page.end ||
      next - (this.at[tail] ?? 0) > longTail ||
      this.asking
    ) {
      this.later();
      return;
    }
    page.screen.write(text);
    page.end = this.seen = next;
    this.rows = Math.max(this.rows, page.screen.high + 1);
    this.high[tail] = page.screen.high;
    this.low[tail] = Math.min(this.low[tail]!, page.screen.low);
    this.owners[tail] = this.low[tail]!;
    for (let i = tail - 1; i >= 0 && this.owners[i]! > this.owners[i + 1]!; i--)
      this.owners[i] = this.owners[i + 1]!;
    this.changed();
  }
}
