"""transformers' generate(): its loop asks the device whether every sequence has ended, and no kernel answers.

The length alone decides then: the full length that was asked for, or the fraction of it that the policy for
data-dependent sizes says.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict

from .ledger import Ledger
from .undecided import policy

UNLIMITED = 256  # new tokens where nothing limits the length


def install(ledger: Ledger) -> Callable[[Any], None]:
    """Wrap the loop's two questions once transformers.generation.utils has been imported."""
    name, fraction = policy()
    state: Dict[str, Any] = {"list": None, "start": 0, "done": False}

    def installed(module: Any) -> None:
        criteria, mixin = module.StoppingCriteriaList, module.GenerationMixin
        asking, going_on = criteria.__call__, mixin._has_unfinished_sequences

        @functools.wraps(asking)
        def __call__(self: Any, input_ids: Any, *args: Any, **kwargs: Any) -> Any:
            if input_ids.is_cuda:
                length = input_ids.shape[1]
                if state["list"] is not self:
                    state.update(list=self, start=length - 1)
                limit = self.max_length or state["start"] + UNLIMITED
                state["done"] = length >= max(
                    state["start"] + 1, int(state["start"] + fraction * (limit - state["start"]))
                )
                if state["done"]:
                    ledger.at_line("policy", "generate", 1, ("elements",), policy=name, elements=length)
            return asking(self, input_ids, *args, **kwargs)

        @functools.wraps(going_on)
        def _has_unfinished_sequences(self: Any, this_peer_finished: Any, *args: Any, **kwargs: Any) -> Any:
            if state["list"] is None:
                return going_on(self, this_peer_finished, *args, **kwargs)
            if state["done"]:
                state.update(list=None, done=False)
                return False
            return True

        criteria.__call__ = __call__
        mixin._has_unfinished_sequences = _has_unfinished_sequences

    return installed
