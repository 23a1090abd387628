"""Eight threads that take 40 MiB each."""

import threading

from kernel import MiB, mark

held = []
threads = [threading.Thread(target=lambda: held.append(b"x" * (40 * MiB))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
mark()
