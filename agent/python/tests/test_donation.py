"""Arguments that could be donated: what follows their ends is never heard of by the program."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from conftest import SOURCE


def test_arrays_of_a_main_that_exits() -> None:
    """They end as the interpreter does, with no frame of Python left: nothing is said of it."""
    program = """
        import sys, types
        from hightide_agent.xla.donation import Argument, Donation, _Watched

        class Array:
            pass

        def main():
            array, aval = Array(), types.SimpleNamespace(shape=(4,), dtype=None)
            watched = _Watched({}, main.__code__, 0)
            donation = Donation(types.SimpleNamespace(on_renew=[]))
            donation._follow(watched, array, Argument(0, "state", aval, False))
            sys.modules["kept"] = watched
            sys.exit(0)

        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, env={"PYTHONPATH": str(SOURCE)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
