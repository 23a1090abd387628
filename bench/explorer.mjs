// node bench/explorer.mjs '{"hightide":…,"file":…,"cold":1,"first":2,"clicks":4,"seconds":2,"viz":{"script":…,"d3":…}}': measures the explorer
// of a snapshot in a headless Chromium with software rendering, and PyTorch's memory_viz on the same file where its script is given.
//
// The pages measure themselves: from the click to the second frame after the blocks were drawn, when the first is on the screen. While
// the hand moves, one event of the pointer or the wheel is sent in each frame; Chromium's own trace says when frames were presented.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { askJSON as api, letIn, tokenOf } from "../web/test/kit.mjs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const { chromium } = createRequire(
  new URL("../web/package.json", import.meta.url),
)("playwright-core");
const asked = JSON.parse(process.argv[2]);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

async function page(server) {
  const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
    }),
    tab = await context.newPage();
  if (server) await letIn(context, server);
  await context.addInitScript(() => {
    const drawn = new Promise((done) => {
      new MutationObserver((_, all) => {
        if (!document.querySelector(".explorer[data-tile]")) return;
        all.disconnect();
        requestAnimationFrame(() =>
          requestAnimationFrame(() => done(performance.now())),
        );
      }).observe(document, {
        subtree: true,
        childList: true,
        attributes: true,
        attributeFilter: ["data-tile"],
      });
    });
    addEventListener(
      "click",
      (e) => {
        window.clicked = e.timeStamp;
      },
      true,
    );
    window.picture = () => drawn.then((at) => at - (window.clicked ?? 0));
  });
  return tab;
}

// the server

const ticks = 100; // a second, as /proc/PID/stat has them
function started() {
  const data = mkdtempSync(join(tmpdir(), "hightide-bench-")),
    began = performance.now();
  const child = spawn(
    asked.hightide,
    ["ui", "--addr", "127.0.0.1:0", asked.file],
    {
      env: { ...process.env, HIGHTIDE_DATA: data },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  return new Promise((done, fail) => {
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
      const found = /http:\S+/.exec(said);
      if (found)
        done({
          child,
          data,
          began,
          address: new URL(found[0]),
          token: tokenOf(data, found[0]),
        });
    });
    child.on("exit", () => fail(new Error(`the server ended: ${said}`)));
  });
}
const ended = ({ child, data }) =>
  new Promise((done) => {
    child.removeAllListeners("exit");
    child.on("exit", () => {
      rmSync(data, { recursive: true });
      done();
    });
    child.kill("SIGINT");
  });
const memory = ({ child }, what) =>
  Number(
    new RegExp(`${what}:\\s+(\\d+)`).exec(
      readFileSync(`/proc/${child.pid}/status`, "utf8"),
    )[1],
  ) * 1024;
const worked = ({ child }) => {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
    .split(") ")[1]
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticks;
};
async function ready(server) {
  for (;;) {
    const {
      snapshots: [one],
    } = await api(server, "/snapshots");
    if (one.state === "failed") throw new Error(one.problem);
    if (one.state === "ready") return one;
    await new Promise((done) => setTimeout(done, 50));
  }
}

// what is measured

/** From the click on the snapshot's link in the list to its blocks. */
async function click(server) {
  const tab = await page(server),
    bodies = [];
  let page_bytes = 0;
  tab.on("response", (r) =>
    bodies.push(
      Promise.all([r.request().sizes(), r.body()]).then(
        ([sizes, body]) => {
          page_bytes += sizes.responseBodySize;
          if (r.url().includes("/api/v1/"))
            told.sizes.push([
              new URL(r.url()).pathname.split("/").slice(5).join("/"),
              sizes.responseBodySize,
              body.length,
            ]);
        },
        () => {},
      ),
    ),
  ); // a request that was given up has none
  await tab.goto(new URL("/snapshots", server.address).href);
  const link = tab.locator("td a").first(),
    before = worked(server);
  await link.click();
  const took = await tab.evaluate(() => window.picture()),
    server_s = worked(server) - before;
  await tab.locator(".explorer[data-moment]").waitFor();
  await tab.waitForLoadState("networkidle");
  await Promise.all(bodies);
  return { tab, took, server_s, page_bytes };
}

/** Sends an event in each frame for a time, and tells when frames were presented meanwhile. */
async function frames(tab, selector, gesture, seconds) {
  await browser.startTracing(tab, {
    categories: ["cc", "benchmark", "blink.user_timing"],
  });
  const long = await tab.evaluate(
    ({ selector, gesture, seconds }) =>
      new Promise((done) => {
        const target = document.querySelector(selector),
          { left, top, width, height } = target.getBoundingClientRect(),
          until = performance.now() + seconds * 1000,
          times = [];
        const at = (x, y, more) => ({
          bubbles: true,
          cancelable: true,
          clientX: left + x,
          clientY: top + y,
          button: 0,
          buttons: 1,
          pointerId: 1,
          view: window,
          ...more,
        });
        let n = 0;
        target.setPointerCapture = () => {}; // there is no real pointer to capture
        const send = (type, x, y) => {
          target.dispatchEvent(new PointerEvent(`pointer${type}`, at(x, y)));
          target.dispatchEvent(new MouseEvent(`mouse${type}`, at(x, y)));
        };
        const gestures = {
          zoom: () =>
            target.dispatchEvent(
              new WheelEvent(
                "wheel",
                at(width * 0.6, height * 0.8, {
                  deltaY: n % 100 < 50 ? -60 : 60,
                }),
              ),
            ),
          pan: () =>
            send(
              "move",
              width / 2 + Math.sin(n / 20) * width * 0.4,
              height / 2,
            ),
        };
        if (gesture === "pan") send("down", width / 2, height / 2);
        performance.mark("hand begins");
        const next = () => {
          const from = performance.now();
          gestures[gesture]();
          times.push(performance.now() - from);
          n++;
          if (performance.now() < until) requestAnimationFrame(next);
          else {
            performance.mark("hand ends");
            if (gesture === "pan") send("up", width / 2, height / 2);
            done(times);
          }
        };
        requestAnimationFrame(next);
      }),
    { selector, gesture, seconds },
  );
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const [{ ts: from, pid }, { ts: to }] = ["hand begins", "hand ends"].map(
    (name) => traceEvents.find((e) => e.name === name),
  );
  const shown = [
    ...new Set(
      traceEvents
        .filter(
          (e) =>
            e.name === "SubmitCompositorFrameToPresentationCompositorFrame" &&
            e.ph === "e" &&
            e.ts >= from &&
            e.ts <= to,
        )
        .map((e) => e.ts),
    ),
  ].sort((a, b) => a - b);
  return {
    sent: long.length,
    shown: shown.slice(1).map((at, i) => (at - shown[i]) / 1000),
    pid,
  };
}

/** What the process of a tab holds once its garbage is collected, and what of it is the script's heap. */
async function held(tab, pid) {
  const devtools = await tab.context().newCDPSession(tab);
  await devtools.send("HeapProfiler.collectGarbage");
  const heap = (await devtools.send("Runtime.getHeapUsage")).usedSize;
  const [, kB] = /^Pss:\s+(\d+)/m.exec(
    readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"),
  );
  return { pss: Number(kB) * 1024, heap };
}

const told = { cold: [], first: [], again: [], sizes: [], frames: {} };
for (let i = 0; i < asked.cold; i++) {
  const server = await started(),
    {
      snapshots: [{ id }],
    } = await api(server, "/snapshots"),
    tab = await page(server);
  await tab.goto(new URL(`/snapshots/${id}`, server.address).href);
  await tab.evaluate(() => window.picture());
  told.cold.push({
    ms: performance.now() - server.began,
    server_s: worked(server),
    server_most: memory(server, "VmHWM"),
  });
  await tab.context().close();
  await ended(server);
}
const viz = asked.viz && (await servedViz());
for (let i = 0; i < asked.first; i++) {
  if (viz) await openedByViz(i === 0); // the two pages take turns
  const server = await started(),
    about = await ready(server);
  told.devices = about.devices;
  const first = await click(server);
  told.page_bytes = first.page_bytes;
  told.first.push({
    ms: first.took,
    server_s: first.server_s,
    server_most: memory(server, "VmHWM"),
  });
  await first.tab.context().close();
  if (i + 1 === asked.first) {
    for (let k = 0; k < asked.clicks; k++) {
      const { tab, took, server_s } = await click(server);
      told.again.push({ ms: took, server_s });
      if (k === 0) await hand(tab);
      await tab.context().close();
    }
    told.server_most = memory(server, "VmHWM");
    if (asked.rest) {
      while ((await api(server, "/snapshots")).snapshots[0].state === "ready")
        await new Promise((done) => setTimeout(done, 1000)); // the list is not a look
      await new Promise((done) => setTimeout(done, 5000));
    }
    told.server_rest = memory(server, "VmRSS");
  }
  await ended(server);
}

/** Zooms and pans, each first in the whole trace and then in a part of it. */
async function hand(tab) {
  const canvas = tab.locator(".stacked canvas");
  await canvas.scrollIntoViewIfNeeded();
  for (const [name, gesture, part] of [
    ["zoom", "zoom", 0],
    ["pan of a tenth", "pan", 10],
    ["pan of a thousandth", "pan", 1000],
  ]) {
    await canvas.focus();
    await tab.keyboard.press("f");
    if (part) {
      const { x, y, width, height } = await canvas.boundingBox();
      await tab.mouse.move(x + width * 0.6, y + height * 0.8);
      await tab.mouse.wheel(0, -Math.log(part) / 0.0015);
      await tab.waitForFunction(() =>
        new URLSearchParams(location.search).has("t"),
      );
    }
    await tab.waitForLoadState("networkidle");
    told.frames[name] = await frames(
      tab,
      ".stacked canvas",
      gesture,
      asked.seconds,
    );
  }
  told.tab = await held(tab, told.frames.zoom.pid);
}

// PyTorch's own page, which reads the file in the browser

/** Serves the page of the script's own version: with all of d3 instead of the parts that it names, and its neighbour where it has one. */
async function servedViz() {
  const text = (path) =>
    readFileSync(path, "utf8")
      .replace(/^import \* as d3 from .*$/m, "const d3 = globalThis.d3;")
      .replace(
        /^import \{([^}]*)\} from "https:.*$/gm,
        "const {$1} = globalThis.d3;",
      );
  const files = {
    "/": [
      "text/html",
      '<!doctype html><body><script src="d3.js"></script><button>open</button><script type="module">import { add_remote_files } from "./viz.js"; document.querySelector("button").onclick = () => add_remote_files([{ name: "a", url: "a.pickle" }]);</script>',
    ],
    "/viz.js": ["text/javascript", text(asked.viz.script)],
    "/d3.js": ["text/javascript", readFileSync(asked.viz.d3)],
    "/a.pickle": ["application/octet-stream", readFileSync(asked.file)],
  };
  const beside = join(dirname(asked.viz.script), "process_alloc_data.js");
  if (existsSync(beside))
    files["/process_alloc_data.js"] = ["text/javascript", text(beside)];
  const web = createServer((request, answer) => {
    const [type, body] = files[request.url] ?? ["text/plain", ""];
    answer.setHeader("Content-Type", type).end(body);
  });
  await new Promise((done) => web.listen(0, "127.0.0.1", done));
  told.viz = {
    first: [],
    bytes: Object.values(files).reduce((sum, [, body]) => sum + body.length, 0),
  };
  return web;
}

/** From the click that opens the file to its polygons, which memory_viz draws all at once. */
async function openedByViz(move) {
  const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
    }),
    tab = await context.newPage();
  await tab.goto(`http://127.0.0.1:${viz.address().port}/`);
  told.viz.first.push(
    await tab.evaluate(
      () =>
        new Promise((done) => {
          const from = performance.now();
          new MutationObserver((_, all) => {
            if (!document.querySelector("svg polygon")) return;
            all.disconnect();
            requestAnimationFrame(() =>
              requestAnimationFrame(() => done(performance.now() - from)),
            );
          }).observe(document, { subtree: true, childList: true });
          document.querySelector("button").click();
        }),
    ),
  );
  if (move) {
    told.viz.drawn = await tab.locator("svg polygon").count();
    told.viz.frames = {};
    for (const gesture of ["zoom", "pan"])
      told.viz.frames[gesture] = await frames(
        tab,
        "svg rect",
        gesture,
        asked.seconds,
      ); // the pan is where the zoom ended
    if (!/scale\((?!1\))/.test(await tab.locator("svg").first().innerHTML()))
      throw new Error("memory_viz did not zoom");
    told.viz.tab = await held(tab, told.viz.frames.zoom.pid);
  }
  await context.close();
}
viz?.close();
await browser.close();
process.stdout.write(JSON.stringify(told));
