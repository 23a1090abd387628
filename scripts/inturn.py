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
            print(f"FAIL {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
        else:
            passed += 1
            print(f"ok   {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
