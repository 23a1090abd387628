"""transformers' generate(): its loop asks the device whether every sequence has ended, and no kernel answers.

The length alone decides then: the full length that was asked for, or the fraction of it that the policy for
data-dependent sizes says. The tokens that come of it end no sequence before, as programs cut answers behind the first
token that does.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Set

from .ledger import Ledger
from .undecided import policy

UNLIMITED = 256  # new tokens where nothing limits the length


def install(ledger: Ledger, torch: Any, truth: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Wrap the loop's two questions, and its result, once transformers.generation.utils has been imported. truth says
    what a tensor is known to hold, on the host."""
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

        check = getattr(module, "StopCheck", None)  # since transformers 5.23 the loop asks by it
        if check is not None:
            check.__call__ = _stopping(check.__call__, state)
        sampling = getattr(mixin, "_sample", None)
        if sampling is not None:
            mixin._sample = _told(sampling, torch, truth, ledger)
        criteria.__call__ = __call__
        mixin._has_unfinished_sequences = _has_unfinished_sequences

    return installed


def _stopping(asking: Callable[..., Any], state: Dict[str, Any]) -> Callable[..., Any]:
    """Whether the loop stops, by the length alone."""

    @functools.wraps(asking)
    def __call__(self: Any, unfinished_sequences: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
        if not unfinished_sequences.is_cuda or state["list"] is None:
            return asking(self, unfinished_sequences, tokens, *args, **kwargs)
        if self.streamer is not None:
            self.streamer.put(tokens.cpu())
        return state["done"]

    return __call__


def _told(sampling: Callable[..., Any], torch: Any, truth: Callable[[Any], Any], ledger: Ledger) -> Callable[..., Any]:
    """The loop, whose result is a prompt that is known and tokens that do not end a sequence."""

    @functools.wraps(sampling)
    def _sample(self: Any, input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        before = truth(input_ids) if input_ids.is_cuda else None
        prompt = None if before is None else before.clone()
        result = sampling(self, input_ids, *args, **kwargs)
        try:
            made = getattr(result, "sequences", result)
            config = kwargs.get("generation_config") or next((a for a in args if hasattr(a, "eos_token_id")), None)
            if prompt is not None and config is not None:
                known = torch.full(made.shape, _other_token(config), dtype=made.dtype)
                known[:, : prompt.shape[1]] = prompt
                made.copy_(known)
        except Exception as error:
            ledger.agent.log("could not say which tokens were generated", error)
        return result

    return _sample


def _other_token(config: Any) -> int:
    """The number of a token that neither ends nor fills a sequence."""
    special: Set[int] = set()
    for name in ("eos_token_id", "pad_token_id", "bos_token_id"):
        number = getattr(config, name, None)
        special.update(number if isinstance(number, (list, tuple)) else [] if number is None else [int(number)])
    return next(n for n in range(len(special) + 1) if n not in special)
