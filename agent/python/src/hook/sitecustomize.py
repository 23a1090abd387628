"""Start-up hook of hightide: the only file in a folder that stands first on PYTHONPATH.

Python imports a module of this name at every start. It takes its folder off sys.path, starts the
agent from the folder beside it, and then steps aside as if it had never been there, so that the
user's own sitecustomize, if there is one, is found and run in its place.
"""

import os
import sys
from _frozen_importlib_external import FileFinder, SourceFileLoader


class _Cached(SourceFileLoader):
    """Keeps our bytecode beside our source, where nobody else looks, also where the user wants none of theirs.

    Compiling the agent anew would cost each process 50 ms. The user's settings are set aside only while our own file
    is read.
    """

    def get_code(self, fullname):  # type: ignore[no-untyped-def]
        settings = sys.dont_write_bytecode, sys.pycache_prefix
        sys.dont_write_bytecode, sys.pycache_prefix = False, None
        try:
            return super().get_code(fullname)
        finally:
            sys.dont_write_bytecode, sys.pycache_prefix = settings


def _start() -> None:
    hook = os.path.dirname(os.path.abspath(__file__))
    ours = {hook, os.environ.get("HIGHTIDE_AGENT_PATH", hook)}
    sys.path[:] = [place for place in sys.path if place not in ours]
    sys.path_importer_cache.pop(hook, None)
    if not os.environ.get("HIGHTIDE_CHANNELS"):
        return
    package = os.path.dirname(hook)
    sys.path.insert(0, package)
    if not os.stat(os.path.dirname(package)).st_mode & 0o77:  # hightide's own cache, not a source tree
        for folder in ("", "/hightide_agent", "/hightide_agent/adapters", "/hightide_agent/pytorch"):
            sys.path_importer_cache[package + folder] = FileFinder(package + folder, (_Cached, [".py"]))
    try:
        from hightide_agent import start
    finally:
        if package in sys.path:
            sys.path.remove(package)
        sys.path_importer_cache.pop(package, None)
    start.start()


try:
    _start()
except Exception:  # the training must run, observed or not; the engine reports a process without a channel
    pass


def _step_aside() -> None:
    """Load the user's own sitecustomize under this name; its errors are shown as Python shows them."""
    del sys.modules[__name__]
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  # the next one on sys.path


if __name__ == "sitecustomize":
    _step_aside()
