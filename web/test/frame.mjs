// The frame of the live web UI in a real Chromium on the real server: palette, keys, explanations, and where the focus is.
//   node test/frame.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import {
  addressOf,
  binary,
  focused,
  fresh,
  launch,
  openAgain,
  opened,
  screenshots,
  serve,
  shot,
  shown,
  violations,
} from "./kit.mjs";

const folder = screenshots("frame"),
  env = { ...process.env, HIGHTIDE_DATA: fresh("data") };
execFileSync(
  binary,
  [
    "run",
    "--quiet",
    "--name",
    "tall tide",
    "--",
    "python3",
    "-c",
    "x = bytearray(60 << 20)\nimport time; time.sleep(0.7)",
  ],
  { env },
);
let server = await serve(env),
  passed = 0;
const browser = await launch();

async function look(name, path, options, check) {
  await opened(browser, name, addressOf(server, path), options, async (tab) => {
    await tab.locator("#app > *").first().waitFor();
    await check(tab);
  });
  passed++;
}
const seen = (tab, name) => shot(tab, join(folder, `${name}.png`));

for (const scheme of ["light", "dark"])
  await look(`palette-${scheme}`, "/", { scheme }, async (tab) => {
    await tab.locator(".bar .find").focus();
    await tab.keyboard.press("Control+k");
    await focused(tab, ".palette input");
    await tab.locator(".palette li", { hasText: "tall tide" }).waitFor(); // runs come from the server
    await seen(tab, `palette-${scheme}`);
    await tab.keyboard.press("Escape");
    await tab.locator(".palette").waitFor({ state: "detached" });
    await focused(tab, ".bar .find");
    await tab.keyboard.press("Control+k");
    await tab.keyboard.type("jbs");
    await tab.locator(".palette li[aria-selected=true]", { hasText: "Jobs" }).waitFor();
    await tab.keyboard.press("Enter");
    await tab.waitForURL("**/jobs");
    await tab.locator("h1", { hasText: "Jobs" }).waitFor();
    await focused(tab, "main"); // who uses the keyboard begins at the new page
    assert.equal(await tab.locator(".bar [aria-current=page]").innerText(), "Jobs");
  });

await look("run", "/jobs", { width: 400 }, async (tab) => {
  await tab.locator(".bar .find").click();
  await tab.keyboard.type("tall");
  await tab.locator(".palette li[aria-selected=true]", { hasText: "tall tide" }).click();
  await tab.waitForURL("**/runs/*");
  await tab.locator("#timeline").waitFor();
});

await look("keys", "/", {}, async (tab) => {
  await tab.locator(".bar .ask").focus();
  await tab.keyboard.press("?");
  const sheet = tab.getByRole("dialog", { name: "Keys" });
  await sheet.waitFor();
  assert.match(await sheet.innerText(), /Ctrl\+K[\s\S]*find a page/);
  await seen(tab, "keys");
  await tab.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await focused(tab, ".bar .ask");
  await tab.keyboard.press("t");
  assert.equal(await tab.evaluate(() => document.documentElement.dataset.theme), "dark");
});

await look("learn", "/", { scheme: "dark" }, async (tab) => {
  await tab.locator("#app a[href^='/runs/']").first().click();
  await tab.locator("#timeline").hover();
  await tab.keyboard.press("i");
  const lesson = tab.locator(".lesson");
  await focused(tab, ".lesson");
  assert.match(
    await lesson.innerText(),
    /axis of time[\s\S]*Good[\s\S]*Bad[\s\S]*Resident set size/,
  );
  await seen(tab, "learn");
  await tab.keyboard.press("Escape");
  await lesson.waitFor({ state: "detached" });
  await focused(tab, "#timeline .learn");
});

await look("message", "/imagine", {}, async (tab) => {
  await tab.context().grantPermissions(["clipboard-write"]);
  await tab.getByLabel("Command").fill("a");
  await tab.keyboard.type("gi?"); // in a field these are letters
  assert.equal(await tab.getByLabel("Command").inputValue(), "agi?");
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("copy address");
  await tab.keyboard.press("Enter");
  await tab.locator(".toast", { hasText: "is copied" }).waitFor();
  await seen(tab, "message");
  await tab.getByRole("button", { name: "Close this message" }).click();
  assert.equal(await tab.locator(".toast").count(), 0);
});

for (const scheme of ["light", "dark"])
  await look(`axe over a page, ${scheme}`, "/", { scheme }, async (tab) => {
    await tab.locator("#app a", { hasText: "tall tide" }).waitFor();
    for (const [keys, dialog] of [
      ["Control+k", ".palette"],
      ["?", ".sheet"],
    ]) {
      await tab.keyboard.press(keys);
      await tab.locator(dialog).waitFor();
      assert.deepEqual(await violations(tab), [], dialog);
      await tab.keyboard.press("Escape");
      await tab.locator(dialog).waitFor({ state: "detached" });
    }
  });

// what a browser gets before it has shown anything
await look("size", "/", {}, async (tab) => {
  const files = await tab.evaluate(() =>
    [...document.querySelectorAll("script[src], link[rel=stylesheet]")].map((e) => e.src || e.href),
  );
  assert.ok(files.length >= 2, "a script and a style");
  const sizes = await Promise.all(
    files.map(
      async (file) =>
        gzipSync(Buffer.from(await (await fetch(file)).arrayBuffer()), { level: 9 }).length,
    ),
  );
  assert.ok(
    sizes.reduce((a, b) => a + b) <= 300_000,
    `script and style have ${sizes} bytes, compressed`,
  );
});

await look(
  "away",
  "/jobs",
  { allowed: (text) => /ERR_CONNECTION_REFUSED|status of 401/.test(text) },
  async (tab) => {
    const { host } = server.address;
    await server.end();
    await tab.keyboard.press("Control+k"); // asks for the runs; closing the palette gives that up
    await tab.locator(".away", { hasText: "The server went away" }).waitFor();
    await tab.keyboard.press("Escape");
    server = await serve(env, [], host);
    await openAgain(tab, server);
    await tab.locator(".away").waitFor({ state: "hidden" });
  },
);

await server.end();
await browser.close();
console.log(`${shown(folder)}${passed} passed, 0 failed`);
