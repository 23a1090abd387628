"""One step of a workload, under the options: what a trial runs and what its memory is made of."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Dict, Optional

from .models import Workload
from .names import Unknown
from .options import Options

DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
DECODED = 4
"""Tokens that inference generates one by one after the prompt: the cache then has its final shape."""

WARM = 1
"""Steps before the optimizer has its state and the gradients exist; the peak is steady from then on."""


def prepare(workload: Workload, options: Options) -> None:
    """Bring the model into the form that options ask for, still on the CPU."""
    import torch

    model = workload.model
    if model is None:
        return
    if options.checkpointing:
        enable = getattr(model, "activation_checkpointing_enable", None)  # transformers 5 calls it so
        enable = enable or getattr(model, "gradient_checkpointing_enable", None)
        if enable is None:
            raise Unknown(f"{options.model} offers no gradient checkpointing (transformers models do)")
        enable()
    if options.dtype in ("bf16", "fp16"):
        dtype = getattr(torch, DTYPES[options.dtype])
        if options.imagined:
            _retype_untouched(model, dtype)
        model.to(dtype)
    model.train(options.train)


def _retype_untouched(model: Any, dtype: Any) -> None:
    """Give parameters another type without reading them: what was never written costs no memory."""
    import torch

    for p in model.parameters():
        if p.is_floating_point():
            p.data = torch.empty_like(p, dtype=dtype)


SMALL = 1 << 16  # numbers; position tables and the like are computed as they are


def weights_left_alone() -> Any:
    """Skip in-place writes to large CPU tensors while a model is built: untouched pages cost no memory.

    On a device that computes nothing the weights' values cannot matter; a model of 8 billion
    parameters is then built in seconds and in megabytes.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    class LeftAlone(TorchFunctionMode):  # type: ignore[misc]  # torch is not there when types are checked
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = getattr(func, "__name__", "")
            if name.endswith("_") and not name.endswith("__"):  # normal_, and trunc_normal_ of torch.nn.init
                written = args[0] if args else kwargs.get("tensor")
                if isinstance(written, torch.Tensor) and written.device.type == "cpu" and written.numel() > SMALL:
                    return written
            return func(*args, **kwargs)

    return LeftAlone()


def step_function(
    workload: Workload, options: Options, optimizer_of: Optional[Callable[[Any], Any]] = None
) -> Callable[[int, bool], None]:
    """Move the model to the device and return step(batch, forward_only); optimizer_of makes one of its own."""
    import torch

    if workload.step is not None:
        return _own_step(options.model, workload.step)
    if options.dtype == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
    model = workload.model.to(options.device)
    make = optimizer_of or (lambda of: _optimizer(of, options.optimizer))
    optimizer = None if options.inference else make(model)
    called = torch.compile(model) if options.compile else model
    scaler = _scaler(options)

    def step(n: int, forward_only: bool) -> None:
        inputs = _move(workload.batch(n), options, model)
        if options.inference:
            _infer(called, inputs, workload)
            return
        with _autocast(options):
            loss = workload.loss(_call(called, inputs))
        if forward_only:
            return
        (scaler.scale(loss) if scaler else loss).backward()
        if optimizer is None:
            return
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        optimizer.zero_grad()

    return step


def _own_step(name: str, own: Callable[[int], Any]) -> Callable[[int, bool], None]:
    def step(n: int, forward_only: bool) -> None:
        if forward_only:
            raise Unknown(f"{name} runs a step of its own, of which the forward pass cannot be told apart")
        own(n)

    return step


def steps_needed(options: Options, forward_only: bool) -> int:
    """Steps until the peak is reached: state that the first step makes burdens the second."""
    return 1 + WARM if options.optimizer != "none" and not forward_only and not options.inference else 1


def _call(model: Any, inputs: Dict[str, Any]) -> Any:
    inputs = dict(inputs)
    return model(*inputs.pop("", ()), **inputs)


def _move(inputs: Dict[str, Any], options: Options, model: Any) -> Dict[str, Any]:
    """To the device, floating-point inputs in the weights' type, as a training would."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)

    def one(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(one(v) for v in value)
        value = value.to(options.device)
        return value.to(dtype) if value.is_floating_point() and dtype is not None else value

    return {name: one(value) for name, value in inputs.items()}


def _infer(model: Any, inputs: Dict[str, Any], workload: Workload) -> None:
    """A forward pass; with a cache: the prompt, then tokens one by one to the full length."""
    import torch

    with torch.inference_mode():
        ids = inputs.get("input_ids")
        if not workload.generates or ids is None or ids.shape[1] <= DECODED:
            _call(model, inputs)
            return
        last = _last_logits(model)
        cache = model(input_ids=ids[:, :-DECODED], use_cache=True, **last).past_key_values
        for i in range(ids.shape[1] - DECODED, ids.shape[1]):
            cache = model(input_ids=ids[:, i : i + 1], past_key_values=cache, use_cache=True, **last).past_key_values


def _last_logits(model: Any) -> Dict[str, Any]:
    """Of a prompt only the last position's logits, as transformers' generate() asks for where the model knows how."""
    forward = getattr(model, "_orig_mod", model).forward  # below torch.compile
    names = inspect.signature(forward).parameters
    return {name: 1 for name in ("logits_to_keep", "num_logits_to_keep") if name in names}


def _autocast(options: Options) -> Any:
    import torch

    if not options.amp:
        return contextlib.nullcontext()
    return torch.autocast(options.device, dtype=getattr(torch, DTYPES[options.amp]))


def _scaler(options: Options) -> Any:
    import torch

    return torch.amp.GradScaler(options.device) if options.amp == "fp16" and options.optimizer != "none" else None


def _optimizer(model: Any, name: str) -> Any:
    import torch

    if name == "none":
        return None
    kinds = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "adafactor": "Adafactor"}
    kind = getattr(torch.optim, kinds[name], None)
    if kind is None:
        raise Unknown(f"torch {torch.__version__} has no {kinds[name]}")
    arguments: Dict[str, Any] = {"momentum": 0.9} if name == "sgd" else {}
    return kind(model.parameters(), lr=1e-4, **arguments)
