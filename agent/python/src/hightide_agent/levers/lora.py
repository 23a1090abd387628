"""Adapters of rank 8 are trained in place of the model's weights, by the package peft.

Each linear layer of a repeated block gets one; all other parameters are frozen, so that they have neither gradients nor
states. What is learned changes: it is another training. It costs two small products for each layer. The adapters take
the places of their layers' weights in the optimizer's groups. It is refused where peft is not installed, where the
optimizer has states already, where the model is compiled, wrapped or has adapters, and of layers that PyTorch's own
modules compute with directly. What the program saves has the names that peft gives.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Callable, Dict, List

from .found import LISTS, Found, Refused

RANK = 8


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned puts the adapters into the model and into the optimizers' groups."""
    optimizers, model = found.optimizer(), found.model
    if "step_in_backward" in found.levers:
        raise Refused("step_in_backward has hooks on all parameters that are trained now")
    if any(optimizer.state for optimizer in optimizers):
        raise Refused("the optimizer has states already")
    layers = adapted(found)
    try:
        import peft
    except ImportError:
        raise Refused("the package peft is not installed") from None

    def apply() -> str:
        before = sum(p.numel() for p in model.parameters() if p.requires_grad)
        places = {name: layer.weight for name, layer in layers.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of layers that are kept transposed, which peft finds by itself
            peft.inject_adapter_in_model(
                peft.LoraConfig(
                    r=RANK, lora_alpha=2 * RANK, lora_dropout=0.0, bias="none",
                    target_modules="|".join(re.escape(name) for name in layers)), model)  # fmt: skip
        instead: Dict[int, List[Any]] = {}
        for name, weight in places.items():
            adapters = [p for p in model.get_submodule(name).parameters() if p.requires_grad]
            instead.setdefault(id(weight), []).extend(adapters)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["params"] = [
                    q for p in group["params"] for q in instead.get(id(p), [p] if p.requires_grad else [])
                ]
        now = sum(p.numel() for p in model.parameters() if p.requires_grad)
        return "%d numbers of %d layers are trained, in place of %d" % (now, len(layers), before)

    return apply


def adapted(found: Found) -> Dict[str, Any]:
    """The linear layers of the blocks that an optimizer trains, by their names in the model; Refused where the model
    cannot have adapters."""
    if found.compiled:
        raise Refused("%s is compiled" % found.name)
    if found.sharded or found.called is not found.model:
        raise Refused("%s is wrapped by what knows its parameters" % found.name)
    if any(hasattr(module, "lora_A") for module in found.model.modules()):
        raise Refused("%s has adapters already" % found.name)
    trained = {id(p) for o in found.optimizers() for group in o.param_groups for p in group["params"]}
    layers: Dict[str, Any] = {}
    for block_name, block in found.blocks().items():
        for name, layer in block.named_modules(prefix=block_name):
            if not _linear(found, layer) or not layer.weight.requires_grad or id(layer.weight) not in trained:
                continue
            parent = type(found.model.get_submodule(name.rpartition(".")[0]))
            if parent.__module__.startswith("torch.nn.") and parent.__name__ not in LISTS:
                raise Refused("%s computes with the weight of %s itself" % (parent.__name__, name))
            layers[name] = layer
    if not layers:
        raise Refused("%s has no linear layers in repeated blocks that are trained" % found.name)
    return layers


def _linear(found: Found, layer: Any) -> bool:
    kind = type(layer)
    return kind is found.torch.nn.Linear or (kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers."))
