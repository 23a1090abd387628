"""Levers: changes to a training that save memory, made in the unmodified program where its model trains first.

    HIGHTIDE_PLAN ─▶ Plan ─▶ first training call ─▶ Found: model, blocks, optimizers
                                                        │
              every lever's prepare(found, settings) ◀──┘   one that must not be used here raises Refused, and the
                                 │                          program ends before its first step
                                 └─▶ all are applied, or none

A lever is a module of this package. Its docstring says what it does, whether numbers stay the same bit for bit, what it
costs and when it is refused. Its `prepare` looks, changes nothing, and returns a function that applies it and says in
words what it did. To add one: write the file, and put its name in this list and in internal/levers. Levers of JAX are
in force before anything is traced (of_jax.py).
"""

from __future__ import annotations

import os

LEVERS = (
    "fsdp",  # parameters, gradients and states over several processes: numbers change; before all that looks at them
    "lora",  # adapters are trained in place of the weights: numbers change; first, as it changes what others look at
    "checkpoint",  # blocks whose activations are computed again in the backward pass
    "offload",  # saved activations in pinned memory of the host
    "foreach",  # the optimizer updates one parameter after the other
    "set_to_none",  # gradients are let go instead of zeroed
    "step_in_backward",  # a parameter is updated once its gradient is there
    "states_8bit",  # the optimizer's state in 8 bits, by bitsandbytes: numbers change
    "states_on_host",  # the optimizer's state in pinned memory of the host; after step_in_backward, whose hook is first
    "compile_budget",  # what torch.compile may keep for the backward pass
    "shared_data",  # one copy of a data set's arrays for all workers of a loader
    "loader_ahead",  # one batch ahead for each worker, none in pinned memory
    "loader_workers",  # fewer workers
    "micro_batch",  # each batch of a trainer in parts: numbers change
    "chunked_loss",  # cross entropy over some rows at a time: numbers change
    "bf16",  # autocast to bfloat16: numbers change
)

OF_JAX = (
    "donate",  # arguments that a result replaces are given to it
    "remat",  # what is repeated is computed again in the backward pass
)


def wanted() -> bool:
    """Whether this process is to be changed, or what its blocks take is to be recorded."""
    return any(os.environ.get(name) for name in ("HIGHTIDE_PLAN", "HIGHTIDE_BLOCKS", "HIGHTIDE_COUNTED"))
