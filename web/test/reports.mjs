// Reports for the browser test: the real one in testdata/, and what a run can do to it.

import { readFileSync } from "node:fs";

export const real = JSON.parse(
  readFileSync(new URL("../../testdata/runs/leak.report.json", import.meta.url), "utf8"),
);

/** Two allocator snapshots: steps of which each keeps more, and a run out of memory. */
export const snapshots = JSON.parse(
  readFileSync(new URL("../../testdata/runs/explain.report.json", import.meta.url), "utf8"),
);

/** A verdict of clauses. */
const said = (...clauses) => ({ verdict: `${clauses.join("; ")}.`, clauses });

export const empty = {
  ...real,
  run: {
    id: "",
    verb: "",
    label: "",
    command: null,
    version: "",
    host: { os: "", cpus: 0, page_bytes: 0 },
    start_mono_ns: 0,
    start_wall_ns: 0,
  },
  findings: null,
  tables: null,
  series: null,
  phases: null,
  steps: null,
  marks: null,
  notes: null,
  processes: null,
  headline: {
    ...said("No memory was observed"),
    duration_ns: 0,
    steps: 0,
    complete: false,
    peak: { label: "measured" },
  },
};

const markup = "</script><img src=x onerror=alert(1)>";
export const hostile = {
  ...real,
  run: { ...real.run, name: markup, command: ["python", markup], tags: { [markup]: markup } },
  headline: { ...real.headline, ...said("<b>bold</b> `<i>` " + "x".repeat(400)) },
  notes: [markup],
  marks: [{ time_ns: 4e9, kind: markup, text: markup }],
  findings: [
    {
      ...real.findings[0],
      title: markup,
      text: markup,
      file: `/${"very-long-folder/".repeat(20)}${"name".repeat(60)}.py`,
      stack: [{ file: markup, line: 3, function: markup }],
    },
  ],
};

/** A process that was killed after one sample. */
export const single = {
  ...empty,
  run: { ...real.run, name: "" },
  headline: {
    ...empty.headline,
    ...said("Peak 1.70 MiB RSS (measured), 6.16 ms after the start"),
    duration_ns: 9e6,
    signal: 9,
    ended: { kind: "failed", text: "SIGKILL" },
    complete: true,
    peak: { host_rss_bytes: 1777664, label: "measured", process: 1 },
    main_source: "tree.rss",
  },
  processes: [real.processes[0]],
  series: [
    {
      name: "tree.rss",
      title: "RSS, all processes",
      unit: "bytes",
      x_unit: "ns",
      label: "measured",
      x: [6162825],
      y: [1777664],
    },
  ],
};

/** Two peaks compared: twenty lines changed by 2^i KiB, every third of them downwards, and one did not. */
export const difference = (() => {
  const column = (name, unit) => ({ name, title: name, unit, label: "measured" });
  const rows = Array.from({ length: 20 }, (_, i) => {
    const delta = 2 ** i * 1024 * (i % 3 ? 1 : -1);
    return [`train.py:line_${i}`, delta, delta < 0 ? -delta : 0, delta < 0 ? 0 : delta, 1, 1];
  });
  return {
    ...empty,
    run: { ...empty.run, verb: "diff", name: "a → b" },
    headline: { ...empty.headline, ...said("The peak rose"), complete: true },
    tables: [
      {
        name: "diff",
        title: "Where the difference comes from, by site",
        columns: [
          column("what", "text"),
          ...["delta", "a", "b"].map((n) => column(n, "bytes")),
          ...["a_blocks", "b_blocks"].map((n) => column(n, "count")),
        ],
        rows: [["train.py:same", 0, 4096, 4096, 1, 1], ...rows],
      },
    ],
  };
})();

/** What an imaginary GPU of 22 GiB held: the parts, in GiB, add up to the device. */
export const parts = {
  parameters: 2,
  gradients: 2,
  optimizer: 4,
  activations: 6.5,
  temporaries: 0.25,
  "reserved, not allocated": 1,
  "context and libraries": 0.35,
  free: 5.9,
};
export const imagined = (() => {
  const GiB = 2 ** 30,
    categories = Object.entries(parts)
      .slice(0, 5)
      .map(([name, size]) => ({ name, bytes: size * GiB }));
  const figures = {
    total_bytes: 22 * GiB,
    peak_allocated_bytes: 14.75 * GiB,
    peak_reserved_bytes: 15.75 * GiB,
    peak_device_used_bytes: 16.1 * GiB,
    headroom_bytes: 5.9 * GiB,
  };
  return {
    ...real,
    run: { ...real.run, verb: "imagine", label: "imagined" },
    headline: {
      ...real.headline,
      ...said("Fits on NVIDIA A10: 16.1 GiB of 22.0 GiB in use at the peak"),
      peak: {
        ...real.headline.peak,
        device_used_bytes: figures.peak_device_used_bytes,
        label: "imagined",
      },
    },
    imagined: { gpu_name: "NVIDIA A10", verdict: "fits", categories, ...figures },
  };
})();

const many = (n, make) => Array.from({ length: n }, (_, i) => make(i));

/** An hour of eight ranks on a GPU that ran out of memory, with everything that a report can carry, and hundreds of helpers. */
export const hour = (() => {
  const second = 1e9,
    hours = 3600 * second,
    GiB = 2 ** 30;
  const wave = (n, base, rise, swing) =>
    many(n, (i) => Math.round(base + (rise * i) / n + swing * Math.sin(i / 3) * Math.cos(i / 41)));
  const times = (n) => many(n, (i) => Math.round((i * hours) / n));
  const series = (name, title, process, unit, n, y, more = {}) => ({
    name,
    title,
    process,
    unit,
    x_unit: "ns",
    label: "measured",
    x: times(n),
    y,
    ...more,
  });
  const ranks = many(8, (i) => ({
    id: i + 1,
    pid: 4000 + i,
    role: "rank",
    rank: i,
    world_size: 8,
    python: "3.11.9",
    frameworks: { torch: "2.15.0" },
    start_mono_ns: 0,
  }));
  const phases = many(8, (p) =>
    many(60, (s) => {
      const at = s * 60 * second + p * 1e6,
        step = (phase, from, to) => ({
          process: p + 1,
          phase,
          step: s * 1200,
          start_ns: Math.round(at + from * 5e7),
          end_ns: Math.round(at + to * 5e7),
        });
      return [
        step("data", 0, 0.1),
        step("forward", 0.1, 0.45),
        step("backward", 0.45, 0.9),
        step("optimizer", 0.9, 1),
      ];
    }).flat(),
  ).flat();
  return {
    ...real,
    run: {
      ...real.run,
      name: "llm-pretrain",
      label: "measured",
      command: ["torchrun", "--nproc-per-node", "8", "train.py", "--tokens", "a b"],
      host: {
        ...real.run.host,
        cpus: 96,
        memory_bytes: 1024 * GiB,
        gpus: many(8, (i) => ({
          index: i,
          vendor: "nvidia",
          name: "H100 80GB",
          memory_bytes: 80 * GiB,
        })),
      },
    },
    headline: {
      ...said(
        "Out of memory: torch could not get 2.50 GiB at model.py:88 on cuda:3",
        "peak 78.1 GiB reserved (measured) in backward of step 71,204",
      ),
      duration_ns: hours,
      steps: 71204,
      exit_code: 1,
      complete: true,
      growth_bytes_per_step: 0,
      step_time_ns: 5e7,
      main_source: "allocator.reserved",
      peak: {
        host_rss_bytes: 90 * GiB,
        host_pss_bytes: 61 * GiB,
        device_used_bytes: 79 * GiB,
        allocated_bytes: 70 * GiB,
        reserved_bytes: 78 * GiB,
        time_ns: hours - second,
        phase: "backward",
        step: 71203,
        process: 4,
        label: "measured",
      },
    },
    processes: [
      ...ranks,
      ...many(300, (i) => ({
        id: i + 9,
        pid: 5000 + i,
        parent: 1 + (i % 8),
        role: "dataloader",
        start_mono_ns: 0,
      })),
    ],
    findings: [
      {
        kind: "oom",
        severity: "critical",
        title: "torch could not get 2.50 GiB on cuda:3",
        text: "The allocator held 78.1 GiB, of which 70.0 GiB were in tensors.",
        advice: "Try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
        file: "/home/me/llm/model.py",
        line: 88,
        bytes: 2.5 * GiB,
        process: 4,
        phase: "backward",
        label: "measured",
      },
      {
        kind: "fragmentation",
        severity: "warning",
        title: "8.10 GiB of the device lie in gaps",
        text: "Cached blocks too small for what is asked for.",
        bytes: Math.round(8.1 * GiB),
        label: "measured",
      },
      ...many(9, (i) => ({
        kind: "alert",
        severity: "info",
        title: `alert device.used > ${70 + i} GiB`,
        text: `alert device.used > ${70 + i} GiB at step ${i}`,
        label: "measured",
      })),
    ],
    series: [
      series(
        "tree.rss",
        "RSS, all processes",
        0,
        "bytes",
        1000,
        wave(1000, 80 * GiB, 8 * GiB, GiB),
      ),
      series("tree.pss", "PSS, all processes", 0, "bytes", 200, wave(200, 55 * GiB, 4 * GiB, GiB)),
      ...many(8, (i) =>
        series(
          "allocator.allocated",
          "allocated",
          i + 1,
          "bytes",
          1000,
          wave(1000, 55 * GiB, 9 * GiB, 5 * GiB),
          { device: `cuda:${i}`, framework: "torch", of: `rank ${i} on cuda:${i} (torch)` },
        ),
      ),
      ...many(8, (i) =>
        series(
          "allocator.reserved",
          "reserved",
          i + 1,
          "bytes",
          800,
          wave(800, 66 * GiB, 11 * GiB, 0.3 * GiB),
          { device: `cuda:${i}`, framework: "torch", of: `rank ${i} on cuda:${i} (torch)` },
        ),
      ),
      ...many(8, (i) =>
        series("device.utilisation", "utilisation", 0, "milli", 300, wave(300, 920, 0, 60), {
          device: `nvidia:${i}`,
          of: `nvidia:${i}`,
        }),
      ),
      ...many(2, (i) =>
        series("device.temperature", "temperature", 0, "celsius", 300, wave(300, 58, 12, 3), {
          device: `nvidia:${i}`,
          of: `nvidia:${i}`,
        }),
      ),
    ],
    phases,
    steps: many(8, (p) =>
      many(120, (s) => ({
        process: p + 1,
        step: s * 600,
        time_ns: s * 30 * second,
        rss_bytes: 10 * GiB + ((s * 7) % 5) * 2 ** 20,
        device_bytes: 55 * GiB,
      })),
    ).flat(),
    marks: [
      { time_ns: 1200 * second, kind: "alert", text: "alert host.rss > 80GiB", process: 1 },
      { time_ns: 1230 * second, kind: "alert", text: "alert host.rss > 81GiB", process: 1 },
      {
        time_ns: 3599 * second,
        kind: "oom",
        text: "torch.OutOfMemoryError: CUDA out of memory",
        process: 4,
      },
      { time_ns: 3599 * second, kind: "snapshot", text: "oom-rank3.pickle", process: 4 },
    ],
    tables: [
      ...real.tables.filter((t) => t.name === "phases"),
      {
        name: "processes",
        title: "Processes",
        columns: [
          { name: "process", title: "process" },
          { name: "rss", title: "peak RSS", unit: "bytes" },
          { name: "life", title: "life", unit: "ns" },
          { name: "swap", title: "swap", unit: "bytes" },
        ],
        rows: many(308, (i) => [
          i < 8 ? `rank ${i}` : `dataloader ${i}`,
          (400 - i) * 2 ** 20,
          hours,
          i % 3 ? null : 0,
        ]),
      },
    ],
    notes: ["GPU counters were read through NVML."],
    dropped: 12,
  };
})();
