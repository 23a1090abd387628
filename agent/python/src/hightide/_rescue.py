"""hightide.rescue: a training step that is out of memory is done again in micro-batches.

    step(batch): forward and backward pass ─▶ out of memory ─▶ gradients as before, caches given back
                                                                       │
         the batch cut along its first axis into 2, 4, … parts, the loss of each weighted by its share ◀┘

Gradients add up to those of the whole batch, within the rounding of the sum. What a part alone decides is not as it
would be: running statistics of a batch norm, dropout's draw. The number of parts is kept for the steps that follow.
It needs no engine; under one, each rescue is an event of the recording. `run --rescue` has the agent load this file.
"""

from __future__ import annotations

import functools
import gc
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

MOST_PARTS = 1 << 16
_SHORT = "out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED"


def rescue(step: Optional[Callable[..., Any]] = None, *, model: Any = None, mean: bool = True) -> Any:
    """Return a step function that does a step again in micro-batches where memory runs out. Also a decorator.

        @hightide.rescue
        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        for x, y in loader:
            step(x, y)
            optimizer.step()
            optimizer.zero_grad()

    The batch is cut along the first axis of its tensors, into 2, 4, … parts until it fits; the number is kept for the
    steps that follow, and is the attribute `parts`. Gradients equal those of the whole batch within the rounding of the
    sum. That needs a loss that is a mean or a sum over the samples; batch norm sees the parts alone.

    Args:
        step: does the forward and the backward pass of the batch that it is given, and no step of an optimizer.
        model: whose gradients it makes, or several in a list. Absent: the modules that `step` names.
        mean: the loss is a mean over the samples; False: a sum.
    Raises:
        ValueError: no module was found among what `step` names.
        Exception: the step's own; an error for lack of memory where a batch of one sample does not fit, or where the
            step had already added to gradients that were there before it, or where other ranks take part.
    """
    if step is None:
        return functools.partial(rescue, model=model, mean=mean)
    models = _named(step) if model is None else list(model) if isinstance(model, (list, tuple)) else [model]
    if not models:
        raise ValueError("no module is named in the step function: rescue(step, model=model)")
    return functools.wraps(step)(Rescued(step, models, mean, _told))


def _named(step: Callable[..., Any]) -> List[Any]:
    """Modules that a function names: in its closure, its globals, its object."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    function = getattr(step, "__func__", step)
    code = getattr(function, "__code__", None)
    found = [vars(step.__self__)[name] for name in vars(step.__self__)] if hasattr(step, "__self__") else []
    if code is not None:
        found += [cell.cell_contents for cell in function.__closure__ or () if cell.cell_contents is not None]
        found += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return [value for value in found if isinstance(value, torch.nn.Module)]


def _told(record: Any) -> None:
    """One line on standard error, and an event of the recording."""
    from . import _engine

    _engine.say(f"out of memory: the step was done again in {record['count']} parts, as those after it will be")
    sdk = _engine.agent()
    if sdk is not None:
        sdk.rescued(record)


class Rescued:
    """A step function that is rescued. `parts` is into how many its batches are cut."""

    def __init__(self, step: Any, models: List[Any], mean: bool, told: Callable[[Dict[str, Any]], None]) -> None:
        self.step = step
        self.models = models
        self.mean = mean
        self.told = told
        self.parts = 1

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do the step, in as many parts as it takes."""
        short: Dict[str, Any] = {}
        while True:
            before = _gradients(self.models)
            done, value, failed = self._attempt(args, kwargs)
            if done:
                if short:
                    self.told({"type": "rescue", "count": self.parts, **short})
                return value
            size = size_of(args, kwargs)
            if failed is None or _several() or not _restored(before) or size <= self.parts or self.parts >= MOST_PARTS:
                raise value
            short = {"text": str(value)[:300], **failed}
            value.__traceback__ = None  # its frames hold what the step had made
            del value
            self.parts = min(size, 2 * self.parts)
            _give_back()

    def _attempt(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[bool, Any, Optional[Any]]:
        """Whether it ran, what it returned or raised, and of an error for lack of memory who ran out."""
        try:
            return True, self.in_parts(args, kwargs), None
        except Exception as error:
            return False, error, _shortage(error)

    def in_parts(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        size = size_of(args, kwargs)
        if self.parts <= 1 or size <= 1:
            return self.step(*args, **kwargs)
        values, shares = [], []
        each = -(-size // self.parts)
        for begin in range(0, size, each):
            end = min(size, begin + each)
            share = (end - begin) / size
            some = cut((args, kwargs), size, begin, end)
            with Weighted(share if self.mean else 1.0):
                values.append(_detached(self.step(*some[0], **some[1])))
            shares.append(share)
        return _joined(values, shares, self.mean)


class Weighted:
    """While it is entered, backward passes that begin at a loss give gradients times a weight."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.plain: Any = None

    def __enter__(self) -> None:
        if self.weight == 1.0:
            return
        autograd, weight = sys.modules["torch"].autograd, self.weight
        plain = self.plain = autograd.backward

        def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
            several = tensors if isinstance(tensors, (list, tuple)) else [tensors]
            given = grad_tensors if isinstance(grad_tensors, (list, tuple)) else [grad_tensors] * len(several)
            weighted = [
                weight * (sys.modules["torch"].ones_like(t) if g is None else g) for t, g in zip(several, given)
            ]
            return plain(several, weighted, *args, **kwargs)

        autograd.backward = backward

    def __exit__(self, *_: Any) -> None:
        if self.plain is not None:
            sys.modules["torch"].autograd.backward = self.plain


def _shortage(error: BaseException) -> Optional[Dict[str, Any]]:
    """Which memory was short, and what was asked for; None: it is another error."""
    text = str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(word in text for word in _SHORT)):
        found: Dict[str, Any] = {"device": "cpu" if "CUDA" not in text and "CUBLAS" not in text else "cuda"}
        asked = re.search(r"[Tt]ried to allocate (\d+) bytes", text)
        return {**found, "bytes": int(asked.group(1))} if asked else found
    return None


def _gradients(models: List[Any]) -> List[Tuple[Any, Any, int]]:
    """Each parameter with its gradient and how often that was written."""
    return [
        (p, p.grad, -1 if p.grad is None else p.grad._version)
        for model in models
        for p in model.parameters()
        if p.requires_grad
    ]


def _restored(before: List[Tuple[Any, Any, int]]) -> bool:
    """Take back gradients that the failed attempt made. False where it added to one that was there."""
    if any(grad is not None and (p.grad is not grad or grad._version != version) for p, grad, version in before):
        return False
    for parameter, grad, _ in before:
        parameter.grad = grad
    return True


def _several() -> bool:
    """Whether other ranks take part: they would wait for passes that this one makes more, or the other way round."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    return bool(distributed and distributed.is_initialized() and distributed.get_world_size() > 1)


def _give_back() -> None:
    gc.collect()
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.empty_cache()


def size_of(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> int:
    """The length of the first axis of the batch: of the first tensor that has one."""
    return next((int(t.shape[0]) for t in _tensors((args, kwargs)) if t.dim() > 0), 1)


def _tensors(value: Any) -> List[Any]:
    if isinstance(value, sys.modules["torch"].Tensor):
        return [value]
    if hasattr(value, "items"):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def cut(value: Any, size: int, begin: int, end: int) -> Any:
    """The same with each tensor, and each list, of that length cut."""
    if isinstance(value, sys.modules["torch"].Tensor):
        return value[begin:end] if value.dim() > 0 and value.shape[0] == size else value
    if hasattr(value, "items"):
        made = {key: cut(item, size, begin, end) for key, item in value.items()}
        return made if type(value) is dict else _like(value, made)
    if isinstance(value, tuple):
        items = [cut(item, size, begin, end) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return value[begin:end] if len(value) == size else [cut(item, size, begin, end) for item in value]
    return value


def _like(value: Any, made: Dict[Any, Any]) -> Any:
    """A mapping of the same class, as the batches of transformers are; a dict where it cannot be made."""
    try:
        return type(value)(made)
    except Exception:
        return made


def _detached(value: Any) -> Any:
    """Without the graph of what a part returned, which would keep its activations."""
    if isinstance(value, sys.modules["torch"].Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: _detached(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_detached(item) for item in value)
    return value


def _joined(values: List[Any], shares: List[float], mean: bool) -> Any:
    """What the step would have returned: numbers by their shares, or summed; tensors one after the other."""
    first, torch = values[0], sys.modules["torch"]
    if isinstance(first, torch.Tensor) and first.dim() > 0:
        return torch.cat(values)
    if isinstance(first, (torch.Tensor, float)):
        return sum(v * share for v, share in zip(values, shares)) if mean else sum(values)
    if isinstance(first, dict):
        return {key: _joined([v[key] for v in values], shares, mean) for key in first}
    if isinstance(first, (list, tuple)) and not hasattr(first, "_fields"):
        return type(first)(_joined(list(items), shares, mean) for items in zip(*values))
    return values[-1]
