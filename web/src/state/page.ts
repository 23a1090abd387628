// What the reader of a report chose.

import type { Selection } from "./selection";
import type { Store } from "./store";

export interface Page extends Selection {
  dark: boolean;
  cursor: number | null; // ns since the run began: where the pointer is
  shown: Readonly<Record<string, boolean>>; // curves that were switched on or off by hand, by key
}

export type PageStore = Store<Page>;
