"""Maps a file of 300 MiB and reads all of it."""

import mmap
import tempfile

from kernel import MiB, mark

with tempfile.TemporaryFile() as file:
    for _ in range(300):
        file.write(b"x" * MiB)
    file.flush()
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    total = sum(view[i] for i in range(0, len(view), 4096))
    mark()
