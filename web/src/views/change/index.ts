import type { Report } from "../../api";
import { bytes } from "../../lib/format";
import { followed, standing } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { h, section } from "../dom";
import { told } from "../rows";

const most = 16;

/**
 * What each line, module or category added to a peak or took from it, as bars to the right and to
 * the left.
 */
export function change(report: Report, page: PageStore): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "diff");
  if (!table) return null;
  const at = (name: string) => table.columns.findIndex((c) => c.name === name);
  const what = at("what"),
    delta = at("delta"),
    before = at("a"),
    after = at("b");
  const rows = table.rows
    .map((r) => ({
      name: String(r[what]),
      delta: Number(r[delta]),
      before: Number(r[before] ?? 0),
      after: Number(r[after] ?? 0),
    }))
    .filter((r) => r.delta)
    .sort((p, q) => Math.abs(q.delta) - Math.abs(p.delta));
  if (!rows.length) return null;
  const rest = rows.slice(most).reduce((sum, r) => sum + r.delta, 0);
  const shown = [
    ...rows.slice(0, most),
    ...(rows.length > most
      ? [{ name: `${rows.length - most} more`, delta: rest, before: NaN, after: NaN }]
      : []),
  ];
  const widest = Math.max(...shown.map((r) => Math.abs(r.delta)));
  const signed = (n: number) => `${n < 0 ? "−" : "+"}${bytes(Math.abs(n))}`;
  const kinds = told(table),
    things = shown.map((r) =>
      kinds.thing(table.columns.map((_, i) => (i === what ? r.name : null))),
    );
  const items = shown.map((r) =>
    h(
      "li",
      {
        title: Number.isNaN(r.before)
          ? r.name
          : `${r.name}: ${bytes(r.before)} before, ${bytes(r.after)} after`,
      },
      h("span", {}, r.name),
      h(
        "i",
        { class: r.delta < 0 ? "less" : "more" },
        h("u", { style: `width:${((Math.abs(r.delta) / widest) * 50).toFixed(2)}%` }),
      ),
      h("b", {}, signed(r.delta)),
    ),
  );
  page.follow([...followed], (of) =>
    items.forEach((item, i) => {
      const is = standing(of, things[i]!);
      item.classList.toggle("picked", is === "picked");
      item.classList.toggle("dim", is === "dim");
    }),
  );
  return section("change", "What changed", h("ul", { class: "change" }, ...items));
}
