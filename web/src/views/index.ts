import type { Report } from "../api";
import type { PageStore } from "../state/page";
import { capacity } from "./capacity";
import { cards } from "./cards";
import { change } from "./change";
import { comments } from "./comments";
import { composition } from "./composition";
import { courses } from "./course";
import { findings } from "./findings";
import { growth } from "./growth";
import { flames, heapFlames } from "./flames";
import { footer, notes } from "./notes";
import { header } from "./header";
import { operators } from "./operators";
import { ranks } from "./ranks";
import { segments } from "./segments";
import { tables } from "./tables";
import { timeline } from "./timeline";
import { waterfall } from "./waterfall";

export type View = (report: Report, page: PageStore) => HTMLElement | null;

/** The views in the order in which a page has them: a folder each. Add yours here. */
export const views: View[] = [
  header,
  cards,
  capacity,
  findings,
  waterfall,
  change,
  timeline,
  ranks,
  growth,
  composition,
  heapFlames,
  courses,
  operators,
  flames,
  segments,
  tables,
  comments,
  notes,
  footer,
];

/** What sections are called in the contents of a page, by their ids; else by their own titles. */
export const shortNames: ReadonlyMap<string, string> = new Map([
  ["capacity", "GPU"],
  ["findings", "Findings"],
  ["change", "Changes"],
  ["comments", "Comments"],
  ["course", "Events"],
  ["operators", "Operators"],
  ["flames", "Flames"],
  ["segments", "Segments"],
  ["timeline", "Timeline"],
  ["ranks", "Ranks"],
  ["growth", "Growth"],
  ["peak", "Peak"],
  ["heap-flames", "Heap"],
  ["waterfall", "Difference"],
  ["output", "Output"],
  ["explorer", "Blocks"],
  ["explorer-cached", "Cached"],
  ["explorer-flames", "Call stacks"],
  ["notes", "Notes"],
]);
