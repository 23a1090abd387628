import type { Report } from "../api";
import { composition } from "./composition";
import { findings } from "./findings";
import { growth } from "./growth";
import { header } from "./header";
import { notes } from "./notes";
import { tables } from "./tables";
import { timeline } from "./timeline";

/** The views in the order in which a page has them. Add yours here. */
export const views: ((report: Report) => HTMLElement | null)[] = [header, findings, timeline, growth, composition, tables, notes];
