"""JAX on imaginary GPUs: real, unmodified JAX and XLA, whose kernels compute nothing.

    install (with jax)   visible ─▶ JAX looks for its GPUs   calls ─▶ steps   steady ─▶ peak, limit, and the end
                         held ─▶ what held the peak: dumps ─▶ temporaries by line, purposes ─▶ what arguments are for
                         failures ─▶ calls that found no memory    switches ─▶ what-ifs
                         reads ─▶ numbers that decide something     asides ─▶ evaluations and checkpoints between steps
                         tuning ─▶ whether kernels are tried out

XLA compiles for the imaginary GPU as for any; its allocator is real, too. Each part is installed for itself.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from ...training import Training


def install(training: Training, jax: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """With jax just imported."""
    from .. import copies
    from ..goals import Goals
    from ..ledger import Ledger
    from ..parts import part
    from . import reads, switches
    from .asides import Asides
    from .calls import Calls
    from .dumps import Dumps
    from .held import Held
    from .purposes import Gradients
    from .steady import Steady
    from .tuning import Tuning

    agent = training.agent
    if copies.asked():  # XLA's threads cannot be forked: the engine starts each trial by itself
        agent.fact("no copies", "JAX runs threads of its own")
        agent.bye()
        os._exit(0)
    part(agent, "visible devices", _visible)
    ledger = Ledger(agent)
    dumps, gradients = Dumps(agent), Gradients(agent)
    goals = Goals(training)
    asides = Asides(agent, goals)
    part(agent, "goals", lambda: goals.install(watch))
    part(agent, "evaluations and checkpoints", lambda: asides.install(watch))
    calls = Calls(training, Held(agent, dumps, gradients), asides)
    part(agent, "calls of compiled functions", lambda: watch("jax._src.interpreters.pxla", calls.install))
    part(agent, "calls of compiled functions", lambda: watch("jax._src.pjit", calls.slowly))
    part(agent, "programs of XLA", lambda: watch("jax._src.interpreters.pxla", dumps.install))
    part(agent, "trials of kernels", lambda: watch("jax._src.compiler", Tuning(agent).install))
    part(agent, "gradients", lambda: watch("jax._src.api", gradients.install))
    part(agent, "peak and end", lambda: Steady(training, ledger, calls, goals).install(training))
    part(agent, "switches", lambda: switches.install(agent, jax, watch))
    part(agent, "numbers read", lambda: watch("jax._src.array", reads.install(ledger)))


def _visible() -> None:
    """JAX looks for device files of NVIDIA's driver before it loads its plugin for CUDA."""
    from jax._src import hardware_utils

    if hasattr(hardware_utils, "has_visible_nvidia_gpu"):
        hardware_utils.has_visible_nvidia_gpu = lambda: True
