"""python -m hightide.compat PROGRAM [ARGUMENTS…] runs a program in which the old names are hightide's."""

from __future__ import annotations

import os
import runpy
import sys

from . import install


def main() -> None:
    """Run the program."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.stderr.write("hightide: python -m hightide.compat PROGRAM [ARGUMENTS…]\n")
        sys.exit(0 if len(sys.argv) > 1 else 2)
    del sys.argv[0]
    program = sys.argv[0]
    if not os.path.exists(program):
        sys.stderr.write(f"hightide: there is no program {program}\n")
        sys.exit(3)
    install()
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
