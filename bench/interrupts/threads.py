"""Threads that end when the main thread tells them to."""

import threading

stop = threading.Event()


def work() -> None:
    while not stop.is_set():
        sum(range(10_000))
        stop.wait(0.001)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
try:
    for thread in threads:
        thread.join()
finally:
    stop.set()
