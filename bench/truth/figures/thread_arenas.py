"""Six threads with many blocks of 2 KiB, each in an arena of its own."""

import threading

from kernel import mark

held = []


def work():
    held.append([bytearray(2048) for _ in range(15_000)])


threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
mark()
