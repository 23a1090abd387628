"""TensorFlow on imaginary GPUs: the real, unmodified one, whose kernels compute nothing.

    install (with tensorflow)   libraries ─▶ what it looks for before it registers a GPU
                                steady ─▶ peak, limit, and the end
                                reads ─▶ numbers that decide something

Steps are told by the adapters of TensorFlow and Keras. Each part is installed for itself.
"""

from __future__ import annotations

import os
from typing import Any

from ...training import Training


def install(training: Training, tensorflow: Any) -> None:
    """With tensorflow just imported."""
    from .. import copies
    from ..ledger import Ledger
    from ..parts import part
    from . import libraries, reads
    from .steady import Steady

    agent = training.agent
    if copies.asked():  # its threads cannot be forked: the engine starts each trial by itself
        agent.fact("no copies", "TensorFlow runs threads of its own")
        agent.bye()
        os._exit(0)
    ledger = Ledger(agent)
    part(agent, "libraries", lambda: libraries.install(agent, tensorflow))
    part(agent, "peak and end", lambda: Steady(training, ledger, tensorflow).install(training))
    part(agent, "numbers read", lambda: reads.install(ledger, tensorflow))
