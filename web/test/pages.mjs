// Every page there is, with real data in it. A page is one line: its name, its address or file, and what is there once it has drawn.
// `of` names what it needs of the world; without a Python with torch some of that is not there, and the page is left out and said to be.

export const pages = [
  { name: "list", at: () => "/", ready: "table.runs tbody tr" },
  { name: "run", of: "run", at: (w) => `/runs/${w.run}`, ready: "#timeline canvas" },
  { name: "run-live", of: "live", at: (w) => `/runs/${w.live}`, ready: "#timeline canvas" },
  { name: "run-imagined", of: "imagined", at: (w) => `/runs/${w.imagined}`, ready: "#capacity" },
  { name: "snapshots", at: () => "/snapshots", ready: "#snapshots tbody tr" },
  {
    name: "explorer",
    of: "snapshot",
    at: (w) => `/snapshots/${w.snapshot}?at=10000&block=1024&q=linear`,
    ready: "#explorer aside h3",
  },
  {
    name: "what-if",
    of: "snapshot",
    at: (w) => `/snapshots/${w.snapshot}/whatif?settings=expandable_segments:True`,
    ready: "#whatif .said:not(:empty)",
  },
  {
    name: "plan",
    at: () =>
      `/plan?users=20&seq=2048&sent=config.json&config=${encodeURIComponent(JSON.stringify({ model_type: "gpt2", vocab_size: 50257, n_embd: 768, n_layer: 12, n_head: 12 }))}`,
    ready: "#plan-gpus svg",
  },
  { name: "imagine", at: () => "/imagine", ready: "#catalogue tbody tr" },
  {
    name: "imagine-done",
    of: "imagine",
    at: (w) => `/imagine?job=${w.imagine}`,
    ready: ".verdict .answer",
  },
  { name: "fit", at: () => "/fit", ready: "#catalogue tbody tr" },
  { name: "fit-done", of: "fit", at: (w) => `/fit?job=${w.fit}&gpu=t4`, ready: ".verdict .answer" },
  { name: "tune", at: () => "/tune", ready: "#catalogue tbody tr" },
  { name: "jobs", at: (w) => `/jobs?job=${w.search}`, ready: "#jobs tbody tr" },
  { name: "matrices", at: () => "/matrices", ready: "#matrices tbody tr" },
  { name: "matrix", at: () => "/matrices/sizes", ready: "#bars .mark" },
  { name: "compare", at: (w) => `/diff?a=${w.plain}&b=${w.plain2}`, ready: "#difference svg" },
  {
    name: "compare-device",
    of: "imagined",
    at: (w) => `/diff?a=${w.imagined2}&b=${w.imagined}`,
    ready: "#difference:has(svg) .switch button[aria-pressed=true]:text-is('device, by call')",
  },
  { name: "compare-choose", at: () => "/diff", ready: ".empty" },
  { name: "no-page", at: () => "/nothing", ready: "h1" },
  { name: "report", file: (w) => w.report, ready: "#timeline canvas" },
  { name: "report-snapshot", file: (w) => w.snapshotReport, ready: "#segments canvas" },
  { name: "report-matrix", file: (w) => w.matrixFile, ready: "#bars .mark" },
];
