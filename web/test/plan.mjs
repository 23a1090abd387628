// The page of plans, in a real Chromium on the real server: a form, files that are dropped, and the same figures as the terminal.
//   node test/plan.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addressOf,
  binary,
  focused,
  fresh,
  here,
  launch,
  opened,
  screenshots,
  serve,
  shot,
  shown,
  violations,
} from "./kit.mjs";

const folder = screenshots("plan"),
  cache = fresh("hub"),
  env = {
    ...process.env,
    HIGHTIDE_DATA: fresh("data"),
    HF_HOME: cache,
    HF_HUB_CACHE: join(cache, "hub"),
    HF_HUB_OFFLINE: "1",
  };
const llama = JSON.stringify({
  model_type: "llama",
  vocab_size: 128256,
  hidden_size: 4096,
  intermediate_size: 14336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 131072,
  torch_dtype: "bfloat16",
});
// a model of the hub that was downloaded, and one in a folder that the server may not read
const snapshot = join(cache, "hub/models--org--llama/snapshots/abc");
mkdirSync(snapshot, { recursive: true });
mkdirSync(join(cache, "hub/models--org--llama/refs"));
writeFileSync(join(cache, "hub/models--org--llama/refs/main"), "abc");
writeFileSync(join(snapshot, "config.json"), llama);
const elsewhere = join(fresh("elsewhere"), "config.json");
writeFileSync(elsewhere, llama);
const gguf = here("../../internal/modelfile/testdata/little.gguf");

/** What the terminal prints. */
const terminal = (...args) => execFileSync(binary, ["plan", ...args], { env, encoding: "utf8" });
const flat = (text) => text.replace(/\s+/g, " ").trim();

const server = await serve(env),
  browser = await launch();
let passed = 0;
async function look(name, path, options, check) {
  await opened(browser, name, addressOf(server, path), options, async (tab) => {
    await tab.locator("#plan").waitFor();
    await check(tab);
    await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  });
  passed++;
}
const answered = (tab) => tab.locator('.planned:not([aria-busy="true"]) #plan-answer').waitFor();

/** Drops files on the page, as a browser hands them over. */
const drop = async (tab, files) => {
  const carried = await tab.evaluateHandle((files) => {
    const all = new DataTransfer();
    for (const { name, bytes } of files)
      all.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name));
    return all;
  }, files);
  await tab.dispatchEvent("#plan", "dragenter", { dataTransfer: carried });
  await tab.dispatchEvent("#plan", "drop", { dataTransfer: carried });
};
const file = (name, content) => ({ name, bytes: Buffer.from(content).toString("base64") });

/** Each sentence of the page is one of the terminal, and so is each cell of its table. */
async function saysTheSame(tab, text) {
  const said = flat(text);
  for (const sentence of await tab.locator("#plan-answer p").allInnerTexts())
    assert.ok(said.includes(flat(sentence)), `the terminal does not say: ${sentence}`);
  const more = tab.locator("#plan-gpus .more").first();
  if (await more.isVisible()) await more.click();
  const rows = await tab.locator("#plan-gpus tbody tr").allInnerTexts();
  assert.ok(rows.length > 1);
  const lines = text.split("\n").map(flat);
  let compared = 0;
  for (const row of rows) {
    const cells = row.split("\t").map(flat),
      line = lines.find((l) => l.startsWith(`${cells[0]} `));
    if (!line) continue; // the terminal shows the first of many
    const [columns] = line.split("…"); // it cuts the last one, and leaves out those behind it
    assert.ok(
      flat(cells.filter((c) => c !== "–").join(" ")).startsWith(columns),
      `${row}\n${line}`,
    );
    compared++;
  }
  assert.ok(compared >= 2, "rows are compared");
}

await look("form", "/plan", {}, async (tab) => {
  assert.ok(await tab.getByRole("button", { name: "Plan it" }).isDisabled());
  assert.equal(
    flat(await tab.locator(".start .command").innerText()),
    "hightide plan MODEL",
    "the line to copy",
  );
  await tab.getByLabel("Model", { exact: true }).fill("org/llama");
  await tab.getByLabel("Users", { exact: true }).fill("20");
  await tab.getByLabel("Tokens", { exact: true }).fill("8192");
  assert.equal(await tab.locator("#plan-answer").count(), 0, "nothing is asked while one types");
  await tab.keyboard.press("Enter");
  await answered(tab);
  await saysTheSame(tab, terminal("org/llama", "--users", "20", "--seq", "8192"));
  assert.equal(
    flat(await tab.locator(".start .command").innerText()),
    "hightide plan --seq 8192 --users 20 org/llama",
  );
  const answer = await tab.locator("#plan-answer .answer").innerText();
  assert.deepEqual(Object.fromEntries(new URL(tab.url()).searchParams), {
    model: "org/llama",
    users: "20",
    seq: "8192",
  });
  await tab.reload();
  await answered(tab);
  assert.equal(await tab.locator("#plan-answer .answer").innerText(), answer, "by its address");
  assert.equal(await tab.getByLabel("Users", { exact: true }).inputValue(), "20");
  assert.match(
    await tab.locator("#plan-gpus svg").getAttribute("aria-label"),
    /^Tokens that the cache holds: [a-z0-9-]+ [\d,]+, /,
  );

  // a change is asked by itself, and what the other use does not have is hidden
  await tab.getByLabel("Use", { exact: true }).selectOption("qlora");
  await tab.locator("#plan-answer .answer", { hasText: "To train (qlora)" }).waitFor();
  assert.ok(!(await tab.getByLabel("Users", { exact: true }).isVisible()));
  await saysTheSame(tab, terminal("org/llama", "--for", "qlora", "--seq", "8192"));
  assert.equal(new URL(tab.url()).searchParams.get("for"), "qlora");
});

for (const [width, scheme] of [
  [1280, "light"],
  [400, "dark"],
])
  await look(
    `plan-${width}-${scheme}`,
    "/plan?model=org/llama&users=20&seq=8192",
    { width, scheme },
    async (tab) => {
      await answered(tab);
      await tab.locator("#plan-gpus svg").waitFor();
      assert.deepEqual(await violations(tab), []);
      const reasons = await tab
        .locator("td.prose")
        .evaluateAll((cells) => cells.map((c) => [c.clientWidth, c.scrollWidth, c.textContent]));
      assert.ok(reasons.some(([, , text]) => text.startsWith("passes of")));
      for (const [wide, needs, text] of reasons)
        assert.ok(wide >= 200 && needs <= wide, `not a word a line, not cut: ${text}`);
    },
  );

await look(
  "machines",
  "/plan?model=org/llama&users=20&instances=1&gpu=l40s a100-40g",
  {},
  async (tab) => {
    await answered(tab);
    await saysTheSame(
      tab,
      terminal("org/llama", "--users", "20", "--instances", "--gpu", "l40s,a100-40g"),
    );
  },
);

// Files that are dropped: what leaves the browser is their headers, and a reload shows the same.
await look("dropped-gguf", "/plan?users=2&seq=64", { scheme: "dark" }, async (tab) => {
  const asked = tab.waitForRequest("**/api/v1/plan");
  await drop(tab, [file("little.gguf", readFileSync(gguf))]);
  const { files } = (await asked).postDataJSON();
  assert.equal(files[0].bytes, 14080);
  assert.equal(Buffer.from(files[0].head, "base64").length, 3225, "the header alone");
  await answered(tab);
  await saysTheSame(
    tab,
    terminal(gguf, "--users", "2", "--seq", "64").replaceAll(gguf, "little.gguf"),
  );
  assert.match(await tab.locator(".sent").innerText(), /little\.gguf[\s\S]*3\.15 KiB of headers/);
  const answer = await tab.locator("#plan-answer").innerText();
  await tab.reload();
  await answered(tab);
  assert.equal(await tab.locator("#plan-answer").innerText(), answer);
  const address = tab.url(),
    stranger = await browser.newContext(),
    other = await stranger.newPage();
  await other.goto(address);
  await other.locator(".banner", { hasText: "Drop little.gguf here" }).waitFor();
  await stranger.close();
  await tab.getByRole("button", { name: "Forget it" }).click();
  await focused(tab, '[name="model"]');
  assert.equal(await tab.locator("#plan-answer").count(), 0, "its answer goes with it");
});

await look("dropped-config", "/plan", { width: 400 }, async (tab) => {
  await tab.locator("#plan input[type=file]").setInputFiles({
    name: "config.json",
    mimeType: "application/json",
    buffer: Buffer.from(llama),
  });
  await answered(tab);
  await saysTheSame(tab, terminal(elsewhere).replaceAll(elsewhere, "config.json"));
  const other = await tab.context().newPage(); // the address has the configuration itself
  await other.goto(tab.url());
  await answered(other);
  assert.equal(
    await other.locator("#plan-answer").innerText(),
    await tab.locator("#plan-answer").innerText(),
  );
});

// What cannot be is said, in a line.
const refused = { allowed: (text) => /422/.test(text) };
await look("refused", `/plan?model=${encodeURIComponent(elsewhere)}`, refused, async (tab) => {
  await tab.locator(".failure", { hasText: "outside the folders that may be read" }).waitFor();
  await drop(tab, [file("notes.txt", "nothing of a model")]);
  await tab.locator(".failure", { hasText: "notes.txt: it is neither" }).waitFor();
  await tab.getByLabel("Model", { exact: true }).fill("org/llama");
  await tab.getByLabel("Users", { exact: true }).fill("0");
  await tab.locator(".start-row .hint", { hasText: "Users: a whole number" }).waitFor();
  await tab.getByLabel("Users", { exact: true }).fill("4");
  await tab.getByRole("button", { name: "Plan it" }).click();
  await answered(tab);
});

await browser.close();
await server.end();
process.stdout.write(shown(folder));
console.log(`plan: ${passed} passed, 0 failed`);
