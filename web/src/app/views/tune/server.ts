// What a tune found of an LLM server: its starts with other settings, and the command to copy.
// There are no plans.

import type { Column, Server, ServerPoint, Table } from "../../../api";
import { commandLine } from "../../../lib/format";
import { copier, h } from "../../../views/dom";
import { liveTable } from "../../../views/tables";
import { verdictWords } from "../../panels/catalogue";

const count = (name: string, title: string): Column => ({ name, title, unit: "count" });

const columns: Table = {
  name: "starts",
  title: "Starts with other settings",
  columns: [
    { name: "settings", title: "Settings" },
    { name: "outcome", title: "Verdict" },
    count("tokens", "KV tokens"),
    count("held", "At once"),
    count("length", "Length"),
    count("gpus", "GPUs"),
    count("sequences", "Sequences at most"),
    count("batched", "Tokens of a batch"),
    { name: "kv", title: "KV type" },
    { name: "costs", title: "Costs" },
    { name: "best", title: "On the frontier" },
  ],
  rows: [],
};

const rowOf = (p: ServerPoint): Table["rows"][number] => [
  p.what,
  verdictWords(p.verdict.verdict),
  p.verdict.kv_tokens ?? null,
  p.sequences ?? null,
  p.max_model_len ?? null,
  p.gpus,
  p.max_num_seqs ?? null,
  p.max_num_batched_tokens ?? null,
  p.kv_dtype ?? "",
  p.costs,
  p.recommended ? "recommended" : p.on_frontier ? "yes" : "",
];

/** The command that is recommended, and all starts. */
export function ofServer(server: Server): HTMLElement[] {
  const list = liveTable(columns, undefined, "No start came to a verdict."),
    words = server.recommended?.settings.length ? server.recommended_command : undefined,
    text = commandLine(words ?? []);
  list.show(server.points.map(rowOf));
  return [
    ...(words ? [copier(text, { class: "command" }, h("code", {}, text))] : []),
    h(
      "p",
      { class: "hint" },
      "How long an answer takes is not known: no kernel ran. It depends on GPUs and what follows.",
    ),
    list.element,
  ];
}
