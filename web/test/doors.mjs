// Who is let in, in a real Chromium on the real server: an address that opens once, and pages of other ports and origins that try to get in.
//   node test/doors.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  ask,
  askJSON,
  begin,
  binary,
  fresh,
  launch,
  screenshots,
  serve,
  shot,
  shown,
} from "./kit.mjs";

const folder = screenshots("doors"),
  data = fresh("data"),
  env = { ...process.env, HIGHTIDE_DATA: data },
  touched = join(fresh("touched"), "ran");
execFileSync(
  binary,
  [
    "run",
    "--quiet",
    "--name",
    "mine",
    "--",
    "python3",
    "-c",
    "x = bytearray(30 << 20)\nimport time; time.sleep(0.4)",
  ],
  { env },
);
const server = await serve(env, ["--allow-exec"]),
  { origin, host, port } = server.address,
  browser = await launch();
let passed = 0;
const ok = (said) => {
  passed++;
  void said;
};
/** A browser of its own, which nobody let in. */
const stranger = () => browser.newContext({ stranger: true });
const again = () =>
  /https?:\S+/.exec(spawnSync(binary, ["ui", "--addr", host], { env, encoding: "utf8" }).stderr)[0];
const mine = async (tab) => tab.getByRole("link", { name: "mine" }).waitFor();
const shut = async (tab, says) => {
  await tab.getByRole("heading", { name: "Open the address that hightide ui prints" }).waitFor();
  assert.match(await tab.locator("main").innerText(), says);
  assert.ok(!(await tab.locator("body").innerText()).includes("mine"));
};

// The printed address lets in once, and then every tab of that browser.
const context = await stranger(),
  tab = await context.newPage();
await tab.goto(server.address.href);
await mine(tab);
assert.equal(tab.url(), `${origin}/`, "the code stays in no address");
assert.ok(
  !(await tab.evaluate(
    (code) =>
      JSON.stringify([
        history.state,
        document.cookie,
        document.documentElement.outerHTML,
        { ...localStorage },
      ]).includes(code),
    server.address.hash.slice(6),
  )),
  "nor in the page",
);
assert.equal(await tab.evaluate(() => document.cookie), "", "no script reads the cookie");
await tab.reload();
await mine(tab);
const second = await context.newPage();
await second.goto(`${origin}/jobs`);
await second.getByRole("heading", { name: "Jobs" }).waitFor();
await second.goto(server.address.href); // as a second click on it in the terminal
await mine(second);
ok("a reload, other tabs, and the same address again work");

const other = await stranger(),
  theirs = await other.newPage();
await theirs.goto(server.address.href);
await shut(
  theirs,
  /opened already, or is older than an hour: it opens once\.[\s\S]*Type hightide ui in a terminal/,
);
await shot(theirs, join(folder, "doors-shut.png"));
await theirs.goto(`${origin}/runs/last`);
await shut(theirs, /not let in yet/);
const fromTerminal = again();
await theirs.evaluate(
  (address) => {
    location.href = address;
  },
  fromTerminal.replace(`${origin}/`, `${origin}/runs/last`),
); // behind the # alone: no page is loaded
await theirs.locator("#timeline").waitFor();
await other.close();
ok("in another browser it does not, and says what does");

await tab.goto("about:blank");
await context.newPage().then(async (waits) => {
  // a page that is shut goes on once another tab is let in
  const fresh = await stranger(),
    shutTab = await fresh.newPage();
  await shutTab.goto(`${origin}/`);
  await shut(shutTab, /not let in yet/);
  const opens = await fresh.newPage();
  await opens.goto(again());
  await mine(opens);
  await mine(shutTab);
  await fresh.close();
  await waits.close();
});
ok("a page that was shut goes on by itself");

// Another account's server on another port: it is sent the cookie, and can do nothing with it.
const got = [];
const evil = createServer((request, answer) => {
  got.push(request.headers);
  answer.setHeader("Content-Type", "text/html");
  answer.end("<!doctype html><title>innocent</title><body>");
});
await new Promise((done) => evil.listen(0, "127.0.0.1", done));
await tab.goto(`http://127.0.0.1:${evil.address().port}/`);
const stolen = got[0].cookie;
assert.match(
  stolen,
  new RegExp(`^hightide-session-${port}=\\w{20,}$`),
  "browsers send it to every port",
);
const [name, value] = stolen.split("="),
  body = JSON.stringify({ kind: "imagine", options: { gpu: "a10", command: ["touch", touched] } });
const { id } = (await askJSON(server, "/runs")).runs[0];
const tries = [
  ["GET", "/api/v1/runs"],
  ["GET", "/api/v1/live"],
  ["GET", `/api/v1/runs/${id}/artifacts/run.hightide`],
  ["POST", "/api/v1/jobs", body],
  ["POST", "/api/v1/runs/delete", JSON.stringify({ ids: [id] })],
  ["DELETE", `/api/v1/runs/${id}`],
  ["PATCH", `/api/v1/runs/${id}`, "{}"],
  ["POST", "/api/v1/snapshots?name=x", "x"],
  ["POST", "/api/v1/session/codes"],
  ["GET", "/metrics"],
];
for (const [method, path, body] of tries)
  for (const headers of [
    { Cookie: stolen },
    { Authorization: `Bearer ${value}` },
    { Cookie: stolen, "X-Hightide-Page": value },
    { Cookie: stolen, Origin: origin, "Sec-Fetch-Site": "same-origin" },
    { Cookie: `${name}=${server.address.hash.slice(6)}` },
  ]) {
    const { status } = await fetch(origin + path, {
      method,
      body,
      headers: { ...headers, ...(body && { "Content-Type": "application/json" }) },
    });
    assert.equal(status, 401, `${method} ${path} with ${Object.keys(headers)}`);
  }
ok("the cookie that another port's server is sent opens nothing");

/** What a page elsewhere can send by the browser that is let in, and what comes back to it. */
const attack = ({ origin, id, body }) =>
  Promise.all([
    ...["GET", "POST", "DELETE", "PATCH"].flatMap((method) =>
      ["cors", "no-cors"].map((mode) =>
        fetch(`${origin}/api/v1/runs${method === "GET" ? "" : `/${id}`}`, {
          method: mode === "no-cors" && method !== "GET" ? "POST" : method,
          mode,
          credentials: "include",
        }).then(
          (r) => r.text(),
          () => "",
        ),
      ),
    ),
    ...["text/plain", "application/json", "application/x-www-form-urlencoded"].flatMap((type) =>
      ["/jobs", "/runs/delete", "/snapshots?name=x", "/session", "/session/codes"].map((path) =>
        fetch(`${origin}/api/v1${path}`, {
          method: "POST",
          mode: type === "application/json" ? "cors" : "no-cors",
          credentials: "include",
          headers: { "Content-Type": type },
          body,
        }).then(
          (r) => r.text(),
          () => "",
        ),
      ),
    ),
    fetch(`${origin}/api/v1/runs`, {
      credentials: "include",
      headers: { "X-Hightide-Page": "x" },
    }).then(
      (r) => r.text(),
      () => "",
    ),
    new Promise((done) => {
      const events = new EventSource(`${origin}/api/v1/live`, { withCredentials: true });
      events.onmessage = (e) => done(e.data);
      events.onerror = () => {
        events.close();
        done("");
      };
    }),
    new Promise((done) => {
      const socket = new WebSocket(`${origin.replace("http", "ws")}/api/v1/live`);
      socket.onopen = () => done("open");
      socket.onerror = () => done("");
    }),
    ...["/api/v1/runs", "/", `/api/v1/runs/${id}/report.html`].flatMap((path) =>
      ["script", "img", "iframe", "object", "link"].map(
        (kind) =>
          new Promise((done) => {
            const element = document.createElement(kind);
            if (kind === "link") element.rel = "stylesheet";
            element[{ object: "data", link: "href" }[kind] ?? "src"] = origin + path;
            const read = () => {
              try {
                return element.contentDocument?.body?.innerText ?? "";
              } catch {
                return "";
              }
            };
            element.onload = () => done(read());
            element.onerror = () => done("");
            document.body.append(element);
            setTimeout(() => done(read()), 3000);
          }),
      ),
    ),
    new Promise((done) => {
      navigator.sendBeacon(`${origin}/api/v1/jobs`, new Blob([body], { type: "text/plain" }));
      done("");
    }),
    new Promise((done) => {
      const frame = document.createElement("iframe"),
        form = document.createElement("form"),
        field = document.createElement("input");
      frame.name = "hidden";
      Object.assign(form, {
        method: "POST",
        action: `${origin}/api/v1/jobs`,
        enctype: "text/plain",
        target: "hidden",
      });
      field.name = body.slice(0, -1) + ', "x": "';
      field.value = '"}';
      form.append(field);
      document.body.append(frame, form);
      form.submit();
      frame.onload = () => done("");
      setTimeout(() => done(""), 3000);
    }),
    new Promise((done) => {
      // a window that it opens: nothing of it can be read
      const opened = window.open(`${origin}/`);
      setTimeout(() => {
        let seen = "";
        try {
          seen = opened?.document.body.innerText ?? "";
        } catch {
          /* of another origin */
        }
        opened?.close();
        done(seen);
      }, 1500);
    }),
  ]);
const places = [
  `http://127.0.0.1:${evil.address().port}/`,
  `http://localhost:${evil.address().port}/`,
  "data:text/html,<title>of no origin</title><body>",
];
for (const place of places) {
  await tab.goto(place);
  const read = (await tab.evaluate(attack, { origin, id, body })).flat();
  assert.ok(
    read.length > 35 &&
      read.every((text) => !text || /may not ask|is not known|Bad Request|not called/.test(text)),
    `${place} reads ${JSON.stringify(read.filter(Boolean))}`,
  );
}
const { runs } = await askJSON(server, "/runs"),
  { jobs } = await askJSON(server, "/jobs"),
  { snapshots } = await askJSON(server, "/snapshots");
assert.ok(
  runs.length === 1 &&
    runs[0].name === "mine" &&
    jobs.length === 0 &&
    snapshots.length === 0 &&
    !existsSync(touched),
  "something was changed",
);
assert.ok(
  server.told.text.includes("403") && !server.told.text.includes(value),
  "what was tried is told, without secrets",
);
await tab.goto(`${origin}/`);
await mine(tab);
ok("pages of other ports and origins read, change and start nothing");

// A name that leads to this machine: the browser asks it as its own origin.
const named = await stranger(),
  away = await named.newPage();
assert.equal((await away.goto(`http://evil.localhost:${port}/`)).status(), 421); // browsers know that name by themselves
await named.close();
ok("a name that leads here is not its own");

// MemoryMark's API: its page works, by the base address that is printed, and no other page does.
const page = `http://127.0.0.1:${evil.address().port}`,
  mark = begin(
    binary,
    ["ui", "--addr", "127.0.0.1:0", "--compat", "memorymark", "--origin", page],
    { env, stdio: ["ignore", "ignore", "pipe"] },
  );
const base = await new Promise((done) => {
  let said = "";
  mark.stderr.on("data", (text) => {
    said += text;
    const found = /https?:\S+/.exec(said);
    if (found) done(found[0]);
  });
});
const uses = (base) =>
  Promise.all([
    fetch(`${base}/health`)
      .then((r) => r.json())
      .then((a) => a.status),
    fetch(`${base}/analyze`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"model_name": "none"}',
    })
      .then((r) => r.json())
      .then((a) => a.error),
    fetch(`${new URL(base).origin}/models`, {
      headers: { Authorization: `Bearer ${base.split("/").at(-1)}` },
    })
      .then((r) => r.json())
      .then((a) => a.models.length),
    fetch(`${new URL(base).origin}/models`)
      .then((r) => r.json())
      .then((a) => a.status),
  ]).catch((e) => String(e));
await tab.goto(`${page}/`);
assert.deepEqual(await tab.evaluate(uses, base), [
  "healthy",
  'there is no model "none": bert, gpt2 and resnet can be analysed',
  3,
  "error",
]);
await tab.goto(`http://localhost:${evil.address().port}/`);
assert.equal(await tab.evaluate(uses, base), "TypeError: Failed to fetch");
mark.kill("SIGINT");
ok("MemoryMark's page works, and no other");

// A page of ours in a frame of theirs shows nothing.
assert.equal(
  (await ask(server, "/")).headers
    .get("content-security-policy")
    .includes("frame-ancestors 'none'"),
  true,
);

// It works as before: something is started by the page.
await tab.goto(`${origin}/imagine`);
await tab.getByLabel("Command").fill("python3 -c pass");
await tab.getByRole("button", { name: "Imagine it" }).click();
await tab.locator("#job").waitFor();
assert.match(
  (await askJSON(server, "/jobs")).jobs[0].asked_by,
  /^session \d+ at 127\.0\.0\.1:\d+$/,
);
ok("what the page itself asks for is begun, and says who asked");

evil.close();
evil.closeAllConnections();
await server.end();
await browser.close();
console.log(`${shown(folder)}${passed} passed, 0 failed`);
