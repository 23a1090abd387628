"""From a model's name to the model and its batches.

    lookup(options) ──▶ Workload: .model on the CPU, .batch(n) on the CPU, .loss(outputs)

NAMES lists who is asked, in order. To add a family: a function that returns a Workload or None, and a
place in that list.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

from . import names
from .names import Unknown
from .options import Options
from .presets import ALIASES, PRESETS


@dataclass
class Workload:
    """A model and what a step of it works on.

    batch(n) makes the inputs of n samples as a dict of keyword arguments, on the CPU.
    loss(outputs) reduces what the model returned to a scalar.
    generates says that the model takes past_key_values, so that inference can fill a cache.
    step, where given, is the user's own and replaces all the rest: step(n) runs one step.
    """

    model: Any
    batch: Callable[[int], Dict[str, Any]]
    loss: Callable[[Any], Any]
    description: str = ""
    generates: bool = False
    step: Optional[Callable[[int], Any]] = None


VOCABULARY = 1000  # token ids stay below: every tokenizer has that many
PROMPT = 12  # tokens of MemoryMark's sentence; the rest of the sequence is padding


def lookup(options: Options) -> Workload:
    """Build the model that options.model names; names.check has seen it before.

    Raises:
        Unknown: nobody knows the name, or a package that it needs is not installed.
    """
    for family in NAMES:
        workload = family(options)
        if workload is not None:
            return workload
    raise names.unknown(options.model)


def _memorymark(options: Options) -> Optional[Workload]:
    """The three of MemoryMark: a classifier's logits, averaged."""
    if options.model not in ("bert", "gpt2", "resnet"):
        return None
    import transformers

    if options.model == "bert":
        model = transformers.BertForSequenceClassification(transformers.BertConfig(num_labels=2))
    elif options.model == "gpt2":
        config = transformers.GPT2Config(num_labels=2)
        config.pad_token_id = config.eos_token_id
        model = transformers.GPT2ForSequenceClassification(config)
    else:
        model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000))
    titles = {"bert": "BERT base", "gpt2": "GPT-2", "resnet": "ResNet-50"}
    if options.model == "resnet":
        batch = _images(options.image_size, "pixel_values")
        shape = f"{options.image_size} px"
    else:
        batch = _padded_text(options.seq_len, token_types=options.model == "bert")
        shape = f"sequence {options.seq_len}"
    return Workload(model, batch, _mean_of_logits, f"{titles[options.model]} as MemoryMark runs it, {shape}")


def _torchvision(options: Options) -> Optional[Workload]:
    try:
        import torchvision
    except ImportError:
        return None
    name = names.of_torchvision(options.model)
    if name not in torchvision.models.list_models(module=torchvision.models):
        return None
    model = torchvision.models.get_model(name, weights=None)
    size = _native_size(name, options.image_size)

    def loss(outputs: Any) -> Any:
        # inception and googlenet in training mode return their helpers' logits beside their own
        logits = outputs if not isinstance(outputs, tuple) else outputs[0]
        return logits.float().mean()

    return Workload(model, _images(size, "x"), loss, f"torchvision {name}, {size} px")


def _native_size(name: str, asked: int) -> int:
    """Inception works from 75 px on but means 299; asked keeps its word where it is not the default."""
    return 299 if name == "inception_v3" and asked == 224 else asked


def _transformers(options: Options) -> Optional[Workload]:
    """A config file, a folder with one, or a registered model type at its default or a preset size."""
    try:
        import transformers
    except ImportError:
        return None
    file = names.config_file(options.model)
    if file is not None:
        config = _config_of_file(transformers, file)
    elif options.model in ALIASES or options.model in transformers.CONFIG_MAPPING:
        config = _config_of_type(transformers, options)
    else:
        return None
    return _from_config(transformers, config, options)


def _config_of_file(transformers: Any, path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as f:
            fields = json.load(f)
        return transformers.CONFIG_MAPPING[fields["model_type"]].from_dict(fields)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unknown(f"{path} is not a transformers config: {type(error).__name__}: {error}") from error


def _config_of_type(transformers: Any, options: Options) -> Any:
    kind = ALIASES.get(options.model, options.model)
    return transformers.CONFIG_MAPPING[kind](**PRESETS.get(kind, {}).get(options.size.lower(), {}))


def _from_config(transformers: Any, config: Any, options: Options) -> Workload:
    """The head that the type is trained with: next token, class of a sequence, class of an image."""
    kind = type(config)
    what = f"transformers {config.model_type}" + (f" {options.size}" if options.size else "")
    if kind in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING:
        size = getattr(config, "image_size", options.image_size)
        size = options.image_size if options.image_size != 224 or not isinstance(size, int) else size
        if hasattr(config, "image_size"):
            config.image_size = size
        model = transformers.AutoModelForImageClassification.from_config(config)
        return Workload(model, _images(size, "pixel_values"), _mean_of_logits, f"{what}, image classes, {size} px")
    if kind in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        model = transformers.AutoModelForSeq2SeqLM.from_config(config)
        return Workload(
            model, _text_to_text(options.seq_len), _own_loss, f"{what}, sequence to sequence, {options.seq_len} tokens"
        )
    if kind in transformers.MODEL_FOR_CAUSAL_LM_MAPPING and not _is_encoder(transformers, kind):
        model = transformers.AutoModelForCausalLM.from_config(config)
        batch = _next_token(options.seq_len, labels=not options.inference)
        return Workload(model, batch, _own_loss, f"{what}, next token, sequence {options.seq_len}", generates=True)
    if kind in transformers.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        model = transformers.AutoModelForSequenceClassification.from_config(config)
        return Workload(
            model,
            _next_token(options.seq_len, labels=False),
            _mean_of_logits,
            f"{what}, classes, sequence {options.seq_len}",
        )
    raise Unknown(
        f"{config.model_type} has no head that fit knows (next token, sequence, image); "
        "write a function that returns the step and name it as module:function"
    )


def _is_encoder(transformers: Any, kind: Any) -> bool:
    """BERT and its like have a causal head too, that few people mean."""
    return kind in transformers.MODEL_FOR_MASKED_LM_MAPPING


def function_of(options: Options) -> Optional[Callable[[], Any]]:
    """The function that module:function names, its module imported; None for other names.

    Raises:
        Unknown: there is none, or importing its module starts CUDA, so that no fork could use it.
    """
    module_name, colon, name = options.model.partition(":")
    if not colon or names.config_file(options.model):
        return None
    import torch

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function: Callable[[], Any] = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise Unknown(f"{options.model}: {error}") from error
    if options.device == "cuda" and torch.cuda.is_initialized():
        raise Unknown(
            f"{options.model}: importing {module_name} starts CUDA, and each trial is a fork",
            f"move that into {name}(), or fit the command: hightide fit ... -- python {module_name}.py {{batch}}",
        )
    return function


def _function(options: Options) -> Optional[Workload]:
    """module:function, called without arguments: it returns step(batch), or (model, batch(n))."""
    function = function_of(options)
    if function is None:
        return None
    made = function()
    if callable(made) and not hasattr(made, "parameters"):
        return Workload(None, lambda n: {}, lambda outputs: outputs, f"{options.model}, its own step", step=made)
    if isinstance(made, tuple) and len(made) == 2 and hasattr(made[0], "parameters") and callable(made[1]):
        return Workload(made[0], _as_arguments(made[1]), _own_loss, options.model)
    raise Unknown(
        f"{options.model} returned {type(made).__name__}; wanted is a function step(batch) or a pair (model, batch(n))"
    )


def _as_arguments(batch: Callable[[int], Any]) -> Callable[[int], Dict[str, Any]]:
    def make(n: int) -> Dict[str, Any]:
        made = batch(n)
        if isinstance(made, dict):
            return made
        return {"": tuple(made) if isinstance(made, (tuple, list)) else (made,)}

    return make


NAMES: List[Callable[[Options], Optional[Workload]]] = [_memorymark, _function, _torchvision, _transformers]


# Batches. All on the CPU, as a data loader would hand them over.


def _images(size: int, name: str) -> Callable[[int], Dict[str, Any]]:
    import torch

    return lambda n: {name: torch.rand(n, 3, size, size)}


def _padded_text(length: int, token_types: bool) -> Callable[[int], Dict[str, Any]]:
    """MemoryMark's sentence, padded to the full length."""
    import torch

    def make(n: int) -> Dict[str, Any]:
        mask = torch.zeros(n, length, dtype=torch.long)
        mask[:, : min(PROMPT, length)] = 1
        inputs = {"input_ids": torch.randint(0, VOCABULARY, (n, length)), "attention_mask": mask}
        if token_types:
            inputs["token_type_ids"] = torch.zeros(n, length, dtype=torch.long)
        return inputs

    return make


def _next_token(length: int, labels: bool) -> Callable[[int], Dict[str, Any]]:
    import torch

    def make(n: int) -> Dict[str, Any]:
        ids = torch.randint(0, VOCABULARY, (n, length))
        return {"input_ids": ids, "labels": ids.clone()} if labels else {"input_ids": ids}

    return make


def _text_to_text(length: int) -> Callable[[int], Dict[str, Any]]:
    import torch

    return lambda n: {
        "input_ids": torch.randint(0, VOCABULARY, (n, length)),
        "labels": torch.randint(0, VOCABULARY, (n, length)),
    }


def _mean_of_logits(outputs: Any) -> Any:
    return outputs.logits.mean()


def _own_loss(outputs: Any) -> Any:
    """The loss that the model computed; else the mean of what it returned."""
    loss = getattr(outputs, "loss", None)
    if loss is not None:
        return loss
    logits = getattr(outputs, "logits", outputs)
    return (logits[0] if isinstance(logits, (tuple, list)) else logits).float().mean()
