// The explorer of a snapshot in a real Chromium on the real server: hover, click, zoom, pan, step, search.
//   node test/explorer.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { askJSON, fresh, launch, screenshots, serve, shot, shown } from "./kit.mjs";
import { snapshotFile } from "./world.mjs";

const folder = screenshots("explorer");

// A snapshot of two devices whose program is on this machine: each line keeps some of its blocks.
const own = fresh("own"),
  program = join(own, "trains.py"),
  pair = join(own, "pair.pickle");
writeFileSync(
  program,
  "import torch\n\ndef keep(n):\n    return torch.empty(n, device='cuda')\n\ndef work(n):\n    return torch.empty(n, device='cuda:1').sum()\n",
);
execFileSync("python3", [
  "-c",
  `
import pickle, sys
program, out = sys.argv[1:]
def trace(base, lines):
    events = [{"action": "segment_alloc", "addr": base, "size": 64 << 20, "stream": 0, "frames": [], "time_us": 1}]
    for i in range(24):
        line, name = lines[i % len(lines)]
        frames = [{"filename": program, "line": line, "name": name}]
        events.append({"action": "alloc", "addr": base + (i << 21), "size": 2 << 20, "stream": 0, "frames": frames, "time_us": 2 + i})
        if i % 3 == 0: events += [{"action": a, "addr": base + (i << 21), "size": 2 << 20, "stream": 0, "frames": frames, "time_us": 2 + i} for a in ("free_requested", "free_completed")]
    return events
pickle.dump({"segments": [], "device_traces": [trace(1 << 40, [(4, "keep")]), trace(1 << 41, [(4, "keep"), (7, "work")])], "allocator_settings": {}}, open(out, "wb"))
`,
  program,
  pair,
]);
const server = await serve({ ...process.env, HIGHTIDE_DATA: fresh("data") }, [snapshotFile, pair]),
  { address } = server;
const api = (path) => askJSON(server, path);
const opened = (await api("/snapshots")).snapshots,
  { id } = opened.find((s) => s.name.startsWith("h100")),
  two = `/snapshots/${opened.find((s) => s.name.startsWith("pair")).id}`,
  page = `/snapshots/${id}`,
  {
    devices: [device],
  } = await api(page);
const top = device.peak_reserved_bytes * 1.03; // bytes that the whole picture reaches up to
const browser = await launch();
let passed = 0;

async function look(name, path, { width = 1280, scheme = "light", refused = false }, check) {
  const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: scheme,
    }),
    tab = await context.newPage(),
    complaints = [];
  tab.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
  tab.on("pageerror", (e) => complaints.push(e.message));
  await tab.goto(new URL(path, address).href);
  await tab.locator("#explorer .explorer[data-tile][data-moment]").waitFor();
  await check(tab);
  assert.ok(
    !/undefined|NaN|Infinity|\[object/.test(await tab.locator("#explorer").innerText()),
    `${name}: no holes`,
  );
  assert.ok(
    await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
    `${name}: too wide`,
  );
  await shot(tab, join(folder, `${name}.png`));
  assert.deepEqual(
    complaints.filter((c) => !refused || !c.startsWith("Failed to load resource")),
    [],
    `${name}: the page complains`,
  );
  await context.close();
  passed++;
}
const words = (tab) => new URL(tab.url()).searchParams;
const asked = (tab, key, value) =>
  tab.waitForFunction(
    ([key, value]) => new URLSearchParams(location.search).get(key) === value,
    [key, value],
  );

await look("explorer", page, {}, async (tab) => {
  const canvas = tab.locator(".stacked canvas"),
    { width, height } = await canvas.boundingBox();
  const at = { x: Math.round(width * 0.6), y: 0 },
    point = Math.floor((at.x / width) * (device.events + 1));
  let most = 0; // where a large block lies: small ones are not drawn singly
  for (let y = Math.round(0.85 * height); y < 0.95 * height; y += 3) {
    const { size } = await api(
      `${page}/block?at=${point}&offset=${Math.round((1 - y / height) * top)}`,
    );
    if (size > most) [at.y, most] = [y, size];
  }
  const offset = Math.round((1 - at.y / height) * top);
  await canvas.hover({ position: at });
  await tab.locator(".float b").waitFor();
  assert.match(
    await tab.locator(".float").innerText(),
    /[\d.]+ [KMG]iB[\s\S]*from/,
    "its size and its life",
  );
  await canvas.click({ position: at });
  await asked(tab, "at", String(point));
  await tab.waitForFunction(() => new URLSearchParams(location.search).has("block"));
  const really = await api(`${page}/block?n=${words(tab).get("block")}&at=${point}`),
    pixel = top / height; // a block may be less than a pixel high
  assert.ok(
    really.offset - 2 * pixel < offset && offset < really.offset + really.size + 2 * pixel,
    `the server has block ${really.n} at ${really.offset}, clicked at ${offset}`,
  );
  await tab.locator("aside h3", { hasText: `Block ${really.n}` }).waitFor();
  assert.match(
    await tab.locator("aside").innerText(),
    new RegExp(
      `${really.requested.toLocaleString("en")} B[\\s\\S]*${really.category}[\\s\\S]*${really.address}`,
    ),
  );
  await tab.locator(".sites", { hasText: "the peak" }).waitFor();
  await tab.keyboard.press("ArrowRight");
  await asked(tab, "at", String(point + 1));
  await tab.locator(`.explorer[data-moment="${point + 1}"]`).waitFor();
  assert.match(
    await tab.locator(".tapes h3").innerText(),
    new RegExp(`after event ${point.toLocaleString("en")}`),
    "the segments are those of that event",
  );
  const moment = await api(`${page}/moment?at=${point + 1}`);
  assert.match(
    await tab.locator(".tapes h3").innerText(),
    new RegExp(`in ${moment.blocks.toLocaleString("en")} blocks`),
  );
  await tab.keyboard.press("ArrowLeft");
  await asked(tab, "at", String(point));
  // the wheel zooms where the pointer is
  await canvas.hover({ position: at });
  await tab.mouse.wheel(0, -1200);
  await tab.waitForFunction(() => new URLSearchParams(location.search).has("t"));
  const [from, to] = words(tab).get("t").split("-").map(Number);
  assert.ok(
    to - from < 0.3 * device.events && from < point && to > point,
    `zoomed to ${from}-${to} around ${point}`,
  );
  await tab.locator(`.explorer[data-tile="${from}-${to}"]`).waitFor();
  // with shift it zooms in bytes, which stand in the address too
  await tab.keyboard.down("Shift");
  await tab.mouse.wheel(0, -600);
  await tab.keyboard.up("Shift");
  await tab.waitForFunction(() => new URLSearchParams(location.search).has("y"));
  const [low, high] = words(tab).get("y").split("-").map(Number);
  assert.ok(
    low <= offset && high >= offset && high - low < 0.6 * top,
    `zoomed to ${low}-${high} around ${offset}`,
  );
  // a drag pans
  const box = await canvas.boundingBox();
  await tab.mouse.move(box.x + 400, box.y + 100);
  await tab.mouse.down();
  await tab.mouse.move(box.x + 300, box.y + 100, { steps: 3 });
  await tab.mouse.up();
  await tab.waitForFunction(
    (before) =>
      Number((new URLSearchParams(location.search).get("t") ?? "0").split("-")[0]) > before,
    from,
  );
  assert.equal(words(tab).get("block"), String(really.n), "a drag selects nothing");
  await canvas.focus();
  await tab.keyboard.press("f");
  await tab.waitForFunction(
    () =>
      !new URLSearchParams(location.search).has("t") &&
      !new URLSearchParams(location.search).has("y"),
  );
  await tab.locator(`.explorer[data-tile="0-${device.events + 1}"]`).waitFor();
  // the axes are of what is looked at, and what was reserved is in it
  const ticks = async (axis) =>
    (await tab.locator(`.axis-${axis} span`).allInnerTexts()).map((text) =>
      Number.parseFloat(text.replaceAll(",", "")),
    );
  assert.ok(top > device.peak_reserved_bytes, "the highest that was reserved is in the picture");
  assert.deepEqual(await ticks("bytes"), [0, 16, 32, 48], "GiB");
  assert.ok(
    (await ticks("events")).every((e, i) => e === 5000 * i),
    "every 5,000 events",
  );
  // a stretch that is drawn on the whole trace in small is looked at, and its edge moves by keys
  await tab.locator("#explorer .minimap").scrollIntoViewIfNeeded();
  const map = await tab.locator("#explorer .minimap").boundingBox(),
    stretch = (share) => [map.x + map.width * share, map.y + map.height / 2];
  await tab.mouse.move(...stretch(0.2));
  await tab.mouse.down();
  await tab.mouse.move(...stretch(0.4), { steps: 3 });
  await tab.mouse.up();
  await tab.waitForFunction((all) => {
    const [a, b] = (new URLSearchParams(location.search).get("t") ?? "0-0").split("-");
    return Math.abs(a / all - 0.2) < 0.01 && Math.abs(b / all - 0.4) < 0.01;
  }, device.events + 1); // the address may have stood in between
  const [a, b] = words(tab).get("t").split("-").map(Number);
  const shownTicks = await ticks("events");
  assert.ok(
    shownTicks.length > 2 && shownTicks.every((e) => e >= a && e <= b),
    `ticks at ${shownTicks} of ${a} to ${b}`,
  );
  await tab.locator("#explorer .minimap .to").focus();
  await tab.keyboard.press("PageUp");
  await tab.waitForFunction(
    (before) =>
      Number(new URLSearchParams(location.search).get("t")?.split("-")[1]) > before + 1000,
    b,
  );
  await canvas.focus();
  await tab.keyboard.press("f");
  await tab.waitForFunction(() => !new URLSearchParams(location.search).has("t"));
  await tab.locator(`.explorer[data-tile="0-${device.events + 1}"]`).waitFor();
  // a block too small to draw is found all the same
  const small = { x: Math.round(width * 0.25), y: Math.round(height * 0.72) };
  await canvas.click({ position: small });
  await tab.waitForFunction(
    (before) => ![null, before].includes(new URLSearchParams(location.search).get("block")),
    String(really.n),
  );
  const tiny = await api(`${page}/block?n=${words(tab).get("block")}`);
  assert.ok(tiny.size < pixel, `${tiny.size} bytes are less than a pixel`);
});
await look("settings", page, {}, async (tab) => {
  await tab.locator(".facts", { hasText: "PYTORCH_CUDA_ALLOC_CONF not set" }).waitFor(); // as the file says
});
await look("search", `${page}?q=transformer.py&at=10000`, { refused: true }, async (tab) => {
  await tab
    .evaluate(() =>
      performance
        .getEntriesByType("resource")
        .some((e) => e.name.includes("/moment?") && e.name.includes("q=transformer.py")),
    )
    .then((asked) => assert.ok(asked, "the segments are searched too"));
  const found = await api(`${page}/search?q=transformer.py`);
  await tab
    .locator(".found-blocks", { hasText: `${found.blocks.toLocaleString("en")} blocks match` })
    .waitFor();
  assert.equal(
    await tab
      .locator("#explorer-flames .hits:visible, #explorer-flames .reading", {
        hasText: /matches here|Nothing/,
      })
      .count(),
    0,
    "a graph that was not asked for has found nothing",
  );
  await tab.locator(".event.found").first().waitFor(); // the list of events has its own, and others step back
  await tab.locator(".event.other").first().waitFor();
  await tab.getByLabel("Search blocks").fill("(");
  await tab.locator(".explorer .failure", { hasText: "regular expression" }).first().waitFor();
  await tab.getByLabel("Search blocks").fill("linear");
  await tab.locator(".explorer .failure").waitFor({ state: "detached" });
});
for (const [by, unit] of [
  ["category", ""],
  ["module", ""],
  ["size", "iB"],
  ["age", "events"],
  ["stream", "stream"],
])
  await look(`colours-${by}`, page, { scheme: by === "size" ? "dark" : "light" }, async (tab) => {
    await tab.getByLabel("Colours by").selectOption(by);
    await asked(tab, "colour", by);
    const entries = tab.locator(".sites button");
    await tab.waitForFunction(
      (unit) =>
        [...document.querySelectorAll(".sites button")].every((b) => b.textContent.includes(unit)),
      unit,
    );
    await tab.locator(".explorer[data-moment]").waitFor();
    // the legend filters: one value alone, as the server counts it
    const name = await entries.first().textContent();
    await entries.first().click();
    await tab.locator(".sites button[aria-pressed=true]", { hasText: name }).waitFor();
    const key = ["category", "module"].includes(by) ? by : "only",
      only = words(tab).get(key),
      found = await api(`${page}/search?by=${by}&only=${encodeURIComponent(only)}`);
    assert.ok(found.blocks > 0, `${only} are ${found.blocks} blocks`);
    await tab
      .locator(".found-blocks", { hasText: `${found.blocks.toLocaleString("en")} blocks match` })
      .waitFor();
    await shot(tab, join(folder, `only-${by}.png`));
    await tab.locator(".sites button[aria-pressed=true]").click();
    await tab.waitForFunction((key) => !new URLSearchParams(location.search).has(key), key);
  });
await look("one-selection", `${page}?at=10000&block=1024&t=9000-12000`, {}, async (tab) => {
  // the same moment and the same block in the what-if, and back
  await tab.getByRole("link", { name: "What if" }).click();
  await tab.locator("#whatif .said:not(:empty)").waitFor();
  assert.match(tab.url(), /whatif\?t=9000-12000&at=10000&block=1024$/);
  const tape = tab.locator(".tapes canvas").first(),
    box = await tape.boundingBox();
  const chosen = () => tab.evaluate(() => new URLSearchParams(location.search).get("block")); // what was there before the trace has no number here
  for (let x = 0.95; [null, "1024"].includes(await chosen()) && x > 0; x -= 0.05)
    await tape.click({ position: { x: box.width * x, y: box.height / 2 } });
  assert.ok(![null, "1024"].includes(await chosen()), "a block is chosen");
  const n = words(tab).get("block"),
    block = await api(`${page}/block?n=${n}`);
  assert.ok(
    block.begin <= 10000 && (block.end < 0 || block.gone > 10000),
    `block ${n} is there from ${block.begin} to ${block.gone}`,
  );
  await tab.getByRole("link", { name: /^The snapshot h100-lm-ctx128/ }).click();
  await tab.locator("aside h3", { hasText: `Block ${Number(n).toLocaleString("en")}` }).waitFor();
  await tab.locator("#explorer .explorer[data-tile][data-moment]").waitFor();
});
await look("line", `${page}?at=19763`, {}, async (tab) => {
  // a row of a table of lines is the selection of the stack, the list, the graph, the course below, and of the what-if
  const row = tab.locator("[id^=table-turnover] tr.pickable", { hasText: "optimizers.py:100" }),
    chips = tab.getByRole("region", { name: "What is selected" });
  await row.click();
  await asked(tab, "line", "optimizers.py:100");
  const found = await api(`${page}/search?line=optimizers.py:100`);
  assert.ok(found.blocks > 0 && found.sites.length === 1);
  await tab
    .locator(".found-blocks", { hasText: `${found.blocks.toLocaleString("en")} blocks match` })
    .waitFor();
  await tab.locator(".sites button[aria-pressed=true]", { hasText: "optimizers.py:100" }).waitFor();
  await tab.locator("[id^=table-turnover] tr.dim").first().waitFor();
  assert.match(await chips.innerText(), /line\s*optimizers.py:100/);
  await tab.getByLabel("Colours by").selectOption("category");
  await tab
    .locator("#explorer .sites")
    .getByRole("button", { name: /^temporaries/ })
    .click();
  await asked(tab, "category", "temporaries");
  const both = await api(`${page}/search?line=optimizers.py:100&category=temporaries`);
  await tab
    .locator(".found-blocks", { hasText: `${both.blocks.toLocaleString("en")} blocks match` })
    .waitFor();
  await tab.keyboard.press("z");
  await tab.waitForFunction(() => !new URLSearchParams(location.search).has("category"));
  await tab.locator("#explorer").scrollIntoViewIfNeeded();
  await shot(tab, join(folder, "line-selected.png"));
  await tab.getByRole("link", { name: "What if" }).click();
  await tab.locator("#whatif .phases", { hasText: "not what is selected" }).waitFor();
  await chips.getByRole("button", { name: /line/ }).click();
  await tab
    .locator("#whatif .phases", { hasText: "not what is selected" })
    .waitFor({ state: "detached" });
  await tab.getByRole("link", { name: "The snapshot" }).click();
  await tab.locator("#explorer .explorer[data-tile][data-moment]").waitFor();
});
await look("own-source", two, {}, async (tab) => {
  // two devices have a tab each, and a file that is on this machine is shown where a frame points
  const tabs = tab.getByRole("group", { name: "Device" }).first();
  await tabs.getByRole("button", { name: "device 1" }).click();
  await asked(tab, "device", "1");
  await tab.locator(".sites button", { hasText: "trains.py:7" }).click();
  await asked(tab, "line", "trains.py:7");
  await tab.locator(".found-blocks", { hasText: "12 blocks match" }).waitFor();
  const one = await api(`${two}/search?device=1&line=trains.py:7`);
  await tab.locator(".event.found", { hasText: "trains.py:7" }).first().click();
  await tab.locator("aside .source li.here", { hasText: "cuda:1" }).waitFor(); // the line that allocates, at once
  assert.equal(one.blocks, 12);
  await tab.locator("#explorer-flames").scrollIntoViewIfNeeded();
  await tab.locator("#explorer-flames .icicle button", { hasText: "work" }).first().click();
  await tab.locator("#explorer-flames .source li.here", { hasText: "cuda:1" }).waitFor();
  await tab
    .locator("#explorer-flames")
    .getByRole("button", { name: "Search for it in every panel" })
    .click();
  await asked(tab, "q", "trains\\.py:work$");
  await shot(tab, join(folder, "own-source.png"));
  await tabs.getByRole("button", { name: "device 0" }).click();
  await tab.locator(".found-blocks", { hasText: "0 blocks match" }).waitFor();
});
const flames = (tab) => tab.locator("#explorer-flames"),
  title = (tab) => flames(tab).locator(".flame-panel > .hint").first();
await look("flames", `${page}?at=15000`, {}, async (tab) => {
  const moment = await api(`${page}/moment?at=15000`),
    gib = (bytes) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  await flames(tab).scrollIntoViewIfNeeded();
  await title(tab)
    .filter({ hasText: `${gib(moment.allocated)} held after event 14,999` })
    .waitFor();
  const press = (name) => flames(tab).getByRole("button", { name, exact: true }).click(),
    bars = flames(tab).locator(".icicle button"),
    first = () => bars.first().getAttribute("title");
  const native = await bars.count();
  assert.ok((await flames(tab).locator(".folded").count()) > 0, "runs of C++ are folded");
  const folded = flames(tab).locator(".folded").first(),
    text = await folded.textContent();
  await folded.click();
  assert.ok(!(await bars.allTextContents()).includes(text), "a click unfolds one");
  await press("in full");
  await asked(tab, "flame", "native");
  assert.equal(await flames(tab).locator(".folded").count(), 0);
  assert.ok((await bars.count()) > native);
  await press("C++ folded");
  await press("flames");
  const boxes = await Promise.all([0, 1].map((i) => bars.nth(i).boundingBox()));
  assert.ok(boxes[0].y > boxes[1].y, "the root of flames is at the foot");
  await press("by who allocates");
  await asked(tab, "flame", "inverted");
  assert.ok((await bars.filter({ hasText: "BmmBackward0" }).count()) >= 0);
  await press("icicle");
  await press("call order");
  await asked(tab, "flame", "calls");
  await press("largest left");
  // zoom by click, keys go to callees and neighbours, Escape steps back
  const own = flames(tab).locator(".own").first(),
    name = await own.getAttribute("title");
  await own.click();
  assert.equal(await first(), name, "a click makes a call the top");
  await tab.keyboard.press("ArrowDown");
  assert.notEqual(await tab.evaluate(() => document.activeElement.title), name);
  await tab.keyboard.press("ArrowUp");
  assert.equal(await tab.evaluate(() => document.activeElement.title), name);
  await flames(tab).locator(".source .hint", { hasText: "Not readable here" }).waitFor(); // the program is not on this machine
  await flames(tab).getByRole("button", { name: "Callers and callees of it" }).click();
  await tab.waitForFunction(() =>
    new URLSearchParams(location.search).get("flame").startsWith("sandwich.of:"),
  );
  assert.equal(await flames(tab).locator(".icicle").count(), 2, "callers above, callees below");
  await shot(tab, join(folder, "flames-sandwich.png"));
  await press("icicle");
  await press("at the peak");
  await title(tab)
    .filter({
      hasText: `${gib(device.peak_bytes)} held after event ${(device.peak_at - 1).toLocaleString("en")}, the peak`,
    })
    .waitFor();
  for (const [button, of] of [
    ["allocated in view", "allocated"],
    ["freed in view", "freed"],
  ]) {
    await press(button);
    const set = await api(`${page}/flame?of=${of}&from=0&to=${device.events + 1}`);
    await title(tab)
      .filter({
        hasText: new RegExp(
          `^${gib(set.total_bytes).replace(/(\\d\\d\\d)\\.\\d/, "$1")} ${of} by the`,
        ),
      })
      .waitFor();
  }
  // difference of two moments: the chosen one is kept
  await press("since a moment");
  await asked(tab, "flame", "since-15000");
  await tab.locator(".event-rows").focus();
  await tab.keyboard.press("PageDown");
  await asked(tab, "at", "15010");
  await title(tab)
    .filter({ hasText: "held after event 14,999" })
    .filter({ hasText: "after event 15,009" })
    .waitFor();
  // the search of the page lights calls and says what they have
  await tab.getByLabel("Search blocks").fill("forward");
  await flames(tab).locator(".hits", { hasText: "% of this graph" }).waitFor();
  assert.ok((await flames(tab).locator(".hit").count()) > 0);
});
await look("events", `${page}?at=10000`, {}, async (tab) => {
  const rows = tab.locator(".event"),
    list = tab.locator(".event-rows"),
    here = tab.locator('.event[aria-selected="true"]');
  await tab.locator('.explorer[data-events="9999"]').waitFor();
  assert.match(await here.innerText(), /^9,999/);
  const { events } = await api(`${page}/events?from=9990&count=20`);
  const next = events.find((e) => e.number > 9999 && e.block >= 0);
  await rows.filter({ hasText: new RegExp(`^${next.number.toLocaleString("en")}`) }).click();
  await asked(tab, "at", String(next.number + 1));
  await asked(tab, "block", String(next.block));
  await tab.locator("aside h3", { hasText: `Block ${next.block.toLocaleString("en")}` }).waitFor();
  assert.ok(
    (await tab.locator(".event.of-block").count()) > 0,
    "the events of the block are marked",
  );
  // scrolled, more come
  const last = async () =>
    Number((await rows.last().locator(".n").first().textContent()).replaceAll(",", ""));
  const before = await last();
  await list.evaluate((e) => {
    e.scrollTop = e.scrollHeight;
  });
  await tab.waitForFunction(
    (before) =>
      Number(
        [...document.querySelectorAll(".event .n:first-child")]
          .at(-1)
          .textContent.replaceAll(",", ""),
      ) > before,
    before,
  );
  // jumps
  await tab.getByRole("button", { name: "to the peak" }).click();
  await asked(tab, "at", String(device.peak_at));
  const jump = await api(`${page}/next?action=segment_alloc&after=${device.peak_at - 1}&back=true`);
  await tab.getByLabel("The last of this kind before").click();
  await asked(tab, "at", String(jump.event + 1));
  await tab.getByLabel("Kind of event").selectOption("oom");
  await tab.getByLabel("The next of this kind").click();
  await tab.locator(".events .hint", { hasText: "no “out of memory” after this moment" }).waitFor();
});
await look("block", `${page}?at=12600&block=1024`, {}, async (tab) => {
  const side = tab.locator("aside"),
    block = await api(`${page}/block?n=1024&at=12600`),
    why = side.locator(".reasons");
  await why.filter({ hasText: "Alive at this moment." }).waitFor();
  const words = await why.innerText();
  assert.match(
    words,
    new RegExp(`Allocated by event ${(block.begin - 1).toLocaleString("en")}, transformer.py:22`),
  );
  assert.match(
    words,
    new RegExp(`Freed by event ${(block.end - 1).toLocaleString("en")}, .* after`),
  );
  assert.match(words, /Which object keeps it is not recorded/);
  assert.match(words, new RegExp(`${block.siblings.blocks} blocks of .* in the whole trace`));
  // what is alive is said of the moment that is chosen
  await tab.locator(".event-rows").focus();
  await tab.getByRole("button", { name: "to the peak" }).click();
  await why.filter({ hasText: "Freed at this moment." }).waitFor();
  // the source of a frame is asked for by number, and is of another machine
  await side.locator(".frames button").first().click();
  await side
    .locator(".source", { hasText: "Not readable here: the file is not on this machine" })
    .waitFor();
});
await look("cached", `${page}?at=12600&block=1024`, { scheme: "dark" }, async (tab) => {
  const panel = tab.locator("#explorer-cached");
  await panel.scrollIntoViewIfNeeded();
  await tab.locator(`.explorer[data-cached="0-${device.events + 1}"]`).waitFor();
  const c = await api(`${page}/cached?columns=500`),
    most = c.point.reduce(
      (best, _, i) => (c.reserved[i] - c.active[i] > c.reserved[best] - c.active[best] ? i : best),
      0,
    );
  assert.match(
    await panel.locator(".reading").innerText(),
    new RegExp(
      `${c.point[most] ? `after event ${(c.point[most] - 1).toLocaleString("en")}` : "before the first event"} .* cached beside blocks in use .* reserved`,
    ),
  );
  await panel.locator(".u-over").click({ position: { x: 300, y: 60 } });
  await tab.waitForFunction(() => new URLSearchParams(location.search).get("at") !== "12600");
  await shot(panel, join(folder, "cached-panel.png"));
});
await look("keys", `${page}?at=10000`, {}, async (tab) => {
  await tab.keyboard.press("p");
  await asked(tab, "at", String(device.peak_at));
  await tab.keyboard.press("b");
  const before = await api(
    `${page}/next?action=segment_alloc&after=${device.peak_at - 1}&back=true`,
  );
  await asked(tab, "at", String(before.event + 1));
  await tab.keyboard.press("ArrowLeft");
  await asked(tab, "at", String(before.event));
  await tab.keyboard.press("c");
  await asked(tab, "colour", "category");
  await tab.keyboard.press("z");
  await tab.waitForFunction(() => !new URLSearchParams(location.search).has("colour"));
  await tab.keyboard.press("/");
  await tab.keyboard.type("linear");
  await asked(tab, "q", "linear");
  await tab.keyboard.press("Control+K");
  await tab.keyboard.type("colours by size");
  await tab.keyboard.press("Enter");
  await asked(tab, "colour", "size");
});
await look(
  "explorer-narrow",
  `${page}?t=9000-12000&at=10000&block=1024&q=linear`,
  { width: 400, scheme: "dark" },
  async (tab) => {
    await tab.locator("aside h3", { hasText: "Block 1,024" }).waitFor();
    await tab.locator('.explorer[data-tile="9000-12000"]').waitFor(); // an address is a permalink
  },
);

await browser.close();
await server.end();
console.log(`${shown(folder)}${passed} passed, 0 failed`);
