"""DataLoaders, which levers change before each starts its workers: no model has been called by then.

    DataLoader.__iter__ ─▶ before(loader, settings) of each such lever of the plan ─▶ PyTorch starts the workers
    first training call ─▶ prepare(): refused where it had nothing to change

Loaders that the program makes later are changed too, as those of its evaluations.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict

from . import loader_ahead, loader_workers, shared_data
from .found import Refused
from .loaded import done

LEVERS: Dict[str, Any] = {"shared_data": shared_data, "loader_ahead": loader_ahead, "loader_workers": loader_workers}

Watch = Callable[[str, Callable[[Any], None]], None]


def install(watch: Watch, levers: Dict[str, Any], agent: Any, refuse: Callable[[Any, str], None]) -> None:
    """Before the program makes a loader. `refuse` ends the program for a reason."""
    chosen = {name: levers[name] or {} for name in LEVERS if name in levers}
    if not chosen:
        return
    done.update({name: [] for name in chosen})

    def install_before(module: Any) -> None:
        kind = module._BaseDataLoaderIter
        plain = kind.__init__

        @functools.wraps(plain)
        def __init__(iterator: Any, loader: Any, *more: Any, **named: Any) -> None:
            for name, settings in chosen.items():
                try:
                    text = LEVERS[name].before(loader, settings)
                except Refused as error:
                    refuse(agent, "%s: %s" % (name, error))
                    return
                if text and text not in done[name]:
                    done[name].append(text)
            plain(iterator, loader, *more, **named)

        kind.__init__ = __init__

    watch("torch.utils.data.dataloader", install_before)
    if "loader_workers" in chosen:
        watch("torch.utils.data._utils.worker", loader_workers.worker(agent, refuse))
