"""python planned.py OPTIONS: what `hightide plan --imagine` runs on an imaginary GPU, which ends it.

The model is built as for `hightide fit`, by the user's own transformers; adapters are those of peft, matrices of
4 bits those of bitsandbytes. DPO, GRPO and several GPUs are for Hugging Face's trainers (trainers.py). With --check
nothing is built: one line of JSON says what is missing, and the versions.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, List

if __package__ in (None, ""):  # run as a file, from wherever hightide unpacked it
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    __package__ = "hightide._fit"

from hightide._fit import trainers
from hightide._fit.models import Workload
from hightide._fit.options import Options

STEPS = 8
"""More than the imaginary GPU lets pass once the peak is steady."""


@dataclass(frozen=True)
class Planned:
    """What is run; internal/plan/imagine.go writes it as JSON."""

    model: str
    """a config.json"""
    use: str
    """infer, full, lora, qlora, dpo or grpo"""
    batch: int
    seq_len: int
    dtype: str
    """bf16, fp16 or fp32: of the weights; with fp32 a training has autocast to bf16"""
    optimizer: str
    """adamw, adamw-8bit or sgd"""
    lora_rank: int
    checkpointing: bool
    gpus: int = 1
    """together; this is one of their processes"""

    @property
    def trains(self) -> bool:
        return self.use != "infer"

    def packages(self) -> List[str]:
        """What is needed beside torch."""
        some = ["transformers"]
        if self.use in ("lora", "qlora"):
            some.append("peft")
        if self.use == "qlora" or (self.trains and self.optimizer == "adamw-8bit"):
            some.append("bitsandbytes")
        if self.use in ("dpo", "grpo"):
            some.append("trl")
        if self.by_trainer:
            some.append("accelerate")
        return some

    @property
    def by_trainer(self) -> bool:
        """Whether a trainer of Hugging Face's runs it."""
        return self.use in ("dpo", "grpo") or self.gpus > 1

    def options(self) -> Options:
        """The same for what builds the model and runs its steps."""
        return Options(
            model=self.model,
            imagined=True,
            dtype=self.dtype,
            amp="bf16" if self.trains and (self.dtype == "fp32" or self.use in ("lora", "qlora")) else "",
            train=self.trains,
            inference=not self.trains,
            seq_len=self.seq_len,
            checkpointing=self.trains and self.checkpointing and not self.by_trainer,
        )


def main() -> int:
    """Run steps until the imaginary GPU ends them."""
    planned = Planned(**json.loads(sys.argv[1]))
    if "--check" in sys.argv:
        print(json.dumps(_environment(planned)))
        return 0
    if planned.by_trainer:
        trainers.run(planned, lambda: built(planned).model, STEPS)
        return 0
    step = prepared(planned)
    for _ in range(STEPS if planned.trains else 1):
        step(planned.batch, False)
    return 0


def _environment(planned: Planned) -> Dict[str, Any]:
    """What is missing, the versions of what is there, and what of the run a version does not say."""
    from importlib import metadata

    needed = ["torch", *planned.packages()]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    versions = {name: metadata.version(name) for name in needed if name not in missing}
    how = trainers.described(planned) if planned.by_trainer and not missing else []
    return {"missing": missing, "versions": versions, "how": "; ".join(how)}


def built(planned: Planned) -> Workload:
    """The model, on the host but where it has 4 bits, and its batches."""
    from hightide._fit import models, training

    options = planned.options()
    with training.weights_left_alone():
        workload = models.lookup(options)
        training.prepare(workload, options)
        if planned.use == "qlora":
            _pack(workload.model)
    if planned.use == "qlora":
        workload.model = _for_training(workload.model.to(options.device), planned.checkpointing)
    if planned.use in ("lora", "qlora"):
        workload.model = _adapted(workload.model, planned.lora_rank)
    return workload


def prepared(planned: Planned) -> Callable[[int, bool], None]:
    """The step, with the model on the device."""
    from hightide._fit import training

    options = planned.options()
    return training.step_function(built(planned), options, optimizer_of(planned) if planned.trains else None)


def optimizer_of(planned: Planned) -> Callable[[Any], Any]:
    """As trainers have it by default: AdamW is fused."""

    def make(model: Any) -> Any:
        import torch

        trained = [p for p in model.parameters() if p.requires_grad]
        if planned.optimizer == "adamw-8bit":
            import bitsandbytes

            return bitsandbytes.optim.AdamW8bit(trained, lr=1e-4)
        if planned.optimizer == "sgd":
            return torch.optim.SGD(trained, lr=1e-4)
        return torch.optim.AdamW(trained, lr=1e-4, fused=True)

    return make


def _pack(model: Any) -> None:
    """Have the layers' matrices packed in NF4, with double quantization, when they come to the device."""
    import bitsandbytes
    import torch

    def put(inside: Any) -> None:
        for name, module in inside.named_children():
            if isinstance(module, torch.nn.Linear) and name != "lm_head":
                shape = (module.in_features, module.out_features, module.bias is not None)
                packed = bitsandbytes.nn.Linear4bit(*shape, torch.bfloat16, quant_type="nf4", device="meta")
                packed.weight = bitsandbytes.nn.Params4bit(module.weight.data, requires_grad=False, quant_type="nf4")
                packed.bias = module.bias
                setattr(inside, name, packed)
            else:
                put(module)

    put(model)


def _for_training(model: Any, checkpointing: bool) -> Any:
    import peft

    model.is_loaded_in_4bit = True
    return peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=checkpointing)


def _adapted(model: Any, rank: int) -> Any:
    import peft

    return peft.get_peft_model(model, peft.LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM"))


if __name__ == "__main__":
    sys.exit(main())
