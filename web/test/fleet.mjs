// The page of machines, in a real Chromium on a real server of a team: what this machine holds, as hightide watch tells,
// and what a machine with GPUs told.
//   node test/fleet.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
  addressOf,
  begin,
  binary,
  fresh,
  launch,
  opened,
  opensAlone,
  savedFile,
  screenshots,
  shot,
  shown,
  violations,
} from "./kit.mjs";
import { team } from "./team.mjs";

const folder = screenshots("fleet"),
  server = await team(
    `[fleet]
machines = ["gpu-1", "this", "never"]
viewers = ["anna"]
prices = { h100 = 4 }
currency = "EUR"
`,
    "anna",
  ),
  browser = await launch();
let passed = 0;
async function look(name, options, check) {
  await opened(browser, name, addressOf(server, "/fleet"), options, async (tab) => {
    await check(tab);
    await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  });
  passed++;
}

await look("nothing", {}, async (tab) => {
  await tab.locator(".empty").waitFor();
  assert.match(await tab.locator("#unknown").innerText(), /never was never heard of/i);
  assert.deepEqual(await violations(tab), []);
});

// What hightide watch of a machine with two GPUs says after two hours.
const GiB = 2 ** 30,
  now = Date.now() * 1e6,
  hour = 3600e9,
  holder = (pid, person, program, held, more) => ({
    pid,
    person,
    program,
    began_unix_ns: now - 2 * hour,
    rss_bytes: 3 * GiB,
    peak_rss_bytes: 3 * GiB,
    device_bytes: held,
    peak_device_bytes: held,
    on_gpus: [{ device: "nvidia:0", bytes: held }],
    ...more,
  }),
  text = "<img src=x onerror=alert(1)>",
  state = {
    version: "0.1.0",
    time_unix_ns: now,
    since_unix_ns: now - 2 * hour,
    every_ns: 600e9,
    cores: 64,
    memory_bytes: 512 * GiB,
    available_bytes: 300 * GiB,
    gpus: [
      {
        device: "nvidia:0",
        name: "NVIDIA H100",
        memory_bytes: 80 * GiB,
        used_bytes: 62 * GiB,
        utilisation_milli: 0,
      },
      { device: "nvidia:1", name: "NVIDIA H100", memory_bytes: 80 * GiB },
    ],
    groups: [
      {
        id: "/job_7",
        kind: "slurm",
        job: "7",
        limit_bytes: 256 * GiB,
        used_bytes: 8 * GiB,
        peak_bytes: 9 * GiB,
      },
    ],
    holders: [
      holder(11, "bob", `python notebook.py ${text}`, 40 * GiB, {
        idle_since_unix_ns: now - hour,
        idle_by: "processor time alone",
      }),
      holder(12, "carol", "python train.py", 20 * GiB, {
        group: "/job_7",
        job_name: "night",
        project: "ranker",
        run: "abc",
        line: { place: "train.py:7", bytes: 2 * GiB, error_bytes: GiB / 8 },
        grows: [
          {
            what: "device",
            bytes_per_hour: GiB,
            error_bytes_per_hour: GiB / 16,
            over_ns: 2 * hour,
          },
        ],
      }),
    ],
    others: 3,
    others_rss_bytes: GiB,
  },
  used = [
    {
      month: new Date().toISOString().slice(0, 7),
      project: "ranker",
      person: "carol",
      gpu: "NVIDIA H100",
      held_ms: 7_200_000,
      idle_ms: 3_600_000,
      reserved_mib_s: 0,
      unused_mib_s: 0,
    },
  ],
  told = await fetch(new URL("/api/v1/fleet/machines/gpu-1", server.address), {
    method: "PUT",
    headers: {
      Authorization: `Bearer ${server.key("gpu-1", "push")}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ session: "s", number: 1, state, used }),
  });
assert.equal(told.status, 200, await told.text());
const watch = begin(binary, ["watch", "--machine", "this", "--interval", "1s", "--look", "200ms"], {
  env: {
    ...server.env,
    HIGHTIDE_DATA: fresh("watched"),
    HIGHTIDE_STORE: "",
    HIGHTIDE_SERVER: server.address.origin,
    HIGHTIDE_KEY: server.key("this", "push"),
  },
  stdio: "ignore",
});
for (let heard = 0; heard < 2;) {
  const answer = await fetch(new URL("/api/v1/fleet", server.address), {
    headers: { Authorization: `Bearer ${server.token}` },
  });
  heard = (await answer.json()).machines.length;
}

/** What a file has: the same tables, and no link to a server. */
async function alone(tab) {
  await tab.locator("#machines tbody tr").nth(2).waitFor();
  assert.match(await tab.locator("#look").innerText(), /notebook\.py <img.*has done nothing/s);
  assert.match(await tab.locator("#held-by-jobs").innerText(), /abc/);
  assert.equal(await tab.locator('#app a[href^="/"], #app img').count(), 0);
}

await look("fleet", { downloads: true }, async (tab) => {
  await tab.locator("#machines tbody tr").nth(2).waitFor();
  assert.equal(await tab.locator('nav a[href="/fleet"][aria-current="page"]').count(), 1);
  assert.match(
    await tab.locator(".answer").innerText(),
    /2 of 2 machines tell now.* hold 40\.0 GiB of GPUs/s,
  );
  const said = await tab.locator("#look").innerText();
  assert.match(said, /notebook\.py <img.*has done nothing for 60 min/s);
  assert.match(said, /18\.0 GiB of nvidia:0 are left/);
  assert.match(said, /may take 256 GiB/);
  assert.match(
    await tab.locator("#held-by-jobs").innerText(),
    /slurm 7 night.*ranker.*train\.py:7/s,
  );
  assert.match(await tab.locator("#costs").innerText(), /1\.0 h\s+4\.00 EUR/);
  assert.equal(
    await tab.locator("#machines tr", { hasText: "nvidia:1" }).innerText(),
    "\tnvidia:1 NVIDIA H100\t–\t80.0 GiB\t–\t\t",
  );
  assert.deepEqual(await violations(tab), []);
  await savedFile(browser, tab, "saved", folder, alone);
});

const typed = join(fresh("typed"), "fleet.html");
execFileSync(binary, ["fleet", "--html", typed], {
  env: {
    ...server.env,
    HIGHTIDE_STORE: "",
    HIGHTIDE_SERVER: server.address.origin,
    HIGHTIDE_KEY: server.token,
  },
});
await opensAlone(browser, typed, "typed", folder, alone);

await look("narrow", { width: 400, scheme: "dark" }, async (tab) => {
  await tab.locator("#people tbody tr").first().waitFor();
  assert.ok(
    await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
    "only tables scroll to the side",
  );
  assert.deepEqual(await violations(tab), []);
});

watch.kill("SIGINT");
await browser.close();
console.log(`fleet: ${passed} pages\n${shown(folder)}`);
process.exit(0); // with the servers
