"""Cross entropy over some rows at a time, so that no second tensor of the size of the logits is alive.

PyTorch's own keeps the logarithms of all probabilities for the backward pass, and makes their gradient beside that of
the logits. Here the sums of rows are kept, and the gradient is made row by row. Numbers change: the loss is summed in
another order. It costs launches of kernels, a few for every 64 MiB of logits. Calls with weights of classes, smoothed
labels, probabilities as targets or no reduction stay as they are. It is refused where the model is compiled. A second
derivative of the loss cannot be made.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict

from .found import Found, Refused

LEAST = 1 << 20  # bytes of logits: below, there is nothing to save
CHUNK = 64 << 20  # bytes of logits, as numbers of 32 bits, that are worked on at a time


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned takes torch.nn.functional.cross_entropy, which the modules of PyTorch and transformers call."""
    torch = found.torch
    if found.compiled:
        raise Refused("%s is compiled" % found.name)

    def apply() -> str:
        functional, kind = torch.nn.functional, _function(torch)
        plain = functional.cross_entropy
        told: Any = []

        @functools.wraps(plain)
        def cross_entropy(
            input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
            reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
        ) -> Any:  # fmt: skip
            other = (weight, size_average, reduce) != (None, None, None) or label_smoothing
            if other or reduction not in ("mean", "sum") or not _taken(torch, input, target):
                return plain(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
            if not told:
                told.append(found.agent.fact("lever chunked_loss", "a loss over %d classes" % input.shape[1]))
            return kind.apply(input, target, ignore_index, reduction)

        functional.cross_entropy = cross_entropy
        return "no cross entropy was computed"  # so far: the first one tells

    return apply


def _taken(torch: Any, input: Any, target: Any) -> bool:
    large = input.dim() == 2 and input.numel() * input.element_size() >= LEAST and input.is_floating_point()
    return bool(large and input.requires_grad and target.dtype is torch.int64 and target.shape == input.shape[:1])


def _function(torch: Any) -> Any:
    from torch.autograd.function import once_differentiable

    def chunks(logits: Any) -> Any:
        rows = max(1, CHUNK // (4 * logits.shape[1]))
        return [slice(begin, begin + rows) for begin in range(0, logits.shape[0], rows)]

    class ChunkedLoss(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, logits: Any, target: Any, ignored: int, reduction: str) -> Any:
            counted = target != ignored
            sums = torch.empty(target.shape, dtype=torch.float32, device=logits.device)
            losses = torch.empty_like(sums)
            for rows in chunks(logits):
                some = logits[rows].float()
                sums[rows] = some.logsumexp(1)
                picked = some.gather(1, target[rows].where(counted[rows], 0).unsqueeze(1)).squeeze(1)
                losses[rows] = (sums[rows] - picked).where(counted[rows], 0)
                del some
            total = counted.sum() if reduction == "mean" else None
            ctx.save_for_backward(logits, target, counted, sums, total)
            loss = losses.sum() if total is None else losses.sum() / total
            return loss if torch.is_autocast_enabled() else loss.to(logits.dtype)

        @staticmethod
        @once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, gradient: Any) -> Any:
            logits, target, counted, sums, total = ctx.saved_tensors
            scale = gradient.float() if total is None else gradient.float() / total
            made = torch.empty_like(logits)
            for rows in chunks(logits):
                some = logits[rows].float().sub_(sums[rows].unsqueeze(1)).exp_()
                known = target[rows].where(counted[rows], 0).unsqueeze(1)
                some.scatter_add_(1, known, torch.full_like(known, -1, dtype=some.dtype))
                made[rows] = some.mul_((scale * counted[rows]).unsqueeze(1))
                del some
            return made, None, None, None

    return ChunkedLoss
