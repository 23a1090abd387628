"""The names of gpumemprof and tfmemprof (GPU Memory Profiler, today Stormlog), answered by hightide.

    from hightide.compat.gpumemprof import GPUMemoryProfiler      in place of: from gpumemprof import …
    hightide.compat.install()                                     and the old names are imported as they are
    python -m hightide.compat train.py                            the same for a program that is not to be changed

There is one profiler, the engine. These classes start or find it, name spans, set alerts and show what the recording
says. Only what both ends of a call must know at once is read in place. So each profiled program is a run in
`hightide ls`. docs/sdk.md says what differs.
"""

from __future__ import annotations

import importlib
import sys

from .. import _engine

NAMES = {
    "gpumemprof": "gpumemprof",
    "tfmemprof": "tfmemprof",
    "stormlog": "gpumemprof",
    "stormlog.tensorflow": "tfmemprof",
}


def install() -> None:
    """Let `import gpumemprof`, `import tfmemprof` and `import stormlog` find hightide's, in this process.

    A package of that name that was imported before keeps its name, and one line says so.
    """
    for name, module in NAMES.items():
        ours = importlib.import_module("." + module, __name__)
        if sys.modules.get(name, ours) is not ours:
            _engine.say(f"{name} was imported before install(): it stays what it is")
            continue
        sys.modules[name] = ours
        for part in ours.PARTS:
            sys.modules[f"{name}.{part}"] = ours
