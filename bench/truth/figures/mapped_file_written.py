"""A private mapping of a file, 100 of 200 MiB written."""

import mmap
import tempfile

from kernel import MiB, mark

with tempfile.TemporaryFile() as file:
    file.truncate(200 * MiB)
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    for i in range(0, 100 * MiB, 4096):
        view[i] = 1
    mark()
