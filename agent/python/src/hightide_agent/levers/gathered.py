"""State dicts of a model whose parameters are spread over ranks: whole and on the host, as the program had them. The
norm of its gradients is whole too.

Each rank has to ask, as a program that knows of no ranks does, and one file is written: by the first rank.
"""

from __future__ import annotations

import functools
import os
from typing import Any, List


def install(torch: Any, model: Any, optimizers: List[Any], rank: int) -> None:
    """Have states gathered where they are given, and spread where they are loaded."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    def whole(value: Any) -> Any:
        if isinstance(value, DTensor):
            return value.full_tensor().cpu()
        if isinstance(value, dict):
            return {key: whole(inner) for key, inner in value.items()}
        return value

    def spread(value: Any, parameter: Any) -> Any:
        plain = isinstance(value, torch.Tensor) and not isinstance(value, DTensor)
        if not plain or not isinstance(parameter, DTensor) or value.shape != parameter.shape:
            return value
        return distribute_tensor(value.detach().to(parameter.device), parameter.device_mesh, parameter.placements)

    def given(module: Any, state: Any, *_: Any) -> None:
        for name, value in list(state.items()):
            state[name] = whole(value)

    def loaded(module: Any, state: Any, prefix: str, *_: Any) -> None:
        for name, parameter in module._parameters.items():
            if prefix + name in state:
                state[prefix + name] = spread(state[prefix + name], parameter)

    for module in model.modules():
        module._register_state_dict_hook(given)
        module._register_load_state_dict_pre_hook(loaded, with_module=True)

    def into(optimizer: Any, state: Any) -> Any:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        numbers = [number for group in state["param_groups"] for number in group["params"]]
        kept = {
            number: {key: spread(value, parameter) for key, value in state["state"].get(number, {}).items()}
            for number, parameter in zip(numbers, parameters)
            if number in state["state"]
        }
        return {**state, "state": kept}

    for optimizer in optimizers:
        optimizer.register_state_dict_post_hook(lambda _, state: whole(state))
        optimizer.register_load_state_dict_pre_hook(into)
    _norms(torch, DTensor)
    plain = torch.save

    @functools.wraps(plain)
    def save(what: Any, f: Any, *more: Any, **named: Any) -> Any:
        file = isinstance(f, (str, os.PathLike))
        done = plain(what, f, *more, **named) if rank == 0 or not file else None
        if file:
            torch.distributed.barrier()  # another rank may read it next
        return done

    torch.save = save


def _norms(torch: Any, spread: Any) -> None:
    """Have the norm of all gradients whole in each rank: PyTorch 2.9 gives a program that reads it its rank's part."""
    library = torch.nn.utils.clip_grad
    plain = library._get_total_norm

    @functools.wraps(plain)
    def norm(*args: Any, **named: Any) -> Any:
        total = plain(*args, **named)
        return total.full_tensor() if isinstance(total, spread) else total

    library._get_total_norm = norm
