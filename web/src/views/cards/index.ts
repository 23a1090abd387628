import type { Label, Report, Series } from "../../api";
import { highest, shape } from "../../lib/columns";
import { bytes, count, duration, toneOf } from "../../lib/format";
import { span } from "../../state/report";
import { badge, h, svg } from "../dom";
import "./cards.css";

interface Card {
  title: string;
  value: string;
  note: string;
  label?: Label;
  series?: Series | undefined;
  colour?: string;
  tone?: string;
}

/**
 * The figures behind the sentence. What was not observed has no card; on an imaginary GPU time is
 * not observed.
 */
export function cards(report: Report): HTMLElement | null {
  const {
    peak,
    growth_bytes_per_step: growth,
    growth_least_bytes: least,
    ...head
  } = report.headline;
  const find = (...names: string[]) =>
    names.map((n) => most(report.series.filter((s) => s.name === n))).find(Boolean);
  const sized = (
    title: string,
    value: number | undefined,
    note: string,
    label: Label,
    colour: string,
    ...names: string[]
  ): Card[] =>
    value === undefined
      ? []
      : [{ title, value: bytes(value), note, label, series: find(...names), colour }];
  const settled = head.complete && !(head.ended && toneOf(head.ended) === "bad");
  const all: Card[] = [
    ...sized(
      "Host peak, PSS",
      peak.host_pss_bytes,
      "shared pages " +
        `once${peak.host_pss_error_bytes ? `, ± ${bytes(peak.host_pss_error_bytes)}` : ""}`,
      "estimated",
      "pss",
      "tree.pss",
    ),
    ...sized(
      "Host peak, RSS",
      peak.host_rss_bytes,
      report.processes.length > 1 ? "shared pages once per process" : "resident memory",
      "measured",
      "rss",
      "tree.rss",
      "host.rss",
    ),
    ...sized("Heap peak", peak.heap_bytes, "live allocations", "sampled", "heap", "heap.live"),
    ...sized(
      "Device peak",
      peak.device_used_bytes,
      "in use on the device",
      peak.label,
      "device",
      "device.used",
      "device.process",
    ),
    ...sized(
      "Allocated",
      peak.allocated_bytes,
      "by tensors, at the peak",
      peak.label,
      "allocated",
      "allocator.allocated",
    ),
    ...sized(
      "Reserved",
      peak.reserved_bytes,
      "by the allocator, at the peak",
      peak.label,
      "reserved",
      "allocator.reserved",
    ),
    ...ofTrace(report),
    ...(growth === undefined
      ? []
      : [
          growth === 0
            ? {
                title: "Growth",
                value: head.complete ? "not seen" : "not seen so far",
                note:
                  `steady growth${least === undefined ? "" : ` from ${bytes(least)} on`}, ` +
                  "after warm-up",
                ...(settled ? { tone: "good" } : {}),
              }
            : {
                title: "Growth",
                value: `${growth > 0 ? "+" : ""}${bytes(growth)}`,
                note: "per step, after warm-up",
                tone: growth > 0 ? "bad" : "good",
              },
        ]),
    ...(head.step_time_ns === undefined || report.imagined
      ? []
      : [
          {
            title: "Step time",
            value: duration(head.step_time_ns),
            note: `median of ${count(head.steps)} steps`,
          },
        ]),
    ...(head.duration_ns > 0 && !report.imagined
      ? [
          {
            title: "Duration",
            value: duration(head.duration_ns),
            note: head.steps > 0 ? `${count(head.steps)} steps` : "no training step seen",
          },
        ]
      : []),
  ];
  if (all.length === 0) return null;
  return h(
    "div",
    { class: "cards", style: `--n:${all.length}`, role: "list", "aria-label": "Key figures" },
    ...all.map((c) =>
      h(
        "div",
        { class: `card ${c.tone ?? ""}`, role: "listitem" },
        h("span", { class: "title" }, c.title),
        h("b", {}, c.value),
        h("small", {}, c.label && c.label !== "measured" ? badge(c.label) : null, " ", c.note),
        c.series && spark(c.series, c.colour ?? "rss", span(report)),
      ),
    ),
  );
}

/** What a snapshot says of the device that leads. */
function ofTrace({ allocators, headline }: Report): Card[] {
  const f = allocators?.find(
    (a) => a.peak.allocated_bytes === headline.peak.allocated_bytes,
  )?.fragmentation;
  return f
    ? [
        {
          title: "Unusable",
          value: bytes(f.stuck_bytes + (f.rounding_bytes ?? 0)),
          note:
            f.rounding_bytes === undefined
              ? "cached beside blocks in use; what rounding took is not in the file"
              : "cached beside blocks in use, or lost to rounding",
          tone: f.stuck_bytes > f.reserved_bytes / 10 ? "bad" : "",
        },
        {
          title: "empty_cache",
          value: bytes(f.releasable_bytes),
          note: "would return that much at this moment",
        },
      ]
    : [];
}

const most = (series: Series[]) =>
  series.toSorted((a, b) => (highest(b)?.y ?? 0) - (highest(a)?.y ?? 0))[0];

/** The shape of a curve over the whole run, from zero. */
function spark(series: Series, colour: string, [from, to]: [number, number]): SVGElement | null {
  const { x, y } = shape(series, 120),
    top = Math.max(...y, 1);
  if (x.length < 3) return null;
  const points = x.map(
    (t, i) =>
      `${(((t - from) / (to - from)) * 100).toFixed(2)} ` +
      `${(30 - ((y[i] ?? 0) / top) * 27).toFixed(2)}`,
  );
  const first = points[0]!.split(" ")[0],
    last = points[points.length - 1]!.split(" ")[0];
  const picture = svg(
    "spark",
    100,
    30,
    ["area", `M${first} 30L${points.join("L")}L${last} 30Z`],
    ["curve", `M${points.join("L")}`],
  );
  picture.style.setProperty("--ink", `var(--${colour})`);
  return picture;
}
