"""Ask the server of hightide ui all that its description allows, and much that it does not: nothing may be a 5xx.

    python bench/api.py              200 examples of each operation
    python bench/api.py --quick      10, as the suite does

Schemathesis (scripts/setup api) makes the requests. Answers must also have the form that the description says. Streams of events, which
do not end, are left out; what deletes and uploads is asked last.
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


@contextmanager
def server(data: Path) -> Iterator[tuple[str, str]]:
    """A server over some runs; its address and its token."""
    env = {**os.environ, "HIGHTIDE_DATA": str(data)}
    for name in ("first", "second"):
        record = [str(HIGHTIDE), "run", "--quiet", "--capture", "--name", name, "--", sys.executable, "-c", TRAINING]
        subprocess.run(record, env=env, check=True, stdout=subprocess.DEVNULL)
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


def ask(address: str, token: str, examples: int, config: Path, *words: str) -> bool:
    """One round of requests; whether all were answered well."""
    command: list[object] = [SCHEMATHESIS, "--config-file", config, "run", f"{address}openapi.json", "-c", CHECKS]
    command += ["--max-examples", examples, "--exclude-path-regex", ENDLESS, "--phases", "coverage,fuzzing"]
    command += ["--request-timeout", 60, "--seed", 1, "--no-color", *words]
    command += ["--header", f"Authorization: Bearer {token}"]
    # Its folder of what crashed goes where the configuration lies.
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=config.parent)
    shown = done.stdout if done.returncode else "".join(re.findall(r"\d+ generated.*", done.stdout))
    print(shown.strip())
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    examples = 10 if parser.parse_args().quick else 200
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
        return 0 if reading and rest else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
