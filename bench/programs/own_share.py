"""The agent's part of a training's processor time: own_share.py NAME BATCH STEPS, one of trainings.py, within a run with a plan.

Steps after the first five are profiled by cProfile, whose clock is that of the process's processor time. Python functions in the
agent's files count with their own time, and so do built-in functions that these call. The profiler adds to each call, of which the
agent's are small: what it says is too high rather than too low.
"""

from __future__ import annotations

import cProfile
import itertools
import json
import pstats
import sys
import time

import torch
import trainings

WARM = 5


def share(stats: dict, *folders: str) -> float:
    """Seconds in functions of files in these folders, and in built-in ones that they call."""

    def inside(function: tuple[str, int, str]) -> bool:
        return any(folder in function[0] for folder in folders)

    seconds = 0.0
    for function, (_, _, own, _, callers) in stats.items():
        if inside(function):
            seconds += own
        elif function[0] == "~":
            seconds += sum(of_caller[2] for caller, of_caller in callers.items() if inside(caller))
    return seconds


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    steps = iter(trainings.TRAININGS[sys.argv[1]](int(sys.argv[2])))
    for _ in itertools.islice(steps, WARM):
        pass
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for _ in itertools.islice(steps, int(sys.argv[3])):
        pass
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    print(json.dumps({"cpu_seconds": total, "agent": share(stats, "/hightide_agent/") / total,
                      "levers": share(stats, "/hightide_agent/levers/") / total}))  # fmt: skip
