// Real recordings for the tests in a browser: trainings, imagined GPUs, a snapshot, a matrix, jobs, a run that goes on until it is told to end.

import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ask, begin, binary, fresh, here, python, serve } from "./kit.mjs";

const does = promisify(execFile);
export const snapshotFile = here("../../testdata/real/h100-lm-ctx128-train-step.pickle");

/** Steps until a file comes, as a training that is watched: memory that comes and goes, a line on the terminal. */
const going = (stop) => `import time, os
kept, n = [], 0
while not os.path.exists(${JSON.stringify(stop)}):
    batch = bytearray((20 + 10 * (n % 3)) << 20)
    kept = [*kept, bytearray(1 << 20)][-100:]
    n += 1
    print(f"step {n}", flush=True)
    time.sleep(0.1)
`;

/** A run that is recorded until end() is called. */
export function liveRun(env, name = "going") {
  const stop = join(fresh("stop"), "stop"),
    child = begin(
      binary,
      ["run", "--quiet", "--capture", "--name", name, "--", "python3", "-c", going(stop)],
      { env, stdio: "ignore" },
    );
  const ended = new Promise((done) => child.on("exit", done));
  return {
    pid: child.pid,
    ended,
    end: () => {
      writeFileSync(stop, "");
      return ended;
    },
  };
}

const matrix = `axes: {size: [20, 40, 60], mode: [a, b]}
command: python3 -c "x = bytearray({size} << 20); import time; time.sleep(0.3); print('{mode}')"
repeats: {least: 2, most: 2, figure: rss}
`;

/** What is recorded once: two programs alike but for a buffer, a training with a leak, two imagined trainings. */
async function record(run) {
  const program = (mib) =>
    `import time\nx = bytearray(${mib} << 20)\ntime.sleep(0.7)\ny = bytearray(40 << 20)\ntime.sleep(0.5)`;
  await run(
    "run",
    "--quiet",
    "--name",
    "small tide",
    "--tag",
    "data=made-up",
    "--",
    "python3",
    "-c",
    program(60),
  );
  await run("run", "--quiet", "--name", "tall tide", "--", "python3", "-c", program(160));
  if (python) {
    await run(
      "run",
      "--quiet",
      "--name",
      "training",
      "--stacks",
      "--steps",
      "40",
      "--",
      python,
      here("../../examples/digits_leak.py"),
    );
    for (const width of [128, 256])
      await run(
        "imagine",
        "--quiet",
        "--gpu",
        "t4",
        "--name",
        `gpt ${width}`,
        "--",
        python,
        here("../../examples/gpt.py"),
        "--layers",
        "2",
        "--width",
        String(width),
        "--length",
        "128",
      );
  }
}

/**
 * Makes it all, asks a server that may start programs for jobs, and hands out where each thing is. A field is "" where no Python with torch is there,
 * or it was not asked for: `wants` tells the names that are looked at. WORLD names a folder that was made before, to make it once while pages are worked on.
 */
export async function world(wants = () => true) {
  const before = process.env.WORLD,
    data = before ?? fresh("world"),
    env = { ...process.env, HIGHTIDE_DATA: data },
    at = (name) => join(data, name);
  const run = (...args) => does(binary, args, { env, maxBuffer: 1 << 26 });
  if (!before) await record(run);
  writeFileSync(at("matrix.yaml"), matrix);
  await run("bench", at("matrix.yaml"), "--name", "sizes", "--html", at("matrix.html")); // of a folder that was made before, the page alone
  const { runs } = JSON.parse((await run("ls", "--json")).stdout),
    named = (name) => runs.find((r) => r.name === name)?.id ?? "";
  const found = {
    data,
    env,
    run: named(python ? "training" : "tall tide"),
    plain: named("small tide"),
    plain2: named("tall tide"),
    imagined: named("gpt 256"),
    imagined2: named("gpt 128"),
    matrixFile: at("matrix.html"),
    report: at("report.html"),
    snapshotReport: at("snapshot.html"),
    live: "",
    snapshot: "",
    search: "",
    fit: "",
    imagine: "",
  };
  await run("report", found.run, "--html", found.report);
  await run("explain", snapshotFile, "--html", found.snapshotReport);
  const going = liveRun(env),
    server = await serve(env, ["--allow-exec", snapshotFile]);
  const api = async (path, body) => {
    const answer = await ask(server, `/api/v1${path}`, {
      headers: body && { "Content-Type": "application/json" },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const until = async (ask) => {
    for (;;) {
      const found = await ask();
      if (found) return found;
      await new Promise((done) => setTimeout(done, 200));
    }
  };
  found.snapshot = (await api("/snapshots")).snapshots.find((s) =>
    snapshotFile.endsWith(s.name),
  ).id;
  found.live = await until(
    async () => (await api("/runs?search=going")).runs.find((r) => r.state === "running")?.id,
  );
  const job = async (kind, options) => {
    const { id } = await api("/jobs", { kind, options });
    await until(async () =>
      ["done", "failed", "cancelled"].includes((await api(`/jobs/${id}`)).state),
    );
    return id;
  };
  const script = here("../../examples/gpt.py"),
    small = ["--layers", "1", "--width", "128", "--length", "64"];
  if (python && wants("imagine"))
    found.imagine = await job("imagine", { gpu: "t4", command: [python, script, ...small] });
  if (python && wants("fit"))
    found.fit = await job("fit", {
      gpu: "t4",
      most: 4,
      command: [python, script, ...small, "--batch-size", "{batch}"],
    });
  found.search = await job("search", { snapshot: found.snapshot, device: -1 });
  if (!existsSync(found.report)) throw new Error("no report");
  return {
    ...found,
    server,
    api,
    going,
    close: async () => {
      await going.end();
      await server.end();
    },
  };
}
