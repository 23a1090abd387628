// Runs and a snapshot whose texts are markup, very long, or control characters: each page and each file of it shows them as texts, and none is
// wider than a phone. In a real Chromium, on the real server.
//   node test/hostile.mjs [folder for screenshots]        PAGES=run,plan: these alone

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addressOf,
  ask,
  askJSON,
  binary,
  fresh,
  launch,
  opened,
  savedFile,
  screenshots,
  serve,
  shot,
  shown,
} from "./kit.mjs";

const folder = screenshots("hostile"),
  only = process.env.PAGES?.split(","),
  work = fresh("work"),
  env = { ...process.env, HIGHTIDE_DATA: fresh("data") },
  markup = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`,
  long = "\u001b[31m\u0007\u202e" + "wide".repeat(800),
  plain = markup + "wide".repeat(800), // a name and a tag have no control characters
  evil = markup + long;

// what holds its memory is a function of that name in a file of that name
writeFileSync(
  join(work, "train.py"),
  `import json, time
evil = json.loads(${JSON.stringify(JSON.stringify(evil))})
held = []
def grow():
    held.append(bytearray(8 << 20))
grow.__code__ = grow.__code__.replace(co_name=evil, co_filename="/tmp/" + evil + ".py")
for i in range(8):
    grow()
    time.sleep(0.1)
`,
);
writeFileSync(
  join(work, "snapshot.py"),
  `import json, pickle, sys
evil = json.loads(${JSON.stringify(JSON.stringify(evil))})
frames = [{"filename": "/tmp/" + evil + ".py", "line": 3, "name": evil}]
base, size, events = 0x7f0000000000, 2 << 20, []
events.append({"action": "segment_alloc", "addr": base, "size": 20 << 20, "stream": 0, "time_us": 1, "frames": frames})
for i in range(8):
    events.append({"action": "alloc", "addr": base + i * size, "size": size, "stream": 0, "time_us": 2 + i, "frames": frames})
blocks = [{"address": base + i * size, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames} for i in range(8)]
blocks.append({"address": base + 8 * size, "size": 4 << 20, "requested_size": 0, "state": "inactive", "frames": []})
pickle.dump({"segments": [{"device": 0, "address": base, "total_size": 20 << 20, "allocated_size": 16 << 20, "active_size": 16 << 20,
    "requested_size": 16 << 20, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
    "frames": frames, "blocks": blocks}], "device_traces": [events], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
    "external_annotations": []}, open(sys.argv[1], "wb"))
`,
);
const snapshot = join(work, "hostile.pickle"),
  run = (command, ...args) => execFileSync(command, args, { cwd: work, env, stdio: "pipe" });
run("python3", "snapshot.py", snapshot);
run("git", "init", "-q", ".");
for (const n of ["one", "two"]) {
  writeFileSync(join(work, "n"), n);
  run("git", "add", "n", "train.py");
  run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", n);
  run(
    binary,
    "run",
    "--quiet",
    "--name",
    n + plain,
    "--tag",
    `${plain.replaceAll("=", "")}=${plain}`,
    ...["--", "python3", "train.py", evil],
  );
}
const server = await serve(env, [snapshot]),
  browser = await launch(),
  runs = (await askJSON(server, "/runs")).runs,
  of = (await askJSON(server, "/snapshots")).snapshots[0].id,
  words = (asked) => new URLSearchParams(asked).toString(),
  failed = [];
assert.equal(runs.length, 2);
const comment = await ask(server, `/api/v1/runs/${runs[0].id}`);
assert.equal(comment.status, 200);
let passed = 0;
for (const [name, path, ready] of [
  ["list", "/", "table.runs tr.run"],
  ["search", `/?${words({ q: evil })}`, "h1, .tools"],
  ["run", `/runs/${runs[0].id}`, "#timeline canvas"],
  ["compare", `/diff?a=${runs[1].id}&b=${runs[0].id}`, "#difference"],
  ["trend", "/trend", "#commits"],
  ["trend-of", `/trend?${words({ search: evil, tag: evil })}`, ".empty, .failure"],
  ["snapshots", "/snapshots", "#snapshots tbody tr"],
  ["explorer", `/snapshots/${of}?at=5&${words({ q: evil })}`, "#explorer canvas"],
  ["what-if", `/snapshots/${of}/whatif`, "#whatif .said:not(:empty)"],
  ["plan", `/plan?${words({ model: evil })}`, "h1"],
  ["jobs", `/jobs?${words({ job: evil })}`, "h1"],
  ["no-page", `/${encodeURIComponent(evil)}`, "h1"],
])
  for (const width of !only || only.includes(name) ? [1280, 400] : [])
    try {
      await opened(
        browser,
        name,
        addressOf(server, path),
        { width, downloads: true, allowed: (text) => /40[0-9]|42[0-9]/.test(text) },
        async (tab) => {
          await tab.locator(ready).first().waitFor();
          await tab.waitForLoadState("networkidle", { timeout: 4000 }).catch(() => {});
          const texts = async (page) => {
            assert.doesNotMatch(await page.title(), /^taken/);
            assert.equal(await page.locator("#app :is(img, script, iframe)").count(), 0);
          };
          await texts(tab);
          await shot(tab, join(folder, `${name}-${width}.png`), { fullPage: true });
          if (width === 400) return;
          await savedFile(browser, tab, name, folder, texts, "Save as it is shown");
          assert.doesNotMatch(readFileSync(join(folder, `${name}.html`), "utf8"), /<(script|img)/);
          if (["run", "compare", "trend", "explorer"].includes(name))
            await savedFile(browser, tab, `${name}-whole`, folder, texts);
        },
      );
      passed++;
    } catch (e) {
      failed.push(`${name}, ${width}: ${e.message.slice(0, 600)}`);
    }
await browser.close();
await server.end();
console.log(
  `${shown(folder)}${failed.map((f) => `FAILED ${f}\n`).join("")}${passed} passed, ${failed.length} failed`,
);
process.exitCode = failed.length ? 1 : 0;
