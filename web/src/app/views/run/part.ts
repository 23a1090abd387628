// What a part of the page of a run is.

import type { KeyGroup } from "../../frame/keys";
import type { Command } from "../../frame/palette";
import type { App } from "../../state";
import type { Feed } from "./feed";

/**
 * A part: its element, which stays (empty while there is nothing to show), what it adds to the keys
 * and the palette, what ends it, and until when the page waits.
 */
export interface Part {
  element: HTMLElement;
  keys?: KeyGroup[];
  commands?: () => Command[];
  close?: () => void;
  ready?: Promise<void>;
}
export type PartOf = (feed: Feed, app: App) => Part;
