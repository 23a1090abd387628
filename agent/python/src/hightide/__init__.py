"""hightide from Python: where the program is, and its version.

The wheel puts the program beside the environment's python, so `hightide run -- python train.py`
works at once; it carries its agent and its C library inside. From a script:

    import subprocess, hightide
    subprocess.run([hightide.binary(), "run", "--", "python", "train.py"], check=True)

and fit(step) finds the largest batch that a step of yours can take.
"""

import os
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version

from ._fit.sdk import Fit, Trial, fit

__all__ = ["Fit", "Trial", "__version__", "binary", "fit"]

try:
    __version__ = version("hightide")
except PackageNotFoundError:  # imported from a source tree
    __version__ = "0+source"


def binary() -> str:
    """Return the path of the hightide program that was installed with this package.

    $HIGHTIDE_BINARY names another one, such as that of a source tree.

    Raises:
        FileNotFoundError: it is in none of the places where installers put a package's programs.
    """
    named = os.environ.get("HIGHTIDE_BINARY")
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [
        sysconfig.get_path("scripts"),
        # pip install --user, pip install --target, and a prefix of its own (lib/pythonX.Y/site-packages)
        sysconfig.get_path("scripts", f"{os.name}_user"),
        os.path.join(os.path.dirname(here), "bin"),
        os.path.abspath(os.path.join(here, "..", "..", "..", "..", "bin")),
    ]
    for folder in folders:
        path = os.path.join(folder, "hightide")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(
        f"hightide's program is not in {', '.join(folders)} of {sys.executable}; reinstall the wheel"
    )
