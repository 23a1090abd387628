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
  const all = [...peaks(report), ...ofTrace(report), ...growth(report), ...times(report)];
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

/** The highest of each figure, with its curve where there is one. */
function peaks({ headline: { peak }, processes, series }: Report): Card[] {
  const find = (...names: string[]) =>
    names.map((n) => most(series.filter((s) => s.name === n))).find(Boolean);
  const of = (name: string) => find(name)?.label;
  const card = (
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
  const error = peak.host_pss_error_bytes ? `, ± ${bytes(peak.host_pss_error_bytes)}` : "",
    shared = processes.length > 1 ? "shared pages once per process" : "resident memory",
    { host_pss_bytes: pss, host_rss_bytes: rss, heap_bytes: heap } = peak,
    { device_used_bytes: used, allocated_bytes: allocated, reserved_bytes: reserved } = peak,
    { label } = peak;
  return [
    card("Host peak, PSS", pss, `shared pages once${error}`, "estimated", "pss", "tree.pss"),
    card("Host peak, RSS", rss, shared, "measured", "rss", "tree.rss", "host.rss"),
    card("Heap peak", heap, "live allocations", of("heap.live") ?? "sampled", "heap", "heap.live"),
    card(
      "Device peak",
      used,
      "in use on the device",
      label,
      "device",
      "device.used",
      "device.process",
    ),
    card(
      "Allocated",
      allocated,
      "by tensors, at the peak",
      label,
      "allocated",
      "allocator.allocated",
    ),
    card(
      "Reserved",
      reserved,
      "by the allocator, at the peak",
      label,
      "reserved",
      "allocator.reserved",
    ),
  ].flat();
}

/** Steady growth; none where there were too few steps to tell. */
function growth({ headline: head }: Report): Card[] {
  const { growth_bytes_per_step: perStep, growth_least_bytes: least } = head,
    title = "Growth";
  if (perStep === undefined) return [];
  if (perStep !== 0)
    return [
      {
        title,
        value: `${perStep > 0 ? "+" : ""}${bytes(perStep)}`,
        note: "per step, after warm-up",
        tone: perStep > 0 ? "bad" : "good",
      },
    ];
  const settled = head.complete && !(head.ended && toneOf(head.ended) === "bad"),
    from = least === undefined ? "" : ` from ${bytes(least)} on`;
  return [
    {
      title,
      value: head.complete ? "not seen" : "not seen so far",
      note: `steady growth${from}, after warm-up`,
      ...(settled ? { tone: "good" } : {}),
    },
  ];
}

/** How long a step and the whole run took. */
function times({ headline: head, imagined }: Report): Card[] {
  if (imagined) return [];
  const all: Card[] = [],
    steps = `${count(head.steps)} steps`;
  if (head.step_time_ns !== undefined)
    all.push({
      title: "Step time",
      value: duration(head.step_time_ns),
      note: `median of ${steps}`,
    });
  if (head.duration_ns > 0)
    all.push({
      title: "Duration",
      value: duration(head.duration_ns),
      note: head.steps > 0 ? steps : "no training step seen",
    });
  return all;
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
