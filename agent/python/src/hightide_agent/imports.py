"""Noticing that a module has been imported, without importing it and without altering it.

A finder that stands first on sys.meta_path answers for watched names only. It lets the other finders
find the module, and hands out their spec with a loader that puts everything back as it was, runs
the original loader, and then calls whoever waited.
"""

from __future__ import annotations

import sys

from .agent import Agent

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from .training import Training

    Callback = Callable[[Any], None]


class _Finder:
    """Answers for the names in `waiting`; all other imports cost one look into a dict."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.waiting: dict[str, list[Callback]] = {}
        self._training: Optional[Training] = None

    def training(self) -> Training:
        """The one that all adapters of this process share."""
        if self._training is None:
            from .training import Training

            self._training = Training(self.agent)
        return self._training

    def wait(self, name: str, callback: Callback) -> None:
        """Call back with a module once it has been imported, or now, as where nobody watched as its import began."""
        module = sys.modules.get(name)
        if module is not None and not (name in self.waiting and _initializing(module)):
            callback(module)
        else:
            self.waiting.setdefault(name, []).append(callback)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a watched module through the other finders, and watch its loader."""
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None

    def imported(self, module: Any, name: str = "") -> None:
        """Tell those who wait for this module, which may be called otherwise than it was imported."""
        for callback in self.waiting.pop(name or module.__name__, []):
            try:
                callback(module)
            except Exception as error:
                self.agent.log("could not observe %s" % module.__name__, error)

    def present(self, name: str) -> None:
        """Tell those who wait for a module that is there already, unless it is being imported at this moment."""
        module = sys.modules.get(name)
        if module is None:
            return
        if _initializing(module):
            _unfinished.append((self, name))
        else:
            self.imported(module, name)


def _initializing(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


_unfinished: list[tuple[_Finder, str]] = []  # modules that another thread imported, or the lines beneath us


def look_again() -> None:
    """Tell those who wait for modules that have been imported since. Called now and then."""
    if _unfinished:
        found = list(_unfinished)
        for finder, name in found:
            finder.present(name)
        del _unfinished[: len(found)]  # what is still being imported stands behind them


class _Loader:
    """Stands in for a loader until its module is executed; for all else it is that loader."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._hightide_loader = loader
        self._hightide_finder = finder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_hightide"):
            raise AttributeError(name)
        return getattr(self._hightide_loader, name)

    def create_module(self, spec: Any) -> Any:
        """Let the original loader make the module."""
        create = getattr(self._hightide_loader, "create_module", None)
        return None if create is None else create(spec)

    def exec_module(self, module: Any) -> None:
        """Take ourselves out of the module, execute it, and tell those who wait."""
        loader, finder = self._hightide_loader, self._hightide_finder
        module.__spec__.loader = loader
        module.__loader__ = loader
        loader.exec_module(module)
        finder.imported(sys.modules.get(module.__name__, module))


finder: Optional[_Finder] = None  # of this process; None: nothing is watched for


def watch(agent: Agent, frameworks: dict[str, Optional[str]]) -> Callable[[], Optional[Training]]:
    """Load the adapter of each framework once that is imported. What is returned gives the Training they share."""
    global finder
    found = finder = _Finder(agent)

    def load(framework: str, adapter: Optional[str]) -> Callback:
        def loaded(module: Any) -> None:
            agent.framework(framework.partition(".")[0], str(module.__dict__.get("__version__", "")))
            if adapter is not None:
                __import__("%s.adapters.%s" % (__package__, adapter))
                sys.modules["%s.adapters.%s" % (__package__, adapter)].install(found.training(), module, found.wait)

        return loaded

    for framework, adapter in frameworks.items():
        found.waiting[framework] = [load(framework, adapter)]
        found.present(framework)
    sys.meta_path.insert(0, found)
    return lambda: found._training
