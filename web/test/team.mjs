// A server of a team for tests in a browser, over a PostgreSQL and a folder of its own.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { admit, begin, binary, fresh } from "./kit.mjs";

const versions = "/usr/lib/postgresql";

/** Starts PostgreSQL as somebody who is not root, which it refuses to run as. */
async function postgres() {
  assert.ok(existsSync(versions), "PostgreSQL is not installed: scripts/setup team");
  const bin = join(versions, readdirSync(versions).sort().at(-1), "bin"),
    folder = fresh("pg");
  const who = {};
  if (process.getuid() === 0) {
    const [, , uid, gid] = execFileSync("getent", ["passwd", "nobody"], { encoding: "utf8" }).split(
      ":",
    );
    Object.assign(who, { uid: Number(uid), gid: Number(gid) });
    chownSync(folder, who.uid, who.gid);
  }
  chmodSync(folder, 0o700);
  const does = (name, ...args) =>
    execFileSync(join(bin, name), args, { ...who, cwd: folder, stdio: "ignore" });
  const data = join(folder, "data");
  does("initdb", "-D", data, "-A", "trust", "-U", "hightide", "-E", "UTF8", "--no-sync");
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`, "fsync=off"];
  const start = () =>
    begin(join(bin, "postgres"), ["-D", data, ...settings.flatMap((s) => ["-c", s])], {
      ...who,
      cwd: folder,
      stdio: "ignore",
    });
  /** Does something once it is up. */
  const once = async (...command) => {
    for (;;) {
      try {
        return does(...command);
      } catch {
        await new Promise((next) => setTimeout(next, 50)); // it is not up yet
      }
    }
  };
  let now = start();
  await once("createdb", "-h", folder, "-U", "hightide", "team");
  return {
    folder,
    address: `postgres://hightide@/team?host=${folder}&sslmode=disable`,
    /** Ends it as the kernel does where memory runs out. */
    kill: () =>
      new Promise((done) => {
        now.on("exit", done);
        now.kill("SIGKILL");
      }),
    /** Starts it again. What the killed one left is in its way until its processes are gone. */
    again: async () => {
      for (;;) {
        now = start();
        const ended = new Promise((done) => now.on("exit", () => done(true))),
          up = once("psql", "-h", folder, "-U", "hightide", "-c", "SELECT 1", "team").then(
            () => false,
          );
        if (!(await Promise.race([ended, up]))) return;
      }
    },
  };
}

/** A server of what a file says besides its address; key makes a key of it. Browsers are let in as an account. */
export async function team(file, account, may = "read") {
  const database = await postgres(),
    env = {
      ...process.env,
      HIGHTIDE_DATA: fresh("data"),
      HIGHTIDE_STORE: database.address,
      HIGHTIDE_OBJECTS: `file://${fresh("objects")}`,
    },
    config = join(fresh("team"), "team.toml");
  writeFileSync(config, `address = "127.0.0.1:0"\n${file}`);
  const key = (name, may) =>
    execFileSync(binary, ["key", name, "--may", may], { env, encoding: "utf8" }).trim();
  const child = begin(binary, ["serve", "--config", config], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const address = await new Promise((done, fail) => {
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
      const found = /http:\S+/.exec(said);
      if (found) done(new URL(found[0]));
    });
    child.on("exit", () => fail(new Error(`the server ended: ${said}`)));
  });
  const server = { address, token: key(account, may), env, key, database };
  await admit(server);
  return server;
}
