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
export function outputOf(
  path: string,
  signal: AbortSignal,
  changed: () => void,
  failed: (problem: unknown) => void,
): Output {
  const at: number[] = [],
    row: number[] = [],
    low: number[] = [],
    high: number[] = [],
    styles = new Map<number, string>();
  const pages = new Map<number, Page>(),
    asked = new Set<number>();
  let size = 0,
    seen = 0,
    rows = 0,
    asking: Promise<void> | null = null,
    again = false,
    timer = 0;
  // of each block the first row that it or a later one writes to: ascending
  let owners: number[] = [];

  const bytes = async (from: number, to: number): Promise<string> => {
    const asking = await api(
      `${path}/output?from=${from}&limit=${Math.max(Math.min(to - from, mostBytes), 1)}`,
      { headers: { Accept: "text/plain" }, signal },
    );
    if (!asking.ok) throw new Problem(asking.status, "The output cannot be read any more.");
    return new TextDecoder("utf-8").decode(await asking.arrayBuffer());
  };
  const endOf = (block: number) => at[block + 1] ?? seen;
  /** The block that wrote a row last. */
  const owner = (n: number): number => {
    let a = 0,
      b = owners.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (owners[m]! <= n) a = m + 1;
      else b = m;
    }
    return a - 1;
  };
  const own = () => {
    owners = low.slice();
    for (let i = owners.length - 2; i >= 0; i--) owners[i] = Math.min(owners[i]!, owners[i + 1]!);
  };
  /** Draws a block, with the one before it: what it writes over stands there. */
  const fetchPage = async (block: number): Promise<Page> => {
    const first = Math.max(block - 1, 0),
      end = endOf(block),
      last = block === at.length - 1;
    const screen = new Screen(row[first], first > 0 ? high[first - 1] : 0, styles.get(first) ?? "");
    screen.write(await bytes(at[first]!, at[block]! > at[first]! ? at[block]! : end));
    if (first < block) screen.write(await bytes(at[block]!, end));
    const page: Page = { rows: new Map(), screen: last ? screen : null, end };
    if (!last)
      for (const n of screen.lines.keys()) if (n >= low[block]!) page.rows.set(n, screen.at(n)!);
    return page;
  };
  const keep = (block: number, page: Page) => {
    pages.delete(block);
    pages.set(block, page);
    for (const old of pages.keys()) {
      if (pages.size <= mostPages) break;
      if (old !== at.length - 1) pages.delete(old);
    }
  };
  const load = async (block: number): Promise<void> => {
    if (asked.has(block)) return;
    asked.add(block);
    try {
      const page = await fetchPage(block);
      keep(block, page);
      changed();
    } catch (problem) {
      if (!givenUp(problem)) failed(problem);
    } finally {
      asked.delete(block);
    }
  };
  /** What a page has of a row; a row that a later block only passed by belongs to one before. */
  const lookup = (n: number): { row: Row } | { block: number } => {
    for (let block = owner(n), tries = 0; block >= 0 && tries < 4; block--, tries++) {
      if (low[block]! > n || high[block]! < n) continue;
      const page = pages.get(block);
      if (!page) return { block };
      const found = page.screen ? page.screen.at(n) : page.rows.get(n);
      if (found) return { row: found };
    }
    return { row: nothing };
  };

  const ask = async (): Promise<void> => {
    do {
      again = false;
      const from = Math.max(at.length - 1, 0),
        told = await get<OutputRows>(`${path}/output/rows?from=${from}`, signal);
      if (told.missing) throw new Problem(404, "The output was not kept.");
      if (told.seen < seen || told.from !== from) {
        // another file: begin anew
        for (const list of [at, row, low, high]) list.length = 0;
        styles.clear();
        pages.clear();
        seen = 0;
        again = true;
        continue;
      }
      const tail = at.length - 1,
        grown = told.seen > seen;
      for (const [list, fresh] of [
        [at, told.at],
        [row, told.row],
        [low, told.low],
        [high, told.high],
      ] as const) {
        list.length = from;
        for (const v of fresh) list.push(v);
      }
      for (const [block, style] of Object.entries(told.styles)) styles.set(Number(block), style);
      ({ size, seen, rows } = told);
      own();
      const page = pages.get(tail);
      if (page && grown && (at.length - 1 > tail || page.end < seen)) {
        pages.delete(tail);
        await load(tail);
      }
      changed();
      if (seen < size) again = true;
    } while (again && !signal.aborted);
  };
  const refresh = (): Promise<void> => {
    if (asking) {
      again = true;
      return asking;
    }
    return (asking = ask().finally(() => {
      asking = null;
    }));
  };
  const later = () => {
    timer ||= window.setTimeout(() => {
      timer = 0;
      refresh().catch((e: unknown) => {
        if (!givenUp(e)) failed(e);
      });
    }, againMs);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));

  return {
    get rows() {
      return rows;
    },
    get size() {
      return size;
    },
    get seen() {
      return seen;
    },
    row(n) {
      const found = lookup(n);
      if ("row" in found) return found.row;
      void load(found.block);
      return undefined;
    },
    async read(from, to) {
      const all: Row[] = [];
      for (let n = from; n < to; n++) {
        let found = lookup(n);
        for (let tries = 0; !("row" in found) && tries < 3; tries++) {
          keep(found.block, await fetchPage(found.block));
          found = lookup(n);
        }
        all.push("row" in found ? found.row : nothing);
      }
      return all;
    },
    async find(words, from, stop, found) {
      const needle = words.toLowerCase(),
        first = Math.max(owner(from), 0),
        all = at.length;
      for (let i = 0; i < all && !stop.aborted; i++) {
        const block = (first + i) % all,
          text = await bytes(at[block]!, endOf(block)),
          hits: number[] = [];
        if (text.includes("\x1b") || text.includes("\r") || text.toLowerCase().includes(needle)) {
          const screen = new Screen(row[block], block > 0 ? high[block - 1] : 0),
            over = owners[block + 1] ?? Infinity; // rows from there on belong to a later block
          screen.write(text);
          for (const n of screen.lines.keys())
            if (n < over && screen.at(n)!.text.toLowerCase().includes(needle)) hits.push(n);
        }
        if (!stop.aborted) found(hits, (i + 1) / all);
      }
    },
    told({ at: from, next, text }) {
      const tail = at.length - 1,
        page = pages.get(tail);
      size = Math.max(size, next);
      if (!page?.screen || from !== page.end || next - (at[tail] ?? 0) > longTail || asking) {
        later();
        return;
      }
      page.screen.write(text);
      page.end = seen = next;
      rows = Math.max(rows, page.screen.high + 1);
      high[tail] = page.screen.high;
      low[tail] = Math.min(low[tail]!, page.screen.low);
      owners[tail] = low[tail]!;
      for (let i = tail - 1; i >= 0 && owners[i]! > owners[i + 1]!; i--) owners[i] = owners[i + 1]!;
      changed();
    },
    refresh,
  };
}
