"""Start-up hook of hightide: the only file in a folder that stands first on PYTHONPATH.

Python imports a module of this name at every start. It takes its folder off sys.path, starts the
agent from the folder beside it, and then steps aside as if it had never been there. So the
user's own sitecustomize, if there is one, is found and run in its place.

Every Python finds this file, also those too old for the agent: so it is written in what Python 2.7 understands.
"""

import os
import sys

if sys.version_info >= (3, 8):  # noqa: UP036  # see above
    import _signal
    from _frozen_importlib_external import FileFinder, SourceFileLoader

    class _Cached(SourceFileLoader):
        """Keeps our bytecode beside our source, where nobody else looks, also where the user wants none of theirs.

        Compiling the agent anew would cost each process 50 ms. The user's settings are set aside only while our own
        file is read.
        """

        def get_code(self, fullname):
            settings = sys.dont_write_bytecode, sys.pycache_prefix
            sys.dont_write_bytecode, sys.pycache_prefix = False, None
            try:
                return super().get_code(fullname)
            finally:
                sys.dont_write_bytecode, sys.pycache_prefix = settings


def _leave_path():
    """Take our folder off sys.path, and return it."""
    hook = os.path.dirname(os.path.abspath(__file__))
    ours = {hook, os.environ.get("HIGHTIDE_AGENT_PATH", hook)}
    sys.path[:] = [place for place in sys.path if place not in ours]
    sys.path_importer_cache.pop(hook, None)
    return hook


def _start(hook):
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


def _uninterrupted(hook):
    """Start while SIGINT waits: here it would end Python with a fatal error, instead of as the program ends."""
    if not hasattr(_signal, "pthread_sigmask"):  # Windows: Ctrl-C is seen by the main thread when it runs Python again
        try:
            _start(hook)
        except Exception:
            pass
        return
    held = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))
    try:
        _start(hook)
    except Exception:  # the training must run, observed or not; the engine says that nothing was heard from it
        pass
    try:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, held)
    except KeyboardInterrupt:  # no line of the program has run that could have caught it
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)


def _step_aside():
    """Load the user's own sitecustomize under this name; its errors are shown as Python shows them."""
    me = sys.modules.pop(__name__)  # Python 2 would empty it
    import sitecustomize  # noqa: F401  # the next one on sys.path

    del me


_hook = _leave_path()
if os.environ.get("HIGHTIDE_CHANNELS") and sys.version_info >= (3, 8):
    _uninterrupted(_hook)

if __name__ == "sitecustomize":
    _step_aside()
