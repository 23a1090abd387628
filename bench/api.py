"""Ask the servers of hightide all that their description allows, and much that it does not: nothing may be a 5xx.

    python bench/api.py              200 examples of each operation of hightide ui, 5 of a team's server by each role
    python bench/api.py --quick      10 and 3, as the suite does

Schemathesis (scripts/setup api) makes the requests. Answers must also have the form that the description says. Streams of events, which
do not end, are left out; what deletes and uploads is asked last. A team's server needs PostgreSQL (scripts/setup team).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common import CACHE, HIGHTIDE, ROOT, token_of

sys.path.insert(0, str(ROOT / "scripts"))
import teamserver

SCHEMATHESIS = CACHE / "api" / "bin" / "schemathesis"
SNAPSHOT = ROOT / "testdata" / "real" / "mosaic-synthetic.pickle"
CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance"
ENDLESS = r"/live$|/jobs/.*/events$"
TRAINING = "held = [bytearray(1 << 20) for _ in range(30)]\nprint('done')"
# What stands in a path is a run that is there in one half of the requests, and anything else in the other.
KNOWN = """
[[operations]]
include-path-regex = "/runs/\\\\{id\\\\}"
parameters = { "path.id" = "first" }

[[operations]]
include-path-regex = "/diff"
parameters = { "query.a" = "first", "query.b" = "second" }
"""


TEAM = """
address = "127.0.0.1:0"
admins = ["eve"]
rates = { requests = 1000000, bytes = "1GiB" }

[projects.ranker]
viewers = ["bob"]
members = ["anna"]
admins = ["carol"]

[projects.other]
members = ["otto"]
"""
# Who asks, and what their keys may: nobody known, somebody of another project, and every role, that which may most last.
ROLES = [
    ("nobody", ""), ("otto", "push"), ("bob", "read"), ("anna", "push"), ("carol", "push"), ("eve", "admin")
]  # fmt: skip


def record(env: dict[str, str], *words: str) -> None:
    """Two runs that requests name."""
    for name in ("first", "second"):
        command = [
            str(HIGHTIDE),
            "run",
            "--quiet",
            "--capture",
            "--name",
            name,
            *words,
            "--",
            sys.executable,
            "-c",
            TRAINING,
        ]
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def team(folder: Path) -> Iterator[teamserver.Server]:
    """A team's server over some runs of a project."""
    folder.mkdir()
    config = folder / "team.toml"
    config.write_text(TEAM)
    with teamserver.database() as database:
        env = {
            "HOME": str(folder),
            "HIGHTIDE_DATA": str(folder / "data"),
            "HIGHTIDE_STORE": database.address,
            "HIGHTIDE_OBJECTS": f"file://{folder}/objects",
            "PGPASSWORD": teamserver.PASSWORD,
        }
        record({**os.environ, **env}, "--tag", "project=ranker")
        with teamserver.server(env, ["serve", "--config", config]) as served:
            yield served


@contextmanager
def server(data: Path) -> Iterator[tuple[str, str]]:
    """A server over some runs; its address and its token."""
    env = {**os.environ, "HIGHTIDE_DATA": str(data)}
    record(env)
    command = [str(HIGHTIDE), "ui", "--addr", "127.0.0.1:0", str(SNAPSHOT)]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, bufsize=1)
    try:
        assert process.stderr
        line = process.stderr.readline()
        address = re.search(r"http://[^/\s]+/", line)
        if not address:
            sys.exit(f"the server said {line!r}")
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        yield address[0], token_of(data, address[0])
        if process.poll() is not None:
            sys.exit(f"the server ended with {process.returncode}")
        process.terminate()
        process.wait()
        drain.wait()
    finally:
        process.kill()


def ask(address: str, token: str, examples: int, config: Path, *words: str, phases: str = "coverage,fuzzing") -> bool:
    """One round of requests; whether all were answered well."""
    command: list[object] = [
        SCHEMATHESIS,
        "--config-file",
        config,
        "run",
        ROOT / "docs" / "openapi.json",
        "--url",
        address,
    ]
    command += ["-c", CHECKS, "--max-examples", examples, "--exclude-path-regex", ENDLESS, "--phases", phases]
    command += ["--request-timeout", 60, "--seed", 1, "--no-color", *words]
    if token:
        command += ["--header", f"Authorization: Bearer {token}"]
    # Its folder of what crashed goes where the configuration lies.
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=config.parent)
    shown = done.stdout if done.returncode else "".join(re.findall(r"\d+ generated.*", done.stdout))
    print(shown.strip())
    return done.returncode == 0


def by_roles(folder: Path, known: Path, quick: bool) -> bool:
    """Each role asks a team's server; whether all were answered well."""
    examples, phases = (3, "fuzzing") if quick else (5, "coverage,fuzzing")
    well = []
    with team(folder) as served:
        for name, may in ROLES:
            print(f"a team's server, asked by {name}", flush=True)
            key = served.key(name, may) if may else ""
            well.append(ask(f"{served.address}/", key, examples, known, phases=phases))
    return all(well)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    examples = 10 if quick else 200
    if not SCHEMATHESIS.exists():
        sys.exit("scripts/setup api installs Schemathesis")
    folder = Path(tempfile.mkdtemp(prefix="hightide-api-"))
    try:
        known, any_run = folder / "known.toml", folder / "any.toml"
        known.write_text(KNOWN)
        any_run.write_text("")
        with server(folder / "data") as (address, token):
            reading = ask(address, token, examples, known, "--include-method", "GET")
            rest = ask(address, token, examples, any_run)
        return 0 if reading and rest and by_roles(folder / "team", known, quick) else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
