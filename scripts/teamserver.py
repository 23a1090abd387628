"""PostgreSQL and the server of a team, for tests in Python: each on a port of its own, until the end of a with."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchversions import ROOT

HIGHTIDE = ROOT / "bin" / "hightide"
PASSWORD = "of the tests' database"


@dataclass(frozen=True)
class Database:
    """A PostgreSQL whose user and database are hightide; it asks for PASSWORD."""

    port: int

    @property
    def address(self) -> str:
        return f"postgres://hightide@127.0.0.1:{self.port}/hightide?sslmode=disable"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def database() -> Iterator[Database]:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise SystemExit("PostgreSQL is not installed: scripts/setup team")
    folder = Path(tempfile.mkdtemp(prefix="hightide-pg-", dir="/tmp"))
    owner = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else os.getuid()  # the server refuses to run as root
    os.chown(folder, owner, -1)

    def does(name: str, *words: object) -> None:
        command = [str(programs[-1] / name), *(str(word) for word in words)]
        # To a file: a server that is started keeps the output open.
        with (folder / "log").open("a") as log:
            done = subprocess.run(command, cwd=folder, user=owner, stdout=log, stderr=log)
        if done.returncode:
            raise SystemExit(f"{name} failed: {(folder / 'log').read_text()[-1000:]}")

    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    data, port = folder / "data", free_port()
    try:
        does(
            "initdb", "-D", data, "-A", "scram-sha-256", "--pwfile", secret, "-U", "hightide", "-E", "UTF8", "--no-sync"
        )
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        does("pg_ctl", "-D", data, "-w", "-o", options, "start")
        try:
            env = {**os.environ, "PGPASSWORD": PASSWORD}
            words = ["-h", str(folder), "-p", str(port), "-U", "hightide", "hightide"]
            subprocess.run([str(programs[-1] / "createdb"), *words], env=env, check=True)
            yield Database(port)
        finally:
            does("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Server:
    """A server that answers at an address, as http://127.0.0.1:7333; of is its environment."""

    address: str
    of: Mapping[str, str]

    def key(self, name: str, may: str) -> str:
        """A new key of an account."""
        command = [str(HIGHTIDE), "key", name, "--may", may]
        made = subprocess.run(command, env=dict(self.of), check=True, stdout=subprocess.PIPE, text=True)
        return str(made.stdout.split()[-1])


@contextmanager
def server(env: Mapping[str, str], words: Sequence[object]) -> Iterator[Server]:
    """A server that is started by these words, with an environment of PATH and these variables alone."""
    env = {"PATH": os.environ["PATH"], **env}
    command = [str(HIGHTIDE), *(str(word) for word in words)]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, bufsize=1)
    try:
        assert process.stderr
        line = process.stderr.readline()
        text = json.loads(line)["msg"] if line.startswith("{") else line
        found = re.search(r"https?://[^\s/]+", text)
        if not found:
            raise SystemExit(f"the server said {line!r}")
        with subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL):
            yield Server(found[0], env)
            if process.poll() is not None:
                raise SystemExit(f"the server ended with {process.returncode}")
            process.terminate()
            process.wait()
    finally:
        process.kill()
        process.wait()
