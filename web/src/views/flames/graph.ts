// What a flame graph is drawn of, and how it may be shown.

import type { StackSet } from "../../api";
import type { Call } from "../../lib/icicle";

export type Frame = StackSet["frames"][number];

/**
 * What is drawn. figure says a value in its unit; rest is what stacks too small to draw have;
 * counted: the blocks of a call are those of its value.
 */
export interface Graph {
  title: string;
  frames: Frame[];
  root: Call;
  figure(value: number): string;
  rest?: string;
  counted?: boolean;
}

/** How it is drawn; of is the function that a sandwich is about, as calledBy gives it. */
export interface How {
  view: keyof typeof views;
  order: "largest" | "calls";
  native: boolean;
  of: string;
}

export const views = {
  icicle: "icicle",
  flame: "flames",
  inverted: "by who allocates",
  sandwich: "functions",
} as const;
export const plain: How = { view: "icicle", order: "largest", native: false, of: "" };
