"""python -m hightide is the command hightide that was installed with this package, or else the one on PATH."""

import os
import shutil
import sys

from . import binary


def main() -> None:
    """Become the command; it ends with 127, as a shell says it, where there is none."""
    try:
        command = binary()
    except FileNotFoundError as error:
        found = shutil.which("hightide")
        if found is None:
            sys.stderr.write("hightide: %s\n" % error)
            sys.exit(127)
        command = found
    if os.name == "nt":  # which has no exec: the shell would go on while the command runs
        import subprocess

        sys.exit(subprocess.run([command, *sys.argv[1:]], check=False).returncode)
    os.execv(command, ["hightide", *sys.argv[1:]])


if __name__ == "__main__":
    main()
