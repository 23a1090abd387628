// What the panels of the explorer share: the snapshot, what was asked of the server, the colours,
// and the block under the pointer.

import type { Block, Labels, OpenedDevice } from "../../../api";
import { get, query } from "../../api";
import { failure, givenUp } from "../../parts";
import type { App, State } from "../../state";
import type { Inks } from "./colours";
import type { Range } from "./tile";

/** The fields of the state that filter blocks. */
export const filtering = ["search", "line", "category", "module", "only", "colour"] as const;

export type Known = Record<"sites" | "categories" | "modules", number>;

export interface Board {
  app: App;
  closed: AbortSignal;
  devices: OpenedDevice[];
  device(): OpenedDevice;
  /** The moment that is looked at: so many events before it. */
  at(): number;
  whole(): { events: Range; bytes: Range };
  labels: Labels;
  colours: Inks;
  /** The path of something of this snapshot's device, with what is asked. */
  path(rest: string, asked?: Record<string, string | number | undefined>): string;
  /** What is selected of blocks, as the server is asked for it: others step back in every panel. */
  filter(): {
    q?: string;
    line?: string;
    category?: string;
    module?: string;
    by?: string;
    only?: string;
  };
  /**
   * The one value of what colours tell apart that is selected, "" for none, and selects another.
   */
  alone(): string;
  choose(value: string): void;
  /** How many labels are known already. */
  known(): Known;
  /**
   * Takes in the labels of an answer, with what was known when it was asked for: several questions
   * may be under way.
   */
  learn(labels: Labels, known: Known): void;
  /** Ends when it is answered, failed or given up. */
  ask<T>(what: string, path: string, then: (answer: T) => void): Promise<void>;
  /** The facts of a block, asked for once. */
  block(n: number, then: (b: Block) => void, what: string): void;
  /** A block is under the pointer in some panel; null: none is any more. */
  hover(n: number | null): void;
  hovered(then: (n: number | null) => void): void;
  /** Follows the state until the page goes. */
  follow(fields: (keyof State)[], then: () => void): void;
  goTo(point: number): void;
}

/**
 * A panel of the explorer, which follows the board's state by itself. It marks the page with what
 * it shows, for those who wait for that.
 */
export type Panel = (board: Board, mark: (name: string, value: string) => void) => HTMLElement;

/**
 * Asks for one thing at a time of each kind: a newer question gives the older one up. What fails is
 * said, and what was drawn stays.
 */
export function asker(closed: AbortSignal, problem: HTMLElement): Board["ask"] {
  const asked = new Map<string, AbortController>(),
    failed = new Set<string>();
  return async <T>(what: string, path: string, then: (answer: T) => void): Promise<void> => {
    asked.get(what)?.abort();
    const own = new AbortController();
    asked.set(what, own);
    await get<T>(path, AbortSignal.any([own.signal, closed])).then(
      (answer) => {
        if (own.signal.aborted || closed.aborted) return;
        failed.delete(what);
        if (!failed.size) problem.replaceChildren();
        then(answer);
      },
      (e: unknown) => {
        if (givenUp(e) || own.signal.aborted || closed.aborted) return;
        failed.add(what);
        problem.replaceChildren(failure(e));
      },
    );
  };
}

/** The path of something of a snapshot. */
export const pathOf = (
  id: string,
  rest: string,
  asked: Record<string, string | number | undefined>,
): string => query(`/snapshots/${encodeURIComponent(id)}/${rest}`, asked);
