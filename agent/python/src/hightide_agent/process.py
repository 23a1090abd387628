"""Who this process is: its command, its place among ranks, its role."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Optional

# (rank, local rank, world size) as launchers name them, most specific first.
_LAUNCHERS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)


def identity(channels: str, forked: bool, role: str = "", place: Optional[tuple[int, int]] = None) -> dict[str, Any]:
    """What the hello record says, secrets masked.

    Args:
        channels: the folder of channels.
        place: rank and world size, where no launcher set them but the program did.
    """
    from . import __version__

    argv = _command_line()
    ranks = _ranks() or ({"rank": place[0], "world_size": place[1]} if place else {})
    who: dict[str, Any] = {
        "type": "hello",
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "argv": _masked(argv),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable or "",
        "main_thread": os.getpid(),  # Linux: the first thread's number, also after a fork
        "role": role or _role(channels, forked, argv, ranks, place is not None),
        "agent": __version__,
    }
    try:
        who["cwd"] = os.getcwd()
    except OSError:  # deleted
        pass
    who.update(ranks)
    return who


def _command_line() -> list[str]:
    if sys.platform in ("darwin", "win32"):
        return list(getattr(sys, "orig_argv", getattr(sys, "argv", [])))  # the former from Python 3.10 on
    try:
        with open("/proc/self/cmdline", "rb", buffering=0) as file:
            return [os.fsdecode(part) for part in file.read(65536).rstrip(b"\0").split(b"\0")]
    except OSError:
        return list(getattr(sys, "argv", []))


def _masked(argv: list[str]) -> list[str]:
    from .masking import mask_arguments

    return mask_arguments(argv[:256])


def _ranks() -> dict[str, int]:
    for names in _LAUNCHERS:
        if names[0] in os.environ:
            found = {}
            for key, name in zip(("rank", "local_rank", "world_size"), names):
                text = os.environ.get(name, "")
                if text.isdigit():
                    found[key] = int(text)
            if "rank" in found:
                return found
    return {}


def _role(channels: str, forked: bool, argv: list[str], ranks: dict[str, int], placed: bool) -> str:
    if placed:
        return "rank"
    if forked or "--multiprocessing-fork" in argv:
        return "child"
    if ranks.get("world_size", 1) > 1:
        return "rank"
    return "child" if _has_observed_ancestor(channels) else "main"


def _has_observed_ancestor(channels: str) -> bool:
    """Whether a process above this one, be it through a shell, has a channel."""
    if sys.platform in ("darwin", "win32"):  # of a parent nothing but its number is known
        try:
            return any(name.startswith("agent-%d-" % os.getppid()) for name in os.listdir(channels))
        except OSError:
            return False
    try:
        observed = {name.split("-")[1] for name in os.listdir(channels) if name.startswith("agent-")}
        parent = str(os.getppid())
        for _ in range(8):
            if parent in observed:
                return True
            with open("/proc/%s/stat" % parent, "rb", buffering=0) as stat:
                parent = stat.read().rpartition(b")")[2].split()[1].decode()
    except (OSError, IndexError):  # a parent that is gone, or the first process
        pass
    return False
