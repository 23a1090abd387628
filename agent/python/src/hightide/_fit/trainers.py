"""Trainings that a trainer of Hugging Face's runs, as users have them: DPO and GRPO by TRL's, and all on several GPUs.

run(planned, model of) ──▶ a trainer of the user's own packages, with texts of the planned length ──▶ train()
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List

if TYPE_CHECKING:
    from .planned import Planned

ROWS = 64
WRITTEN = 4
"""Tokens of an answer that GRPO's model writes one by one. The others are read at once before them: the cache has its
whole length then, and what a token takes does not depend on how many came before."""

WORDS = 100
SPECIAL = ("<pad>", "<eos>", "<unk>")

OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw-8bit": "adamw_bnb_8bit", "sgd": "sgd"}


def run(planned: Planned, build: Callable[[], Any], steps: int) -> None:
    """Train for so many steps; build() makes the model on the host."""
    {"dpo": _preferences, "grpo": _rewards}.get(planned.use, _tokens)(planned, build, steps)


def described(planned: Planned) -> List[str]:
    """What a trainer is given, in words."""
    said = []
    if planned.use == "dpo":
        said.append("TRL's DPOTrainer: a prompt and each of its two answers have half of the tokens")
    if planned.use == "grpo":
        said.append(
            f"TRL's GRPOTrainer: {_answers(planned)} answers of {_answer(planned)} tokens to a prompt, no reference "
            f"model; the last {WRITTEN} tokens of an answer are generated one by one, those before are read at once"
        )
    if planned.gpus > 1:
        how = "DDP, each with all weights" if planned.use == "qlora" else "FSDP by accelerate"
        said.append(f"of several GPUs the first process was run, with {how}")
    return said


def _tokens(planned: Planned, build: Callable[[], Any], steps: int) -> None:
    import transformers

    tokens = [len(SPECIAL) + i % (WORDS - len(SPECIAL)) for i in range(planned.seq_len)]
    rows = [{"input_ids": tokens, "labels": tokens}] * _rows(planned)
    arguments = transformers.TrainingArguments(**_usual(planned, steps))
    transformers.Trainer(build(), arguments, train_dataset=rows).train()


def _answers(planned: Planned) -> int:
    return max(2, planned.batch)


def _answer(planned: Planned) -> int:
    """Tokens of an answer that GRPO's model writes: TRL's default, and at most half of all."""
    from trl import GRPOConfig

    return min(GRPOConfig.max_completion_length or planned.seq_len, planned.seq_len // 2)


def _preferences(planned: Planned, build: Callable[[], Any], steps: int) -> None:
    """A frozen model of the same type beside the one that is trained, and two answers of half the tokens."""
    from trl import DPOConfig, DPOTrainer

    prompt = planned.seq_len // 2
    answer = " " + _words(planned.seq_len - prompt)
    arguments = DPOConfig(**_usual(planned, steps), max_length=planned.seq_len)
    rows = _dataset(planned, {"prompt": _words(prompt), "chosen": answer, "rejected": answer})
    DPOTrainer(build(), build(), arguments, train_dataset=rows, processing_class=_tokenizer()).train()


def _rewards(planned: Planned, build: Callable[[], Any], steps: int) -> None:
    """As many answers to a prompt as a batch holds; of one, two batches make an answer each. No reference model."""
    from trl import GRPOConfig, GRPOTrainer

    usual = _usual(planned, steps)
    answers, length = _answers(planned), _answer(planned)
    if answers > planned.batch:
        usual["gradient_accumulation_steps"] = answers
    arguments = GRPOConfig(**usual, num_generations=answers, max_completion_length=length)
    rows = _dataset(planned, {"prompt": _words(planned.seq_len - length)})
    model = build()
    model.generate = _all_but_the_last_at_once(model.generate)
    GRPOTrainer(model, _no_reward, arguments, train_dataset=rows, processing_class=_tokenizer()).train()


def _no_reward(completions: Any, **_: Any) -> Any:
    return [0.0] * len(completions)


def _all_but_the_last_at_once(generate: Callable[..., Any]) -> Callable[..., Any]:
    """generate() of answers whose last tokens alone are written one by one: hundreds would take minutes."""

    def generate_from(**given: Any) -> Any:
        import copy

        import torch

        config = copy.copy(given["generation_config"])
        read = max(0, config.max_new_tokens - WRITTEN)
        config.max_new_tokens -= read
        given["generation_config"] = config
        for name, value in (("input_ids", _goes_on(config.eos_token_id)), ("attention_mask", 1)):
            there = given[name]
            given[name] = torch.cat([there, there.new_full((there.shape[0], read), value)], 1)
        return generate(**given)

    return generate_from


def _goes_on(ends: Any) -> int:
    """A word that ends no answer."""
    ends = ends if isinstance(ends, (list, tuple)) else [ends]
    return next(n for n in range(len(SPECIAL), WORDS) if n not in ends)


def _usual(planned: Planned, steps: int) -> Dict[str, Any]:
    usual = dict(
        output_dir=os.path.join(os.path.dirname(planned.model), "out"), per_device_train_batch_size=planned.batch,
        bf16=bool(planned.options().amp), gradient_checkpointing=planned.checkpointing, max_steps=steps, report_to=[],
        optim=OPTIMIZERS[planned.optimizer], save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    if planned.gpus > 1 and planned.use != "qlora":  # FSDP has a checkpointing of its own
        usual.update(fsdp=True, fsdp_config={"activation_checkpointing": planned.checkpointing})
        usual["gradient_checkpointing"] = False
    return usual


def _words(count: int) -> str:
    return " ".join(f"w{len(SPECIAL) + i % (WORDS - len(SPECIAL))}" for i in range(count))


def _dataset(planned: Planned, row: Dict[str, Any]) -> Any:
    import datasets

    return datasets.Dataset.from_list([row] * _rows(planned))


def _rows(planned: Planned) -> int:
    return max(ROWS, planned.batch * planned.gpus)


def _tokenizer() -> Any:
    """One of a hundred words: what matters of a text is how many tokens it has."""
    import tokenizers
    import transformers

    words = {**{name: i for i, name in enumerate(SPECIAL)}, **{f"w{i}": i for i in range(len(SPECIAL), WORDS)}}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token=SPECIAL[2]))
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=SPECIAL[0], eos_token=SPECIAL[1], unk_token=SPECIAL[2]
    )
