"""Ask the databases of known vulnerabilities about what hightide is made of; end with 1 where a newer version mends one.

    python3 scripts/vulnerabilities.py

Of Go, govulncheck (scripts/setup vulnerabilities) tells which of our calls reach one. Its database is that of $GOVULNDB,
else Go's own, else the copy that the Go module proxy has. Of the web, npm's registry is asked. Who does not answer is
named as not looked for, which fails nothing. The Python packages have no dependencies.
A vulnerability of Go's own library is that of the Go installed here: it is told, and fails nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from typing import Any

from torchversions import CACHE, ROOT

GOVULNCHECK = CACHE / "tools" / "go" / "govulncheck"
GO_DATABASE = "https://vuln.go.dev"
COPY = "golang.org/x/vulndb"
UNASKED = "not looked for: the database did not answer"


def go_database() -> tuple[str, str] | None:
    """The address of the database of Go, and what it is called; None: none answers."""
    named = os.environ.get("GOVULNDB", GO_DATABASE)
    try:
        with urllib.request.urlopen(f"{named}/index/db.json", timeout=20) as answer:
            return named, f"{named} of {json.load(answer)['modified'][:10]}"
    except (OSError, ValueError, KeyError):
        if named != GO_DATABASE:
            return None
    with tempfile.TemporaryDirectory() as outside:  # of our module
        command = ["go", "mod", "download", "-json", f"{COPY}@latest"]
        got = subprocess.run(command, cwd=outside, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if got.returncode:
        return None
    module = json.loads(got.stdout)
    return f"file://{module['Dir']}/data/osv", f"{COPY} {module['Version']}"


def objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects, one after the other."""
    at, reader = 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        one, at = reader.raw_decode(text, at)
        yield one


def reached(messages: Iterator[dict[str, Any]]) -> dict[str, tuple[str, str, str]]:
    """Of each vulnerability that our calls reach: the module, its version, and the version that mends it ("": none)."""
    found = {}
    for message in messages:
        finding = message.get("finding", {})
        last = finding.get("trace", [{}])[0]
        if "function" in last:
            found[finding["osv"]] = (last["module"], last["version"], finding.get("fixed_version", ""))
    return found


Answer = tuple[bool | None, list[str]]  # whether nothing is to be done, None: nobody knows; and what to say


def go() -> Answer:
    database = go_database()
    if not database:
        return None, [f"Go: {UNASKED}"]
    command = [str(GOVULNCHECK), "-db", database[0], "-format", "json", "./..."]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if asked.returncode:
        return None, [f"Go: {UNASKED}: {asked.stderr.strip()}"]
    found = reached(objects(asked.stdout))
    lines, well = [f"Go: {len(found)} are reached, by {database[1]}"], True
    for name, (module, version, mended) in sorted(found.items()):
        lines.append(f"  {name} in {module} {version}, {f'mended by {mended}' if mended else 'not mended'}")
        well &= module == "stdlib" or not mended
    return well, lines


def web() -> Answer:
    """What the pages are made of. npm answers with an error of its own where its registry does not."""
    command = ["npm", "--prefix", "web", "audit", "--json", "--omit=dev", "--fetch-retries=0", "--fetch-timeout=20000"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        found = json.loads(asked.stdout)["vulnerabilities"]
    except (ValueError, KeyError, TypeError):
        return None, [f"web: {UNASKED}"]
    lines = [f"  {one['severity']} in {name}: npm audit tells more" for name, one in sorted(found.items())]
    return not any(one.get("fixAvailable") for one in found.values()), [f"web: {len(found)} are known", *lines]


def main() -> int:
    if not GOVULNCHECK.exists():
        sys.exit("scripts/setup vulnerabilities installs govulncheck")
    answers = []
    for part in (go, web):
        well, lines = part()
        answers.append(well)
        print("\n".join(lines), flush=True)
    print(f"{answers.count(True)} passed, {answers.count(False)} failed, {answers.count(None)} skipped")
    return 1 if False in answers else 0


if __name__ == "__main__":
    sys.exit(main())
