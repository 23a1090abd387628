"""200 MiB of POSIX shared memory in one process."""

from multiprocessing import shared_memory

from kernel import MiB, mark

block = shared_memory.SharedMemory(create=True, size=200 * MiB)
for i in range(0, 200 * MiB, 4096):
    block.buf[i] = 1
mark()
block.close()
block.unlink()
