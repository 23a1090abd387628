"""The agent of one process: its channel, what it says of itself, and its life across forks.

Everything the other modules record goes through the one Agent of the process. It opens a new
channel whenever it finds itself in another process than the one that opened the last: after
os.fork at once, after a fork behind Python's back at the next record.
"""

from __future__ import annotations

import os
import sys

from . import channel as channels
from . import crash, forks
from .channel import monotonic_ns
from .encode import encode

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

MARKED = forks.MARKED
MAX_LOGS = 32  # records about ourselves in one process: each error once, and few errors


class Agent:
    """The process's channel. With `channel` None everything is a no-op: the folder is gone or full."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.pid = -1
        self.channel: Optional[channels.Channel] = None
        self.on_renew: list[Callable[[], None]] = []  # called in a new process before its first record
        self.at_end: list[Callable[[], None]] = []  # called when the interpreter ends
        self.cpu_ns = 0  # of our own thread
        self.ended = 0  # monotonic: the program's last line was over, libraries' exit handlers follow; 0: not known
        self.facts: dict[str, Any] = {}
        self._untold: list[str] = []  # keys of facts for which there was no room: they go before the next record
        self.moving = False  # on_renew is called in the same process, for another recording of it
        self._frameworks: list[dict[str, Any]] = []
        self._logged: set[str] = set()
        self._role = ""
        self._place: Optional[tuple[int, int]] = None  # rank and world size that the program itself said
        self.mark: Any = (0,)  # its first item is MARKED in this process, and in no child

    def open(self, forked: bool = False) -> None:
        """Open this process's own channel and say hello. Never raises."""
        self.pid = os.getpid()
        self.mark = forks.mark()
        self.channel = None
        try:
            self.channel = channels.create(self.folder)
        except Exception:  # the folder is gone, read-only or full: go on unobserved
            return
        try:
            crash.watch(self.channel.path)
        except Exception as error:
            self.log("could not have a crash told", error)
        self._role = ""
        self._hello(forked)
        for framework in self._frameworks:
            self.record(framework)

    def ready(self) -> Optional[channels.Channel]:
        """The channel of the process we are in; None where there is none."""
        if self.mark[0] != MARKED and os.getpid() != self.pid:
            self.renew()
        return self.channel

    def move(self, folder: str) -> None:
        """Go on in another recording of the same process: the one before has ended."""
        self.folder = folder
        self.moving = True
        try:
            self.renew()
        finally:
            self.moving = False

    def renew(self) -> None:
        """Start anew in a forked child, or in another recording."""
        self.facts, self._untold, self.ended = {}, [], 0
        if self.moving:
            self._logged = set()
        else:
            from . import resident

            self._place = None
            forks.work.renew()
            resident.forked()
        for forget in self.on_renew:
            try:
                forget()
            except Exception as error:
                self.log("could not start anew after a fork", error)
        self.open(forked=not self.moving)

    def set_role(self, role: str) -> None:
        """Say hello again in another role, as that of a DataLoader's worker."""
        if self.ready() is not None and role != self._role:
            self._role = role
            self._hello(forked=True)

    def set_rank(self, rank: int, world_size: int) -> None:
        """Say hello again with the rank that the program itself gave this process."""
        if self.ready() is not None and self._place != (rank, world_size):
            self._place = (rank, world_size)
            self._hello(forked=self._role == "child")

    def record(self, fields: dict[str, Any]) -> bool:
        """Write a JSON record; False where it was dropped."""
        channel = self.ready()
        if channel is None:
            return False
        if self._untold:
            untold, self._untold = self._untold, []
            for key in untold:
                self._tell(channel, key)
        return channel.json(encode(fields).encode("ascii"), monotonic_ns())

    def framework(self, name: str, version: str, **facts: Any) -> None:
        """Say that a framework was imported; forked children say it again."""
        record = {"type": "framework", "name": name, "version": version, **facts}
        self._frameworks = [f for f in self._frameworks if f["name"] != name] + [record]
        self.record(record)

    def fact(self, key: str, value: Any) -> None:
        """State a fact about the process, once for each value."""
        channel = self.ready()
        if self.facts.get(key) != value:
            self.facts[key] = value
            if channel is not None:
                self._tell(channel, key)

    def _tell(self, channel: channels.Channel, key: str) -> None:
        text = encode({"type": "fact", "key": key, "value": self.facts[key]}).encode("ascii")
        if not channel.json(text, monotonic_ns()) and len(text) <= channels.MAX_JSON and key not in self._untold:
            self._untold.append(key)

    def log(self, text: str, error: Optional[BaseException] = None, level: str = "warning") -> None:
        """Report trouble of our own, each kind once."""
        if error is not None:
            text = "%s: %s: %s" % (text, type(error).__name__, error)
        if text not in self._logged and len(self._logged) < MAX_LOGS:
            self._logged.add(text)
            self.record({"type": "log", "level": level, "text": text})

    def end(self) -> None:
        """Tell what is told at the end, and say bye."""
        for function in self.at_end:
            function()
        self.bye()

    def bye(self) -> None:
        """Say that the interpreter ends in an orderly way."""
        if os.getpid() != self.pid or self.channel is None:
            return
        fields: dict[str, Any] = {"type": "bye", "cpu_ns": self.cpu_ns}
        if self.ended:
            fields["ended_ns"] = self.ended
        peak = _peak_rss()
        if peak is not None:
            fields["maxrss_bytes"] = peak
        self.record(fields)
        self.channel.close()

    def _hello(self, forked: bool) -> None:
        from .process import identity

        try:
            self.record(identity(self.folder, forked, self._role, self._place))
        except Exception as error:
            self.log("could not say who this process is", error)


def _peak_rss() -> Optional[int]:
    """The kernel's high-water mark of this program; unlike ru_maxrss not inherited across exec."""
    if sys.platform in ("darwin", "win32"):
        from .elsewhere import peak_rss

        return peak_rss()
    try:
        with open("/proc/self/status", "rb", buffering=0) as status:
            return int(status.read().partition(b"VmHWM:")[2].split(None, 1)[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None
