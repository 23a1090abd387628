"""Tests of a script that are no functions of pytest's: what they need takes minutes to make, and is made once."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable


def run(tests: Iterable[tuple[str, Callable[[], object]]]) -> int:
    """Run each, say how it ended, and count them as scripts/check.py reads it; the exit code."""
    failed = passed = 0
    for name, test in tests:
        try:
            test()
        except Exception:
            failed += 1
            say(f"FAIL {name}\n{traceback.format_exc()}")
        else:
            passed += 1
            say(f"ok   {name}\n")
    say(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


def say(lines: str) -> None:
    """In one piece: several may run beside each other."""
    sys.stdout.write(lines)
    sys.stdout.flush()
