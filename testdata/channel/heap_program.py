"""What heap.ring records. Run by heap.py under the heap library; not meant to be run alone.

Lines that allocate carry a comment that names them; heap.py checks that the recording blames them.
_thread, not threading: no file of the standard library shall be named in the recording.
"""

import _thread
import mmap
import posix

MIB = 1 << 20
kept = []


def plain():
    kept.append(bytearray(5 * MIB))  # at plain


def generate():
    yield bytearray(6 * MIB)  # at generator


def deep(levels):
    if levels:
        return deep(levels - 1)
    return bytearray(7 * MIB)  # at deep


def passing():
    bytearray(4 * MIB)  # at passing


class Größe:
    def wachsen(self):
        self.daten = bytearray(8 * MIB)  # at method


def thread(done):
    kept.append(bytearray(9 * MIB))  # at thread
    done.release()


plain()
kept.extend(generate())
kept.append(deep(100))
passing()
größe = Größe()
größe.wachsen()
lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(thread, (lock,))
lock.acquire()
mapping = mmap.mmap(-1, 12 * MIB)  # at mapping
mapping.resize(10 * MIB)  # at resized
kept.extend([bytes([i % 251]) * 40_000 for i in range(200)])  # at small
del kept[0]
posix._exit(0)  # no teardown: what was kept stays alive in the recording
