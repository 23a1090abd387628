"""TensorFlow on imaginary GPUs: the real, unmodified one, whose kernels compute nothing.

    install (with tensorflow)   libraries ─▶ what it looks for before it registers a GPU
                                steady ─▶ peak, limit, and the end
                                profile ─▶ what held the peak: lines ─▶ of which line an operation is
                                programs ─▶ what is in the block of a function that XLA compiled
                                variables ─▶ what it was for
                                reads ─▶ numbers that decide something
                                datasets ─▶ arrays that tf.data is made of
                                xla/tuning ─▶ whether XLA tries out kernels

Steps are told by the adapters of TensorFlow and Keras. Each part is installed for itself.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from ...training import Training


def install(training: Training, tensorflow: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """With tensorflow just imported."""
    from .. import copies
    from ..goals import Goals
    from ..ledger import Ledger
    from ..parts import part
    from ..xla.tuning import Tuning
    from . import libraries, reads
    from .datasets import Datasets
    from .lines import Lines
    from .profile import Profile
    from .programs import Programs
    from .steady import Steady

    agent = training.agent
    if copies.asked():  # its threads cannot be forked: the engine starts each trial by itself
        agent.fact("no copies", "TensorFlow runs threads of its own")
        agent.bye()
        os._exit(0)
    ledger = Ledger(agent)
    part(agent, "libraries", lambda: libraries.install(agent, tensorflow))
    part(agent, "trials of kernels", Tuning(agent).by_variable)
    lines = Lines(agent, sys.modules["tensorflow.python.framework.func_graph"])
    profile, programs = Profile(agent, lines), Programs(agent, lines)
    part(agent, "programs of XLA", programs.install)
    part(agent, "profile", lambda: profile.install(sys.modules["tensorflow.python.eager.context"]))
    goals = Goals(training)
    part(agent, "goals", lambda: goals.install(watch))
    part(
        agent,
        "peak and end",
        lambda: Steady(training, ledger, tensorflow, (profile, programs), goals).install(training),
    )
    part(agent, "numbers read", lambda: reads.install(ledger, tensorflow))
    part(agent, "datasets", Datasets(agent, tensorflow).install)
