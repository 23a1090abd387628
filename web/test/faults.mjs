// What goes wrong around the pages, in a real Chromium on the real server: each with the sentence that the reader sees.
//   node test/faults.mjs [folder for screenshots]        FAULTS=print,clock: these alone

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32c, gzipZeros } from "./bytes.mjs";
import {
  addressOf,
  askJSON,
  binary,
  fresh,
  launch,
  openAgain,
  opened,
  python,
  screenshots,
  serve,
  shot,
  shown,
  sound,
} from "./kit.mjs";
import { liveRun, snapshotFile } from "./world.mjs";

const folder = screenshots("faults"),
  browser = await launch(),
  only = process.env.FAULTS?.split(","),
  left = [],
  failed = [];
let passed = 0;

/** One fault: a data folder and a server of its own. */
async function fault(
  name,
  check,
  { args = [], env = { ...process.env, HIGHTIDE_DATA: fresh("fault") } } = {},
) {
  if (only && !only.includes(name)) return;
  const at = {
    env,
    data: env.HIGHTIDE_DATA,
    server: await serve(env, args),
    run: (...words) => execFileSync(binary, words, { env, encoding: "utf8" }),
  };
  at.api = (path) => askJSON(at.server, path);
  at.look = (path, options, then) =>
    opened(browser, name, addressOf(at.server, path), options, then);
  try {
    await check(at);
    passed++;
  } catch (e) {
    failed.push(`${name}: ${e.message}`);
  } finally {
    await at.server.end();
  }
}
const seen = (tab, name) => shot(tab, join(folder, `${name}.png`));
/** Asks until there is something; two minutes are longer than any machine takes. */
const until = async (ask) => {
  for (let left = 1200; left; left--) {
    const found = await ask();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`never came true: ${ask}`);
};
const running = (at) =>
  until(async () => (await at.api("/runs")).runs?.find((r) => r.state === "running")?.id);
/** The page was not loaded again: what a script put there is still there. */
const mark = (tab) =>
  tab.evaluate(() => {
    window.sameDocument = true;
  });
const marked = async (tab) =>
  assert.ok(await tab.evaluate(() => window.sameDocument), "the page was loaded anew");
const away = (text) =>
  /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/.test(
    text,
  );
const refused = (text) => /the server responded with a status of 4\d\d/.test(text);
const residentKiB = (pid) =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);

await fault("killed", async (at) => {
  const live = liveRun(at.env),
    id = await running(at);
  await at.look(`/runs/${id}`, { allowed: (text) => refused(text) || away(text) }, async (tab) => {
    await tab.locator(".live-state", { hasText: "recorded just now" }).waitFor();
    await tab.locator("#output .reading", { hasText: /^\d+ rows/ }).waitFor();
    await mark(tab);
    const { host } = at.server.address;
    await at.server.end("SIGKILL");
    await tab
      .locator(".away", {
        hasText:
          "The server went away. What is shown stays, and goes on once the server answers. Where hightide ui is started again, open the address that it prints.",
      })
      .waitFor();
    await seen(tab, "killed");
    at.server = await serve(at.env, [], host);
    await tab
      .locator(".away", {
        hasText: "The server was started again, and lets nobody in who was in before.",
      })
      .waitFor();
    await openAgain(tab, at.server);
    await tab.locator(".away").waitFor({ state: "hidden" });
    await live.end();
    await tab.locator(".live-state", { hasText: "has ended" }).waitFor();
    await tab.locator(".top .outcome", { hasText: "done" }).waitFor();
    await marked(tab);
    for (const part of ["h1", "#timeline", "#output", ".cards"])
      assert.equal(await tab.locator(part).count(), 1, `${part} is there once`);
    const lines = readFileSync(join(at.data, "runs", id, "output.log"), "utf8").split("\n").length;
    await tab
      .locator("#output .reading", { hasText: new RegExp(`^${lines.toLocaleString("en")} rows`) })
      .waitFor(); // each line once, and the empty one that the cursor is in
  });
});

await fault("deleted", async (at) => {
  at.run(
    "run",
    "--quiet",
    "--name",
    "short",
    "--",
    "python3",
    "-c",
    "import time; x = bytearray(30 << 20); time.sleep(0.6)",
  );
  const [{ id }] = (await at.api("/runs")).runs;
  await at.look("/", {}, async (tab) => {
    await tab.getByRole("link", { name: "short" }).waitFor();
    at.run("rm", id);
    await tab.getByText("No runs yet").waitFor(); // the list follows by itself
  });
  await at.look(`/runs/${id}`, { allowed: refused }, async (tab) => {
    await tab.locator(".failure").waitFor();
    assert.match(
      await tab.locator(".failure").innerText(),
      /There is no run yet \(hightide run -- python train.py records one\)/,
      "an old link says that there is no such run",
    );
    await seen(tab, "deleted-link");
  });
  const live = liveRun(at.env, "folder gone"),
    going = await running(at);
  await at.look(
    `/runs/${going}`,
    { allowed: (text) => refused(text) || away(text) },
    async (tab) => {
      await tab.locator(".live-state", { hasText: "recorded just now" }).waitFor();
      await tab.locator("#timeline canvas").first().waitFor();
      rmSync(join(at.data, "runs", going), { recursive: true });
      await tab.locator(".live-state", { hasText: /deleted|ended/ }).waitFor();
      await seen(tab, "deleted");
      assert.equal(await tab.locator("#timeline").count(), 1, "what was shown stays");
    },
  );
  await live.end();
  at.run(
    "run",
    "--quiet",
    "--name",
    "kept",
    "--",
    "python3",
    "-c",
    "import time; x = bytearray(30 << 20); time.sleep(0.6)",
  );
  const kept = (await at.api("/runs")).runs.find((r) => r.name === "kept").id,
    elsewhere = `${at.data}-elsewhere`,
    clear =
      /is gone: it was deleted or unmounted \(bring it back, or start again with another: --data-dir FOLDER\)/;
  await at.look("/", { allowed: (text) => /status of 503/.test(text) }, async (tab) => {
    await tab.getByRole("link", { name: "kept" }).waitFor();
    renameSync(at.data, elsewhere);
    await tab.locator(".away", { hasText: clear }).waitFor();
    assert.equal(await tab.getByRole("link", { name: "kept" }).count(), 1, "what was listed stays");
    await seen(tab, "moved");
    for (const [path, back] of [
      [`/runs/${kept}`, "#timeline canvas"],
      ["/snapshots", "#recorded .empty"],
      ["/matrices", "#matrices .empty"],
      ["/", "tbody tr"],
    ]) {
      // there is none of these, which is not known before
      await tab.goto(addressOf(at.server, path));
      await tab.locator(".away", { hasText: clear }).waitFor();
      await tab.locator(".failure", { hasText: "once runs can be read again" }).waitFor();
      assert.equal(
        await tab.locator(".failure, #recorded .empty, #matrices .empty").count(),
        1,
        `${path}: what was not read is not called empty`,
      );
      renameSync(elsewhere, at.data);
      await tab.locator(back).first().waitFor();
      await tab.locator(".away").waitFor({ state: "hidden" });
      renameSync(at.data, elsewhere);
    }
    renameSync(elsewhere, at.data);
    await tab.locator(".away").waitFor({ state: "hidden" });
  });
});

await fault("uploads", async (at) => {
  const sent = fresh("sent"),
    file = (name, bytes) => {
      const path = join(sent, name);
      writeFileSync(path, bytes);
      return path;
    };
  const real = readFileSync(snapshotFile);
  const hostile = [
    [file("cut.pickle", real.subarray(0, real.length >> 1)), 422, /truncated|ends|EOF/],
    [
      file("magic.pickle", Buffer.from("this is not a snapshot\n".repeat(50))),
      422,
      /^the file: unknown file format \(send a memory snapshot of PyTorch, or a recording of hightide\)$/,
    ],
    [
      file("attack.pickle", Buffer.from("cos\nsystem\n(S'touch /tmp/hightide-was-here'\ntR.")),
      422,
      /system|refus|not/,
    ],
    [file("memo.pickle", Buffer.from("]r\xff\xff\xff\x7f.", "latin1")), 422, /./],
    [file("bomb.pickle.gz", await gzipZeros(8 * 2 ** 30)), 422, /./],
  ];
  const large = join(sent, "large.pickle");
  {
    const handle = openSync(large, "w");
    ftruncateSync(handle, 3 * 2 ** 30);
    closeSync(handle);
  } // 3 GB of a hole
  hostile.push([
    large,
    413,
    /^the file is larger than 2048 MiB \(hightide ui FILE opens it where it is\)$/,
  ]);
  await at.look("/snapshots", { allowed: (text) => refused(text) || away(text) }, async (tab) => {
    await tab.locator("h1").waitFor();
    await tab.evaluate(() => {
      const field = document.createElement("input");
      field.type = "file";
      field.id = "sent";
      field.setAttribute("aria-label", "file");
      document.body.append(field);
    });
    for (const [path, status, sentence] of hostile) {
      await tab.locator("#sent").setInputFiles(path);
      const answer = await tab.evaluate(async () => {
        const [file] = document.querySelector("#sent").files;
        try {
          const answer = await fetch(`/api/v1/snapshots?name=${encodeURIComponent(file.name)}`, {
            method: "POST",
            headers: {
              "Content-Type": "application/octet-stream",
              "X-Hightide-Page": localStorage.getItem("hightide-page"),
            },
            body: file,
          });
          return { status: answer.status, text: await answer.text() };
        } catch (e) {
          return { status: 0, text: String(e) };
        }
      });
      const said = answer.status ? JSON.parse(answer.text).detail : answer.text;
      console.log(`  ${path.split("/").at(-1)}: ${answer.status} ${said}`);
      assert.equal(answer.status, status, `${path}: ${said}`);
      assert.ok(
        sentence.test(said) && !said.includes("\n") && said.length < 300,
        `one clear line: ${said}`,
      );
      assert.ok(!said.includes(at.data), "no path of the server is told");
    }
    await tab.evaluate(() => document.querySelector("#sent").remove());
  });
  assert.deepEqual((await at.api("/snapshots")).snapshots ?? [], [], "nothing of them is open");
  const most = residentKiB(at.server.pid);
  assert.ok(most < 300 * 1024, `the server took at most ${most} KiB`);
  const entries = readdirSync(at.data, { recursive: true, withFileTypes: true });
  assert.ok(
    entries.some((e) => e.isDirectory() && e.name.startsWith("ui-")),
    "files were received beside the recordings",
  );
  assert.deepEqual(
    entries.filter((e) => e.isFile() && e.parentPath.includes("/uploads")).map((e) => e.name),
    [],
    "nothing is kept of them",
  );
  assert.ok(!existsSync("/tmp/hightide-was-here"), "what a pickle asks for is not done");
  rmSync(sent, { recursive: true });
});

await fault("newer", async (at) => {
  at.run(
    "run",
    "--quiet",
    "--name",
    "from tomorrow",
    "--",
    "python3",
    "-c",
    "import time; x = bytearray(30 << 20); time.sleep(0.6)",
  );
  const [{ id }] = (await at.api("/runs")).runs,
    path = join(at.data, "runs", id, "run.hightide"),
    bytes = readFileSync(path);
  await at.server.end();
  bytes.writeUInt16LE(99, 8); // the format's major version, and the checksum of the header
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 12)), 12);
  writeFileSync(path, bytes);
  at.server = await serve(at.env);
  await at.look(`/runs/${id}`, { allowed: refused }, async (tab) => {
    await tab.locator(".failure").waitFor();
    assert.match(
      await tab.locator(".failure").innerText(),
      /format 99\.\d+ and this hightide reads up to \d+: install a newer hightide to read it/,
    );
    await seen(tab, "newer");
  });
});

await fault("clock", async (at) => {
  const live = liveRun(at.env),
    id = await running(at);
  for (const [name, path, ready] of [
    ["run", `/runs/${id}`, ".live-state"],
    ["list", "/", "tbody tr"],
  ])
    await at.look(path, {}, async (tab) => {
      await tab.locator(ready).first().waitFor();
      await mark(tab);
      for (const days of [1, -400, 4000]) {
        await tab.clock.setFixedTime(new Date(Date.now() + days * 86_400_000));
        await tab.evaluate(() => new Promise((done) => setTimeout(done, 1500))); // what repeats has repeated
        const text = await tab.locator("body").innerText();
        assert.ok(
          !/NaN|Invalid|(^|\s)[−-]\d+(\.\d+)?\s?(s|min|h|days?)\b|in \d+ (seconds|days)/.test(text),
          `${name}, ${days} days: ${/.{0,30}(NaN|Invalid|[−-]\d+ ?(s|min|h|d)).{0,20}/.exec(text)?.[0]}`,
        );
        await seen(tab, `clock-${name}-${days}`);
      }
      await marked(tab);
      if (name === "run")
        await tab.locator(".live-state", { hasText: "recorded just now" }).waitFor();
      else await tab.locator(".outcome.live").waitFor();
    });
  await live.end();
});

await fault(
  "print",
  async (at) => {
    const [{ id }] = await until(async () => {
      const { snapshots } = await at.api("/snapshots");
      return snapshots?.length && snapshots;
    });
    at.run(
      "run",
      "--quiet",
      "--name",
      "paper",
      "--",
      "python3",
      "-c",
      "import time; x = bytearray(30 << 20); time.sleep(0.6)",
    );
    const run = (await at.api("/runs")).runs[0].id;
    for (const [name, path, ready] of [
      ["run", `/runs/${run}`, "#timeline canvas"],
      ["explorer", `/snapshots/${id}`, "#explorer canvas"],
      ["what-if", `/snapshots/${id}/whatif`, "#whatif .said:not(:empty)"],
      ["list", "/", "tbody tr"],
    ])
      await at.look(path, { scheme: "dark" }, async (tab) => {
        await tab.locator(ready).first().waitFor();
        const pdf = await tab.pdf({
          path: join(folder, `print-${name}.pdf`),
          format: "A4",
          printBackground: true,
        });
        assert.ok(pdf.length > 15_000, `${name}: ${pdf.length} bytes`);
        await tab.evaluate(() => dispatchEvent(new Event("beforeprint")));
        await tab.emulateMedia({ media: "print" });
        await tab.evaluate(
          () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))),
        );
        assert.equal(
          await tab.evaluate(() => document.documentElement.dataset.theme),
          "light",
          "paper is white",
        );
        for (const gone of [".bar", ".learn", ".away"])
          assert.equal(
            await tab.locator(`${gone}:visible`).count(),
            0,
            `${name}: ${gone} is not printed`,
          );
        for (const width of [688, 720, 941]) {
          // A4 and Letter less their margins, A4 across
          await tab.setViewportSize({ width, height: 1000 });
          await tab.evaluate(
            () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100))),
          );
          const wide = await tab.evaluate(() =>
            [...document.querySelectorAll("canvas, svg, table, pre")]
              .filter(
                (e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1,
              )
              .map(
                (e) =>
                  `${e.tagName}.${e.className?.baseVal ?? e.className} ${Math.round(e.getBoundingClientRect().right)}`,
              ),
          );
          assert.deepEqual(wide, [], `${name}, ${width}: nothing is cut off at the paper's edge`);
          await sound(tab, `${name}, printed ${width} wide`);
        }
        await tab.setViewportSize({ width: 688, height: 1000 });
        await shot(tab, join(folder, `print-${name}.png`), { fullPage: true });
        await tab.emulateMedia({ media: "screen" });
        await sound(tab, `${name} with all that folds open`);
        await tab.evaluate(() => dispatchEvent(new Event("afterprint")));
        assert.equal(
          await tab.evaluate(() => document.documentElement.dataset.theme),
          "dark",
          "the screen has its colours again",
        );
        assert.equal(
          await tab.locator("details[data-closed]").count(),
          0,
          "what was folded is folded again",
        );
      });
  },
  { args: [snapshotFile] },
);

// a disk that fills: a file system of 12 MB, which needs the right to mount one
const small = fresh("small");
try {
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", small], {
    stdio: "ignore",
  });
} catch {
  left.push("full: this user may not mount a file system");
}
if (!left.length) {
  await fault(
    "full",
    async (at) => {
      const live = liveRun(at.env, "on a full disk"),
        id = await running(at);
      await at.look(`/runs/${id}`, { allowed: refused }, async (tab) => {
        await tab.locator(".live-state", { hasText: "recorded just now" }).waitFor();
        const fill = openSync(join(at.data, "fill"), "w"),
          piece = Buffer.alloc(4096);
        try {
          for (;;) writeSync(fill, piece);
        } catch (e) {
          assert.equal(e.code, "ENOSPC");
        } finally {
          closeSync(fill);
        }
        await until(() => statfsSync(at.data).bfree === 0);
        await live.end();
        await tab.locator(".live-state", { hasText: "ended" }).waitFor();
        await seen(tab, "full-run");
        console.log(
          `  full, the run's page: ${await tab.locator(".live-state").innerText()} | ${(await tab.locator(".banner, .notes").allInnerTexts()).join(" | ")}`,
        );
      });
      if (python)
        await at.look("/imagine", { allowed: refused }, async (tab) => {
          const go = join(fresh("go"), "go"),
            elsewhere = /no space left on device; recording into \S+ instead/;
          await tab
            .getByLabel("Command")
            .fill(
              `${python} -c 'import os, time, torch; x = torch.zeros(1 << 20, device="cuda"); [time.sleep(0.1) for _ in iter(lambda: os.path.exists("${go}"), True)]'`,
            );
          await tab.getByLabel("GPU", { exact: true }).fill("a10");
          await tab.getByRole("button", { name: "Imagine it" }).click();
          await tab.locator("#job .hint", { hasText: elsewhere }).waitFor({ timeout: 0 }); // while it works
          await tab.locator("#job .reading", { hasText: "resident" }).waitFor({ timeout: 0 });
          assert.equal(
            await tab.getByRole("link", { name: "Open its run" }).count(),
            0,
            "no link to a run that this server does not have, while it works",
          );
          await seen(tab, "full-job-works");
          writeFileSync(go, "");
          await tab.locator(".verdict .answer").waitFor({ timeout: 0 }); // it is recorded elsewhere, and ends as any other
          const said = await tab.locator(".verdict").innerText();
          await seen(tab, "full-job");
          assert.match(said, elsewhere, "what is wrong, and where the recording is");
          assert.equal(
            await tab.getByRole("link", { name: "Open its run" }).count(),
            0,
            "no link to a run that this server does not have",
          );
        });
      rmSync(join(at.data, "fill"));
    },
    {
      args: ["--allow-exec"],
      env: { ...process.env, HIGHTIDE_DATA: small, TMPDIR: fresh("elsewhere") },
    },
  );
  execFileSync("umount", ["-l", small]);
}

await browser.close();
console.log(
  `${shown(folder)}${failed.map((f) => `FAILED ${f}\n`).join("")}${left.map((l) => `left out: ${l}\n`).join("")}${passed} passed, ${failed.length} failed`,
);
process.exitCode = failed.length ? 1 : 0;
