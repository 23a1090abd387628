"""Check the types of the Python code with mypy --strict, each part as the Python it runs under.

    python3 scripts/typecheck.py      (with the tools environment's Python)

Arguments of the examples and of the planted leaks are what users write: without types.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# mypy knows no Python older than 3.10; the agent's tests run it under 3.8 and later themselves.
PARTS = [
    ("3.10", ["agent/python/src/hightide_agent"]),
    ("3.10", ["agent/python/src/hightide"]),
    ("3.10", ["device/smi/nvidia_smi.py"]),
    ("3.11", ["packaging/hatch_build.py"]),
    ("3.11", sorted(str(p.relative_to(ROOT)) for p in (ROOT / "scripts").rglob("*.py"))),
    ("3.11", sorted(str(p.relative_to(ROOT)) for p in (ROOT / "bench").glob("*.py"))),
]


def main() -> int:
    failed = 0
    for version, paths in PARTS:
        if paths:
            command = [sys.executable, "-m", "mypy", "--strict", "--python-version", version, *paths]
            failed |= subprocess.run(command, cwd=ROOT).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
