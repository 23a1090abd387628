"""hightide from Python: what a program's memory does, by line, with the one profiler that the command uses too.

    import hightide

    hightide.init(name="baseline")          # or run the program under `hightide run`: the same recording
    with hightide.span("encode"):
        ...
    hightide.step()                         # where no optimizer's step marks the steps
    print(hightide.report().text)

Nothing here measures a second way: the engine records, in a process of its own, and is asked. Every part is imported
when it is first used. docs/sdk.md shows all of it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from . import accelerate as accelerate
    from . import keras as keras
    from . import lightning as lightning
    from . import mlflow as mlflow
    from . import tensorboard as tensorboard
    from . import transformers as transformers
    from . import wandb as wandb
    from ._fit.sdk import Fit, Trial, fit
    from ._imagine import Imagined, imagine
    from ._moments import Line, Peak, Snapshot, figures, peak, snapshot
    from ._notebook import load_ipython_extension as load_ipython_extension
    from ._profiler import trace_handler
    from ._recorded import recorded
    from ._rescue import rescue
    from ._runs import Finding, Report, Run, report, runs
    from ._session import Alert, alert, init, step, stop
    from ._spans import profile, span

    __version__: str

_PLACES = {
    "Fit": "_fit.sdk", "Trial": "_fit.sdk", "fit": "_fit.sdk",
    "Imagined": "_imagine", "imagine": "_imagine",
    "Line": "_moments", "Peak": "_moments", "Snapshot": "_moments",
    "figures": "_moments", "peak": "_moments", "snapshot": "_moments",
    "recorded": "_recorded", "rescue": "_rescue",
    "Finding": "_runs", "Report": "_runs", "Run": "_runs", "report": "_runs", "runs": "_runs",
    "load_ipython_extension": "_notebook",
    "Alert": "_session", "alert": "_session", "init": "_session", "step": "_session", "stop": "_session",
    "profile": "_spans", "span": "_spans", "trace_handler": "_profiler",
}  # fmt: skip
_MODULES = frozenset(("accelerate", "keras", "lightning", "mlflow", "tensorboard", "transformers", "wandb"))

__all__ = [
    "Alert", "Finding", "Fit", "Imagined", "Line", "Peak", "Report", "Run", "Snapshot", "Trial", "__version__", "alert",
    "binary", "figures", "fit", "imagine", "init", "peak", "profile", "recorded", "report", "rescue", "runs",
    "snapshot", "span", "step", "stop", "trace_handler",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name == "__version__":
        value: Any = _version()
    elif name in _PLACES:
        from importlib import import_module

        value = getattr(import_module("." + _PLACES[name], __name__), name)
    elif name in _MODULES:  # each needs the framework it is called like
        from importlib import import_module

        value = import_module("." + name, __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All there is, imported or not."""
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hightide")
    except PackageNotFoundError:  # imported from a source tree
        return "0+source"


def binary() -> str:
    """Return the path of the hightide program that was installed with this package.

    $HIGHTIDE_BINARY names another one, such as that of a source tree.

    Raises:
        FileNotFoundError: it is in none of the places where installers put a package's programs.
    """
    named = os.environ.get("HIGHTIDE_BINARY")
    if named:
        return named
    import sysconfig

    here = os.path.dirname(os.path.abspath(__file__))
    folders = [
        sysconfig.get_path("scripts"),
        # pip install --user, pip install --target, and a prefix of its own (lib/pythonX.Y/site-packages)
        sysconfig.get_path("scripts", f"{os.name}_user"),
        os.path.join(os.path.dirname(here), "bin"),
        os.path.abspath(os.path.join(here, "..", "..", "..", "..", "bin")),
    ]
    for folder in folders:
        path = os.path.join(folder, "hightide.exe" if os.name == "nt" else "hightide")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(
        f"hightide's program is not in {', '.join(folders)} of {sys.executable}; reinstall the wheel"
    )
