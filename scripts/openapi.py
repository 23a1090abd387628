"""Write docs/openapi.json: the description of hightide ui's API, as the program itself gives it.

    python3 scripts/openapi.py            writes it
    python3 scripts/openapi.py --check    ends with 1 where it is not what this would write

Needs bin/hightide.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "openapi.json"


def main() -> int:
    text = subprocess.run(
        [str(ROOT / "bin" / "hightide"), "ui", "--openapi"], check=True, capture_output=True, text=True
    ).stdout
    if "--check" not in sys.argv:
        FILE.write_text(text, "utf-8")
        return 0
    if FILE.exists() and FILE.read_text("utf-8") == text:
        return 0
    print("docs/openapi.json is not what the program says of its API: make build, then python3 scripts/openapi.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
