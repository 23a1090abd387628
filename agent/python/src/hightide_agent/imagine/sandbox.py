"""--sandbox: what the script writes goes to another folder, and is seen by the script where it wrote it.

    open("out/log", "w") ─▶ ours to redirect? ─▶ SANDBOX/abs/path/out/log      (copied there before it is changed)
    open, stat, listdir … ─▶ the copy in the sandbox, if there is one, else the file itself

Python's own file functions are wrapped, what loads compiled modules, and torch's and safetensors' savers. A program
that the script starts, unless it is Python, writes where it likes. Left alone: temporary files and the caches
of compilers, which such programs share, devices, and our own folders. Without a sandbox the files that
are written are only listed.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from importlib.machinery import ExtensionFileLoader
from typing import Any, Callable, Dict, Iterator, Optional

from ..agent import Agent
from ..calls import given, instead

MAX_PATHS = 200  # told of; all are redirected
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Where:
    """Which paths are the script's own files, and how often each was written."""

    def __init__(self, agent: Agent, kind: str) -> None:
        self.agent = agent
        self.kind = kind
        self.counts: Dict[str, int] = {}
        self.told: Dict[str, int] = {}
        home = os.path.expanduser("~")
        ours = [os.environ.get(n, "") for n in ("HIGHTIDE_CHANNELS", "HIGHTIDE_OUT", "HIGHTIDE_IMAGINE_SANDBOX",
                                                "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "HF_HOME")]  # fmt: skip
        shared = [
            "/dev",
            "/proc",
            "/sys",
            "/run",
            os.environ.get("TMPDIR", "/tmp"),
            home + "/.cache",
            home + "/.triton",
        ]
        self.never = tuple(os.path.abspath(p) + "/" for p in ours if p)
        self.shared = tuple(os.path.abspath(p) + "/" for p in shared)
        self.cwd = os.getcwd() + "/"
        agent.at_end.append(self.flush)

    def own(self, path: str) -> bool:
        """Whether an absolute path is the script's own file."""
        inside = path + "/"
        if inside.startswith(self.never) or path.endswith(".pyc") or "/__pycache__" in path:
            return False
        return all(
            self.cwd.startswith(folder) and self.cwd != folder and inside.startswith(self.cwd)
            for folder in self.shared
            if inside.startswith(folder)
        )

    def note(self, path: str) -> None:
        """Count a write."""
        count = self.counts[path] = self.counts.get(path, 0) + 1
        if count == 1 and len(self.told) < MAX_PATHS:
            self._tell(path)

    def flush(self) -> None:
        """Tell the latest counts."""
        for path in list(self.told):
            if self.told[path] != self.counts[path]:
                self._tell(path)

    def _tell(self, path: str) -> None:
        self.told[path] = self.counts[path]
        self.agent.record({"type": self.kind, "path": path, "count": self.counts[path]})


def list_writes(agent: Agent) -> None:
    """Without a sandbox: say which files the script opens to write."""
    where = Where(agent, "written")

    def audit(event: str, args: Any) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & _WRITES and isinstance(args[0], str):
            path = os.path.abspath(args[0])
            if where.own(path):
                where.note(path)

    sys.addaudithook(audit)


def install(agent: Agent, folder: str) -> None:
    """Redirect writes to `folder`."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    overlay = Overlay(agent, folder)
    overlay.files()
    overlay.folders()
    overlay.libraries()
    global active
    active = overlay


class Overlay:
    """The sandbox laid over the file system."""

    def __init__(self, agent: Agent, folder: str) -> None:
        self.agent = agent
        self.folder = os.path.realpath(folder)
        self.where = Where(agent, "redirected")
        self.gone: set[str] = set()  # removed by the script; still there below
        self.stat, self.mkdir, self.open, self.listdir = os.lstat, os.mkdir, io.open, os.listdir

    def move(self, folder: str) -> None:
        """Go on in a copy of the sandbox."""
        os.makedirs(folder, mode=0o700)
        for name in self.listdir(self.folder):
            self._copy(os.path.join(self.folder, name), os.path.join(folder, name))
        self.folder = os.path.realpath(folder)

    def above(self, path: Any) -> Optional[str]:
        """Where the sandbox would have a path; None where it is none of ours."""
        if not isinstance(path, (str, os.PathLike)):
            return None
        text = os.fspath(path)
        if not isinstance(text, str):
            return None
        text = os.path.abspath(text)
        return self.folder + text if self.where.own(text) else None

    def reading(self, path: Any) -> Any:
        """The path to read instead."""
        above = self.above(path)
        if above is None:
            return path
        if self._there(above):
            return above
        return above if above[len(self.folder) :] in self.gone else path  # the error then names the sandbox's path

    def writing(self, path: Any, keep: bool) -> Any:
        """The path to write instead; with `keep` what is there is copied up first."""
        above = self.above(path)
        if above is None:
            return path
        below = above[len(self.folder) :]
        if not self._there(os.path.dirname(above)):
            if not self._there(os.path.dirname(below)):
                return path  # no such folder: the error is the script's
            self._folders(os.path.dirname(above))
        if keep and not self._there(above) and below not in self.gone and self._there(below):
            self._copy(below, above)
        self.gone.discard(below)
        self.where.note(below)
        return above

    def files(self) -> None:
        """Wrap what opens files."""
        opening, low = io.open, os.open

        @functools.wraps(opening)
        def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if isinstance(mode, str) and set(mode) & set("wax+"):
                return opening(self.writing(file, "w" not in mode), mode, *args, **kwargs)
            return opening(self.reading(file), mode, *args, **kwargs)

        @functools.wraps(low)
        def os_open(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is not None:
                return low(path, flags, *args, **kwargs)
            if flags & _WRITES:
                return low(self.writing(path, not flags & os.O_TRUNC), flags, *args, **kwargs)
            return low(self.reading(path), flags, *args, **kwargs)

        builtins.open = io.open = open
        os.open = os_open

    def folders(self) -> None:
        """Wrap what looks at, makes, moves and removes files and folders."""
        for name in ("stat", "lstat", "access", "readlink", "chdir"):
            self._wrap(name, self.reading)
        for name in ("utime", "chmod", "truncate"):
            self._wrap(name, lambda path: self.writing(path, True))
        for name in ("remove", "unlink", "rmdir"):
            self._removing(name)
        for name in ("rename", "replace"):
            self._moving(name)
        self._making()
        self._listing()

    def libraries(self) -> None:
        """Wrap what loads compiled modules, which the loader of C opens by their path."""
        kind = ExtensionFileLoader
        original = kind.create_module

        @functools.wraps(original)
        def create_module(loader: Any, spec: Any) -> Any:
            path = spec.origin
            spec.origin = self.reading(path)
            try:
                return original(loader, spec)
            finally:
                spec.origin = path

        kind.create_module = create_module  # type: ignore[method-assign,assignment]

    def _wrap(self, name: str, instead: Callable[[Any], Any]) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        def function(path: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is not None:
                return original(path, *args, **kwargs)
            return original(instead(path), *args, **kwargs)

        setattr(os, name, function)

    def _making(self) -> None:
        original = os.mkdir

        @functools.wraps(original)
        def mkdir(path: Any, *args: Any, **kwargs: Any) -> Any:
            above = self.above(path) if kwargs.get("dir_fd") is None else None
            if above is not None and not (self._there(above[len(self.folder) :]) and path not in self.gone):
                path = self.writing(path, False)
            return original(path, *args, **kwargs)

        os.mkdir = mkdir

    def _removing(self, name: str) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        def remove(path: Any, *args: Any, **kwargs: Any) -> Any:
            above = self.above(path) if kwargs.get("dir_fd") is None else None
            if above is None:
                return original(path, *args, **kwargs)
            below = above[len(self.folder) :]
            if self._there(above):
                original(above, *args, **kwargs)
            elif below in self.gone or not self._there(below):
                return original(above, *args, **kwargs)  # raises, as it should
            if self._there(below):
                self.gone.add(below)
                self.where.note(below)
            return None

        setattr(os, name, remove)

    def _moving(self, name: str) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        def move(src: Any, dst: Any, **kwargs: Any) -> Any:
            above, to = self.above(src), self.above(dst)
            if above is None or to is None or any(folder is not None for folder in kwargs.values()):
                return original(src, dst, **kwargs)
            below = above[len(self.folder) :]
            if not self._there(above) and below not in self.gone and self._there(below):
                self._copy(below, above)
            result = original(above, self.writing(dst, False))
            if self._there(below):
                self.gone.add(below)
            return result

        setattr(os, name, move)

    def _listing(self) -> None:
        listdir, scandir = os.listdir, os.scandir

        @functools.wraps(listdir)
        def list_folder(path: Any = None) -> Any:
            path = "." if path is None else path
            above = self.above(path)
            if above is None or (not self._there(above) and not self.gone):
                return listdir(path)
            below = above[len(self.folder) :]
            names = set(listdir(above)) if self._there(above) else set()
            if self._there(below):
                names |= {n for n in listdir(below) if os.path.join(below, n) not in self.gone}
            elif not self._there(above):
                return listdir(path)
            return sorted(names)

        @functools.wraps(scandir)
        def scan_folder(path: Any = None) -> Any:
            path = "." if path is None else path
            above = self.above(path)
            if above is None or (not self._there(above) and not self.gone):
                return scandir(path)
            return _Scan(_Entry(os.fspath(path), name) for name in list_folder(path))

        os.listdir, os.scandir = list_folder, scan_folder

    def _there(self, path: str) -> bool:
        try:
            self.stat(path)
        except OSError:
            return False
        return True

    def _folders(self, path: str) -> None:
        missing = []
        while not self._there(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            self.mkdir(folder)

    def _copy(self, below: str, above: str) -> None:
        import stat

        self._folders(os.path.dirname(above))
        if stat.S_ISDIR(self.stat(below).st_mode):
            self._folders(above)
            for name in os.listdir(below):
                self._copy(os.path.join(below, name), os.path.join(above, name))
            return
        with self.open(below, "rb") as source, self.open(above, "wb") as target:
            while True:
                data = source.read(1 << 20)
                if not data:
                    break
                target.write(data)


active: Optional[Overlay] = None


def savers(torch: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Redirect what writes and reads past Python: torch's archives, safetensors."""
    if active is None:
        return
    overlay = active
    for module in (torch, torch.serialization):
        module.load = _first(torch.load, overlay.reading, 0, "f")
    save = _first(torch.save, lambda path: overlay.writing(path, False), 1, "f")
    torch.save = torch.serialization.save = save

    def safetensors(module: Any) -> None:
        module.save_file = _first(module.save_file, lambda path: overlay.writing(path, False), 1, "filename")
        module.load_file = _first(module.load_file, overlay.reading, 0, "filename")

    def ctypes(module: Any) -> None:
        module._dlopen = _first(module._dlopen, overlay.reading, 0, "name")

    watch("safetensors.torch", safetensors)
    watch("ctypes", ctypes)


def _first(function: Callable[..., Any], path: Callable[[Any], Any], at: int, name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def redirected(*args: Any, **kwargs: Any) -> Any:
        if len(args) > at or name in kwargs:
            args, kwargs = instead(args, kwargs, at, name, path(given(args, kwargs, at, name)))
        return function(*args, **kwargs)

    return redirected


class _Scan:
    """What os.scandir gives: an iterator that can be closed."""

    def __init__(self, entries: Iterator[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Any:
        return self._entries

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held."""


class _Entry:
    """A directory's entry, by the path that the script knows."""

    def __init__(self, folder: str, name: str) -> None:
        self.name = name
        self.path = os.path.join(folder, name)

    def __fspath__(self) -> str:
        return self.path

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        """As os.stat."""
        return os.stat(self.path) if follow_symlinks else os.lstat(self.path)

    def inode(self) -> int:
        """As os.stat gives it."""
        return int(os.lstat(self.path).st_ino)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        return os.path.isdir(self.path) and (follow_symlinks or not os.path.islink(self.path))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return os.path.isfile(self.path) and (follow_symlinks or not os.path.islink(self.path))

    def is_symlink(self) -> bool:
        """Whether it is a link."""
        return os.path.islink(self.path)
