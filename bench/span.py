"""What a span costs: nothing recorded, recorded in full, and counted. Run it as it is, and under `hightide run`.

    PYTHONPATH=agent/python/src python3 bench/span.py
    PYTHONPATH=agent/python/src bin/hightide run -q -- python3 bench/span.py

Microseconds a call, the best of several rounds, the empty loop taken off.
"""

import sys
import time
from typing import Callable

import hightide

ROUNDS, CALLS = 9, 400  # few enough that all of a round are within what may be recorded in full


def empty(n: int) -> None:
    for _ in range(n):
        pass


def spans(n: int) -> None:
    for _ in range(n):
        with hightide.span("encode"):
            pass


@hightide.profile
def nothing() -> None:
    pass


def plain() -> None:
    pass


def calls(n: int) -> None:
    for _ in range(n):
        nothing()


def plain_calls(n: int) -> None:
    for _ in range(n):
        plain()


def best(of: Callable[[int], None], base: Callable[[int], None], n: int, pause: float) -> float:
    times = []
    for _ in range(ROUNDS):
        time.sleep(pause)
        a = time.perf_counter_ns()
        of(n)
        b = time.perf_counter_ns()
        base(n)
        c = time.perf_counter_ns()
        times.append(((b - a) - (c - b)) / n / 1000)
    return min(times)


def main() -> None:
    recorded = "hightide_agent" in sys.modules
    spans(10)
    nothing()
    pause = 0.4 if recorded else 0.0
    print(f"{'recorded' if recorded else 'not recorded'}:")
    print(f"  span     {best(spans, empty, CALLS, pause):5.2f} µs")
    print(f"  profile  {best(calls, plain_calls, CALLS, pause):5.2f} µs")
    if recorded:
        print(f"  span, only counted  {best(spans, empty, 200_000, 0.0):5.2f} µs")


if __name__ == "__main__":
    main()
