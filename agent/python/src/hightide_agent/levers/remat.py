"""What a program of JAX repeats is computed again in the backward pass, not kept: jax.checkpoint around it.

Around each module of Flax linen, Flax nnx, Equinox or Haiku that stands beside others of its class and has modules in
it, and around the body of each jax.lax.scan (xla/again.py). All of them, or none.
Numbers: as far as XLA's kernels round alike; what is drawn at random stays, as keys are arguments.
Costs: a second forward pass of these.
Refused: where the program takes a gradient and has none of them.
"""

from __future__ import annotations

from typing import Any, Callable

NONE = (
    "nothing of the program is repeated that can be computed again, no layers of Flax, Equinox or Haiku and no "
    "jax.lax.scan; jax.checkpoint around a part of its loss does so by hand"
)


def install(jax: Any, watch: Callable[[str, Callable[[Any], None]], None], told: Callable[[str], None]) -> None:
    """For all that is traced from here on."""
    from ..xla import again

    again.install(jax, watch, told)
