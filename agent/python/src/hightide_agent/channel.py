"""The channel's writer: a ring in shared memory, one for each process.

    record ─▶ reserve room ─▶ write payload ─▶ advance head        (docs/formats/channel.md)

The layout is that of include/hightide_channel.h. The memory is mapped through ctypes so that no
file descriptor stays open. The script may close every descriptor it finds, and no number that it
could get for a file of its own is ever written to. Python's own mmap module keeps a duplicate of the
descriptor and is used only where ctypes is missing.

One thread writes at a time. A writer waits for another one for at most LOCK_SECONDS; a signal
handler that interrupts a writer in its own thread does not wait at all. What cannot be written is
dropped and counted.
"""

from __future__ import annotations

import os
import struct
import sys
from _thread import RLock, allocate_lock
from time import time_ns

# The engine's clock. Before Python 3.13, time.monotonic of Windows is another, which ticks every 16 ms.
if sys.platform == "win32":
    from time import perf_counter_ns as _clock
else:
    from time import monotonic_ns as _clock

monotonic_ns = _clock

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Optional

HEADER_BYTES = 4096
RING_BYTES = 256 * 1024
ROLE_AGENT = 1
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS = 0x01, 0x02, 0x20
STATE_OPEN, STATE_CLOSED, STATE_GAVE_UP = 1, 2, 3
JSON, EDGE, COUNTERS, STEP = 1, 2, 3, 4
MAX_JSON = 48 * 1024  # bytes: a longer object is left out and counted
LOCK_SECONDS = 0.01
ELSEWHERE = ("darwin", "win32")  # systems without /proc
MAX_REENTERED = 1000  # records refused in a row before a lock counts as lost

# Indexes of 8-byte words in the header.
_RING, _HEAD, _DROPPED, _DROPPED_BYTES, _STATE, _TAIL = 4, 8, 9, 10, 11, 16
CONTROL_SEQ, _STOP, _SNAPSHOT, _INTERVAL, _SCAN, _WAITING, _WORD = 24, 25, 26, 27, 29, 31, 32
_WHOLE_TIME, _LEAST_TIME = 65536, 4096  # the unit of waiting, and what of it a program is believed to run

_IDENTITY = struct.Struct("=QIIIIQQQQQ")  # magic … flags
_MAGIC = 0x31304E4148435448
_RECORD = struct.Struct("=IHHQ")
_JSON = struct.Struct("=IHHQI")
_EDGE = struct.Struct("=IHHQBBHIQqqq")
_STEP = struct.Struct("=IHHQQQqIIq")
_COUNTER = struct.Struct("=IIq")

ALERTS = 64  # that a process may ask for
ALERT_TAKEN, ALERT_REFUSED = 1, 2
_ALERT_STATE, _ALERT_COUNT, _ALERT_VALUE = 128, 192, 256
_USER = 9  # the phase of spans that the program names


class Channel:
    """A ring and its header. `pid` is the process that made it: only that one may write to it."""

    __slots__ = (
        "_busy", "_lock", "_reentered", "_tail", "head", "memory", "path", "pid", "ring", "ring_bytes", "words"
    )  # fmt: skip

    def __init__(self, memory: Any, pid: int, start: int, ring_bytes: int) -> None:
        """Lay the header out in fresh, zeroed memory of HEADER_BYTES + ring_bytes."""
        self.memory = memory  # the mapping's owner: a ctypes array or an mmap
        view = memoryview(memory).cast("B")
        self.words = view[:HEADER_BYTES].cast("Q")
        self.ring = view[HEADER_BYTES:]
        self.ring_bytes = ring_bytes
        self.pid = pid
        self.path = ""
        self.head = 0
        self._tail = 0
        self._lock = RLock()
        self._busy = False  # somebody is between _reserve and _release
        self._reentered = 0
        mono, wall = monotonic_ns(), time_ns()
        _IDENTITY.pack_into(view, 0, 0, 1, ROLE_AGENT, pid, HEADER_BYTES, start, ring_bytes, mono, wall, 0)
        self.words[_STATE] = STATE_OPEN
        self.words[0] = _MAGIC

    # What the engine wants of us.

    def control(self) -> int:
        """A number that changes whenever the engine changed one of the requests below."""
        return int(self.words[CONTROL_SEQ])

    def stop_at_step(self) -> int:
        """Steps after which to end the training; 0: never."""
        return int(self.words[_STOP])

    def snapshot_seq(self) -> int:
        """Bumped to ask for an allocator snapshot."""
        return int(self.words[_SNAPSHOT])

    def scan_seq(self) -> int:
        """Bumped to ask for a scan for growing containers."""
        return int(self.words[_SCAN])

    def interval_ns(self) -> int:
        """Sampling interval wanted; 0: the writer's default."""
        return int(self.words[_INTERVAL])

    def running(self) -> float:
        """The part of the last second, above 0 and at most 1, in which the process did not wait for a processor."""
        return max(_WHOLE_TIME - int(self.words[_WAITING]), _LEAST_TIME) / _WHOLE_TIME

    def alert_state(self, alert: int) -> int:
        """0: not answered yet, ALERT_TAKEN or ALERT_REFUSED."""
        return int(self.words[_ALERT_STATE + alert])

    def alert_count(self, alert: int) -> int:
        """How often it has sounded."""
        return int(self.words[_ALERT_COUNT + alert])

    def alert_value(self, alert: int) -> int:
        """What passed the limit when it last sounded, in the unit of its series."""
        value = int(self.words[_ALERT_VALUE + alert])
        return value - (1 << 64) if value >> 63 else value

    def kept(self) -> bool:
        """Whether all that was written so far is in the recording."""
        return int(self.words[_TAIL]) >= self.head

    # What we tell it.

    def set_word(self, word: int) -> None:
        """Publish HT_WORD(step, phase, module): what the training is doing now."""
        self.words[_WORD] = word

    def close(self) -> None:
        """Say that nothing will follow. The mapping stays: a late writer must not crash."""
        self.words[_STATE] = STATE_CLOSED

    def edge(
        self, phase: int, leave: int, module: int, tid: int, step: int, rss: int, allocated: int, reserved: int,
        now: int,
    ) -> None:  # fmt: skip
        """Record that a phase was entered or left at `now` (CLOCK_MONOTONIC, ns)."""
        at = self._reserve(56)
        if at >= 0:
            try:
                _EDGE.pack_into(
                    self.ring, at, 56, EDGE, 0, now, phase, leave, module, tid, step, rss, allocated, reserved
                )
                self._advance(56)
            finally:
                self._release()

    def step(self, step: int, duration: int, rss: int, micro: int, flags: int, allocated: int, now: int) -> None:
        """Record the end of an optimizer step."""
        at = self._reserve(56)
        if at >= 0:
            try:
                _STEP.pack_into(self.ring, at, 56, STEP, 0, now, step, duration, rss, micro, flags, allocated)
                self._advance(56)
            finally:
                self._release()

    def stay(
        self, number: int, name: int, leave: int, tid: int, step: int, rss: int, allocated: int, reserved: int,
        now: int,
    ) -> bool:  # fmt: skip
        """Record that a span of the program's own was entered or left; False where it had to be dropped.

        number: the same at both ends, and that of no other that is open. name: its id in a `spans` record.
        """
        lock = self._lock
        if self._busy or not lock.acquire(False):
            return self._slow_stay(number, name, leave, tid, step, rss, allocated, reserved, now)
        self._busy = True
        try:
            head = self.head
            at = head & (self.ring_bytes - 1)
            if at + 56 <= self.ring_bytes and head + 56 - self._tail <= self.ring_bytes:
                _EDGE.pack_into(
                    self.ring, at, 56, EDGE, number, now, _USER, leave, name, tid, step, rss, allocated, reserved
                )
                self.head = self.words[_HEAD] = head + 56
                return True
        finally:
            self._busy = False
            lock.release()
        return self._slow_stay(number, name, leave, tid, step, rss, allocated, reserved, now)

    def _slow_stay(
        self, number: int, name: int, leave: int, tid: int, step: int, rss: int, allocated: int, reserved: int,
        now: int,
    ) -> bool:  # fmt: skip
        """As `stay`, where somebody else writes, or the ring ends here or seems full."""
        at = self._reserve(56)
        if at < 0:
            return False
        try:
            _EDGE.pack_into(
                self.ring, at, 56, EDGE, number, now, _USER, leave, name, tid, step, rss, allocated, reserved
            )
            self._advance(56)
        finally:
            self._release()
        return True

    def quick_step(self, step: int, duration: int, micro: int, now: int) -> bool:
        """As `step` where nothing else is known of it, in one piece: it is done with cold caches at the end of nearly
        every step of a short loop. False where there is more to do, and nothing is done."""
        lock = self._lock
        if self._busy or not lock.acquire(False):
            return False
        self._busy = True
        try:
            head = self.head
            at = head & (self.ring_bytes - 1)
            if at + 56 > self.ring_bytes or head + 56 - self._tail > self.ring_bytes:
                return False
            _STEP.pack_into(self.ring, at, 56, STEP, 0, now, step, duration, -1, micro, 0, -1)
            self.head = self.words[_HEAD] = head + 56
            return True
        finally:
            self._busy = False
            lock.release()

    def counters(self, values: list[tuple[int, int]], now: int) -> None:
        """Record readings of announced series: (id, value) pairs of one moment."""
        size = 16 + 16 * len(values)
        at = self._reserve(size)
        if at >= 0:
            try:
                _RECORD.pack_into(self.ring, at, size, COUNTERS, len(values), now)
                for i, (series, value) in enumerate(values):
                    _COUNTER.pack_into(self.ring, at + 16 + 16 * i, series, 0, value)
                self._advance(size)
            finally:
                self._release()

    def json(self, text: bytes, now: int) -> bool:
        """Record a JSON object, UTF-8; False where it had to be dropped."""
        size = (20 + len(text) + 7) & ~7
        if len(text) > MAX_JSON:
            self._drop(size)
            return False
        at = self._reserve(size)
        if at < 0:
            return False
        try:
            _JSON.pack_into(self.ring, at, size, JSON, 0, now, len(text))
            self.ring[at + 20 : at + size] = text.ljust(size - 20, b"\0")
            self._advance(size)
        finally:
            self._release()
        return True

    def _reserve(self, size: int) -> int:
        """Take the lock and find `size` bytes in one piece: their offset, or -1 with nothing held."""
        lock = self._lock
        if (not lock.acquire(False) and not lock.acquire(True, LOCK_SECONDS)) or (self._busy and self._refused(lock)):
            self._drop(size)
            return -1
        self._busy = True
        head = self.head
        at = head & (self.ring_bytes - 1)
        pad = self.ring_bytes - at if at + size > self.ring_bytes else 0
        if head + pad + size - self._tail > self.ring_bytes:
            self._tail = min(int(self.words[_TAIL]), head)
            if head + pad + size - self._tail > self.ring_bytes:
                self._release()
                self._drop(size)
                return -1
        if pad:
            self.ring[at : at + 8] = pad.to_bytes(8, "little")  # HT_PAD is 0
            self.head = head + pad
            at = 0
        return at

    def _refused(self, lock: Any) -> bool:
        """This very thread is writing already: a signal handler came in between. Lets go of the lock.

        Or else an earlier handler raised right after the lock was taken: after enough refusals that is
        what it must be, and the lock is made anew.
        """
        lock.release()
        self._reentered += 1
        if self._reentered < MAX_REENTERED:
            return True
        self._lock, self._reentered = RLock(), 0
        return not self._lock.acquire(False)

    def _advance(self, size: int) -> None:
        self.head += size
        self.words[_HEAD] = self.head

    def _release(self) -> None:
        self._busy = False
        self._lock.release()

    def _drop(self, size: int) -> None:
        self.words[_DROPPED] += 1
        self.words[_DROPPED_BYTES] += size


class Ordered(Channel):
    """A channel on a processor that may show its stores to another one in any order, as Arm's do: a record is seen
    whole before the head that counts it, and a request before what it asks for is read."""

    __slots__ = ("_fence",)

    def __init__(self, memory: Any, pid: int, start: int, ring_bytes: int) -> None:
        self._fence = allocate_lock()
        self._fence.acquire()
        super().__init__(memory, pid, start, ring_bytes)

    def control(self) -> int:
        seq = super().control()
        self._order()
        return seq

    def close(self) -> None:
        self._order()
        super().close()

    def quick_step(self, step: int, duration: int, micro: int, now: int) -> bool:
        self.step(step, duration, -1, micro, 0, -1, now)
        return True

    def stay(
        self, number: int, name: int, leave: int, tid: int, step: int, rss: int, allocated: int, reserved: int,
        now: int,
    ) -> bool:  # fmt: skip
        return self._slow_stay(number, name, leave, tid, step, rss, allocated, reserved, now)

    def _advance(self, size: int) -> None:
        self._order()
        super()._advance(size)

    def _order(self) -> None:
        """What is above happens before what is below. Giving a lock back is a release and taking one an acquire, which
        no processor swaps when they follow each other so."""
        fence = self._fence
        fence.acquire(False)  # it is ours already, but where an exception came between the next two
        try:
            fence.release()
        except RuntimeError:  # another thread was here at the same time, and so has ordered
            pass
        fence.acquire(False)


def _processor() -> str:
    return os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")


# Of x86-64 every processor sees the stores of another in their order.
_KIND = Channel if _processor() in ("x86_64", "AMD64") else Ordered


def process_start(pid: int) -> int:
    """Field 22 of /proc/PID/stat: clock ticks from boot to the start of the process; 0 where there is no /proc.

    Read of its first thread: an emulator of another processor answers for a process's own file, and differently.
    """
    if sys.platform in ELSEWHERE:  # the engine goes by the number alone
        return 0
    with open("/proc/%d/task/%d/stat" % (pid, pid), "rb", buffering=0) as stat:
        return int(stat.read().rpartition(b")")[2].split()[19])


def create(folder: str, ring_bytes: int = RING_BYTES) -> Channel:
    """Make this process's channel in `folder`.

    Raises:
        OSError: the folder is gone, read-only or full.
    """
    pid = os.getpid()
    start = process_start(pid)
    base = os.path.join(folder, "agent-%d-%d" % (pid, start))
    final, n = base + ".ring", 1
    while os.path.lexists(final):  # from before an exec: same process, other program
        n += 1
        final = "%s-%d.ring" % (base, n)
    windows = sys.platform == "win32"
    fresh = final if windows else final + ".new"  # there no file is renamed that is open: a reader waits for the magic
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    fd = os.open(fresh, flags, 0o600)
    try:
        _reserve_room(fd, HEADER_BYTES + ring_bytes)
        memory = _map(fd, HEADER_BYTES + ring_bytes)
        channel = _KIND(memory, pid, start, ring_bytes)
        if not windows:
            os.rename(fresh, final)
    except BaseException:
        os.unlink(fresh)
        raise
    finally:
        os.close(fd)
    channel.path = final
    return channel


def _reserve_room(fd: int, size: int) -> None:
    """Give the file its size and, where the system can, its room on the disk: a write into a mapping cannot fail."""
    if hasattr(os, "fchmod"):
        os.fchmod(fd, 0o600)  # whatever the umask says
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        os.ftruncate(fd, size)


def _map(fd: int, size: int) -> Any:
    """Map the file shared, for as long as the process lives."""
    try:
        import ctypes

        usable = sys.platform != "win32"
    except ImportError:
        usable = False
    if not usable:
        import mmap

        return mmap.mmap(fd, size)
    address = mapped(fd, size, MAP_SHARED)
    return (ctypes.c_char * size).from_address(address)


def mapped(fd: int, size: int, flags: int) -> int:
    """Map memory to read and write; its address. Raises OSError; ImportError without ctypes."""
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address = call(None, size, 3, flags, fd, 0)  # PROT_READ | PROT_WRITE
    if address is None or address == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(address)


def heap_word() -> Optional[Any]:
    """The heap library's word as a memoryview of one 8-byte cell; None where it is not loaded.

    Ask again after a fork: the child's library has a channel of its own.
    """
    try:
        import ctypes

        find = ctypes.CDLL(None).hightide_heap_word
    except (ImportError, OSError, AttributeError, TypeError):  # the last: on Windows
        return None
    find.restype = ctypes.c_void_p
    address = find()
    if not address:
        return None
    return memoryview((ctypes.c_char * 8).from_address(address)).cast("B").cast("Q")
