"""Optimizers: PyTorch's hooks around their steps, and which steps a gradient scaler skips.

A step that the scaler skips is counted and flagged. A fused optimizer looks itself whether the scaler found inf or
nan. On the host we look with it. On a device the answer comes later: it is copied to the host without waiting for
it, and skipped steps are told as a count once it is there.
"""

from __future__ import annotations

import functools
from typing import Any, Optional

from ..tracker import SKIPPED
from ..training import Training


class Answers:
    """Whether the scaler found inf or nan, on its way from the device: no wait, and no memory of the device's."""

    ROOM = 64  # steps that the host may be ahead; those beyond are not asked about

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.host: Any = None
        self.asked: list[tuple[int, Any]] = []  # place in host, event behind the copy
        self.next = 0

    def ask(self, found: Any) -> None:
        cuda = self.torch.cuda
        if len(self.asked) >= self.ROOM or cuda.is_current_stream_capturing():
            return
        if self.host is None:
            self.host = self.torch.zeros(self.ROOM, dtype=found.dtype, pin_memory=True)
        place = self.next % self.ROOM
        self.next += 1
        self.host[place].copy_(found.reshape(()), non_blocking=True)
        behind = cuda.Event()
        behind.record(cuda.current_stream(found.device))
        self.asked.append((place, behind))

    def answered(self) -> int:
        """How many of those that have arrived were skipped."""
        skipped = 0
        while self.asked and self.asked[0][1].query():
            skipped += bool(self.host[self.asked.pop(0)[0]].item())
        return skipped


class Optimizers:
    """Hooks on all optimizers of the process."""

    def __init__(self, training: Training, torch: Any) -> None:
        self.agent = training.agent
        self.steps = training.steps
        self.quick = training.tracker.quick
        compiler = getattr(torch, "compiler", None)
        self._compiler = compiler if hasattr(compiler, "is_compiling") else None
        self._answers: Optional[Answers] = Answers(torch)
        self.agent.on_renew.append(self.forget)
        self.agent.at_end.append(self._tell_skipped)

    def forget(self) -> None:
        """In a forked child, which has no device of its parent's."""
        if not self.agent.moving:
            self._answers = None

    def install(self, module: Any) -> None:
        """Set the hooks that all optimizers share."""
        quick, steps, compiling, flags = self.quick, self.steps, self._compiling, self._flags

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not quick.lead and not compiling():
                steps.begin(optimizer)

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not (quick.lead and quick.lead == id(optimizer) and quick.count()) and not compiling():
                steps.end(optimizer, flags)

        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)

    def install_scaler(self, module: Any) -> None:
        """Notice steps that a GradScaler skips."""
        scaler = module.GradScaler
        if "step" not in scaler.__dict__:  # a newer torch: the one that it inherits is wrapped
            return
        original, steps = scaler.step, self.steps

        @functools.wraps(original)
        def step(scaler: Any, /, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            begun = steps.begun
            self.quick.lead = 0  # it may be skipped, or the optimizer told whether to step
            result = original(scaler, optimizer, *args, **kwargs)
            if steps.begun == begun and not self._compiling():
                steps.skipped(optimizer)
            return result

        scaler.step = step

    def _compiling(self) -> bool:
        return self._compiler is not None and self._compiler.is_compiling()

    def _flags(self, optimizer: Any) -> int:
        """The flags of a step whose optimizer was told what the scaler found and stepped, or not, by itself."""
        found = getattr(optimizer, "found_inf", None)
        if found is None:
            return 0
        try:
            if found.device.type == "cpu":
                return SKIPPED if found.item() else 0
            if found.device.type == "cuda" and self._answers is not None:
                self._answers.ask(found)
                self._tell_skipped()
        except Exception as error:
            self._answers = None
            self.agent.log("could not see which steps the scaler skips", error)
        return 0

    def _tell_skipped(self) -> None:
        skipped = 0 if self._answers is None else self._answers.answered()
        if skipped:
            self.agent.record({"type": "skipped", "count": skipped})
