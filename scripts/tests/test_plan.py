"""`hightide plan --imagine` against trainings as people write them, with real transformers, PEFT and bitsandbytes on an
imaginary GPU."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

CACHE = Path.home() / ".cache/hightide"
PYTHON = CACHE / "libraries/bin/python"
HIGHTIDE = Path(__file__).resolve().parents[2] / "bin/hightide"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=f"no {PYTHON}: scripts/setup libraries makes it")

CONFIG = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816,
    "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 4096,
    "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16",
}  # fmt: skip
SEQ, BATCH = 512, 4
MASK = 6  # bytes at most for each two tokens of a batch that is one row

TRAINER = """
import sys, torch, transformers
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments
folder, use, sharded = *sys.argv[1:3], "sharded" in sys.argv
if use == "full":
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
else:
    import peft
    packed = {}
    if use == "qlora":
        packed["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, device_map={"": 0}, **packed)
    if use == "qlora":
        model = peft.prepare_model_for_kbit_training(model)
    model = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM"))
rows = [{"input_ids": torch.arange(%d) %% 100, "labels": torch.arange(%d) %% 100} for _ in range(64)]
arguments = TrainingArguments(
    output_dir=folder + "/out", per_device_train_batch_size=%d, bf16=True, gradient_checkpointing=not sharded,
    fsdp=sharded, fsdp_config={"activation_checkpointing": True} if sharded else None,
    optim="adamw_torch_fused", report_to=[], save_strategy="no", max_steps=10)
Trainer(model=model, args=arguments, train_dataset=rows).train()
""" % (SEQ, SEQ, BATCH)
TOKENS = """
import sys, torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
config = AutoConfig.from_pretrained(sys.argv[1])
known = {"<pad>": 0, "<eos>": 1, **{"w%d" % i: i for i in range(2, 100)}}
core = Tokenizer(models.WordLevel(known, unk_token="<pad>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>")
words = lambda count: " ".join("w%d" % (2 + i % 90) for i in range(count))
model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
sharded = "sharded" in sys.argv
usual = dict(output_dir=sys.argv[1] + "/out", bf16=True, gradient_checkpointing=not sharded, fsdp=sharded,
             fsdp_config={"activation_checkpointing": True} if sharded else None, optim="adamw_torch_fused", report_to=[], save_strategy="no", max_steps=10)
"""
PREFERENCES = """
from trl import DPOConfig, DPOTrainer
reference = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
half = words(%d)
rows = Dataset.from_list([{"prompt": half, "chosen": " " + half, "rejected": " " + half}] * 64)
arguments = DPOConfig(per_device_train_batch_size=%d, max_length=%d, **usual)
DPOTrainer(model=model, ref_model=reference, args=arguments, train_dataset=rows, processing_class=tokenizer).train()
""" % (SEQ // 2, BATCH, SEQ)
GROUP, GROUP_SEQ = 32, 96  # of GRPO: answers to a prompt, and tokens of a sequence
ANSWER = GROUP_SEQ // 2  # which its model writes itself
REWARDS = """
from trl import GRPOConfig, GRPOTrainer
rows = Dataset.from_list([{"prompt": words(%d)}] * 64)
arguments = GRPOConfig(per_device_train_batch_size=%d, num_generations=%d, max_completion_length=%d, **usual)
GRPOTrainer(model=model, reward_funcs=lambda completions, **_: [0.0] * len(completions), args=arguments,
            train_dataset=rows, processing_class=tokenizer).train()
""" % (GROUP_SEQ - ANSWER, GROUP, GROUP, ANSWER)
TUNING = """
from trl import SFTConfig, SFTTrainer
adapters = None
if sys.argv[2] == "lora":
    import peft
    model = model.to(torch.bfloat16)
    adapters = peft.LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")
how = sys.argv[3]
rows = Dataset.from_list([{"text": words(600 if how == "full rows" else 40 + 37 * i %% 450)} for i in range(400)])
packing = {} if how == "full rows" else {"packing": True, "packing_strategy": how}
arguments = SFTConfig(per_device_train_batch_size=%d, max_length=%d, **packing, **usual)
SFTTrainer(model=model, args=arguments, train_dataset=rows, processing_class=tokenizer, peft_config=adapters).train()
""" % (BATCH, SEQ)
SAVE = """
import sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(sys.argv[1]), dtype=torch.bfloat16)
model.save_pretrained(sys.argv[1])
"""


def asked(*words: "str | Path", folder: Path) -> "tuple[int, str, str]":
    done = subprocess.run(
        [str(HIGHTIDE), *map(str, words)], capture_output=True, text=True, cwd=folder, timeout=600,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HIGHTIDE_DATA": str(folder / "data")},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def planned(model: Path, *words: str) -> "dict[str, Any]":
    code, out, err = asked("plan", model, "--imagine", "--python", PYTHON, *words, "--json", folder=model)
    assert code in (0, 1), err
    found: dict[str, Any] = json.loads(out)
    return found


def estimated(model: Path, *words: str) -> "tuple[int, int]":
    """Between which figures plan expects what the tensors of a training take."""
    code, out, err = asked("plan", model, *words, "--gpu", "l4", "--json", folder=model)
    assert code == 0, err
    beside = ("context and libraries", "kept by the allocator")
    parts = [p for p in json.loads(out)["rows"][0]["parts"] if p["name"] not in beside]
    return sum(p["low_bytes"] for p in parts), sum(p["high_bytes"] for p in parts)


def imagined(model: Path, program: str, *words: str, world: int = 1) -> int:
    """What the tensors of a script take at most, on an imaginary GPU: the first of a world of them."""
    script = model / "train.py"
    script.write_text(program)
    several = ("--world-size", str(world), "--play", "0") if world > 1 else ()
    command: "tuple[str | Path, ...]" = (
        "imagine", "-q", "--gpu", "l4", *several, "--json", "--", PYTHON, script, model, *words,
    )  # fmt: skip
    code, out, err = asked(*command, folder=model)
    assert code == 0, out[-2000:] + err[-2000:]
    return int(json.loads(out)["peak_allocated_bytes"])


def run_on_an_l4(model: Path, *words: str) -> int:
    """What the tensors of a plan's own run take there."""
    found = planned(model, *words, "--gpu", "l4")
    row = found["rows"][0]
    assert (row["verdict"], row["label"]) == ("fits", "imagined"), (row, found["notes"])
    return int(next(p["bytes"] for p in row["parts"] if p["name"] == "tensors"))


def holds(model: Path, words: "tuple[str, ...]", tensors: int, own: int) -> None:
    """The run is that of the user's own script, which lies between the estimate's ends."""
    least, most = estimated(model, *words)
    assert abs(tensors / own - 1) < 0.02, (tensors, own)
    assert least <= own <= most, (least, own, most)


@pytest.mark.parametrize("use", ["full", "lora", "qlora"])
def test_a_training_takes_what_the_users_own_script_takes(model: Path, use: str) -> None:
    """Hugging Face's Trainer keeps a few tensors more; what a checkpoint is loaded with has gone before the peak. What
    it takes lies between the estimate's ends, too."""
    words = ("--for", use, "--seq", str(SEQ), "--batch", str(BATCH))
    tensors = run_on_an_l4(model, *words)
    if use != "full":
        subprocess.run([PYTHON, "-c", SAVE, model], check=True, capture_output=True)
    holds(model, words, tensors, imagined(model, TRAINER, use))


@pytest.mark.parametrize(
    ("use", "program", "seq", "batch"), [("dpo", PREFERENCES, SEQ, BATCH), ("grpo", REWARDS, GROUP_SEQ, GROUP)]
)
def test_trl_takes_what_the_users_own_script_takes(model: Path, use: str, program: str, seq: int, batch: int) -> None:
    """With a frozen reference; and with answers that the model writes itself, in the script each token after the other."""
    words = ("--for", use, "--seq", str(seq), "--batch", str(batch))
    holds(model, words, run_on_an_l4(model, *words), imagined(model, TOKENS + program))


@pytest.mark.parametrize(("use", "strategies"), [("full", ["bfd"]), ("lora", ["full rows", "wrapped", "bfd"])])
def test_packed_rows_take_what_full_ones_take(model: Path, use: str, strategies: "list[str]") -> None:
    """TRL's SFTTrainer fills rows as they are planned, and what it takes lies between the estimate's ends. Best fit makes
    one row of a batch, for which SDPA has a mask."""
    least, most = estimated(model, "--for", use, "--seq", str(SEQ), "--batch", str(BATCH))
    held = {how: imagined(model, TOKENS + TUNING, use, how) for how in strategies}
    assert all(least <= own <= most for own in held.values()), (least, held, most)
    if len(held) > 1:
        full, wrapped, fitted = held.values()
        assert abs(wrapped / full - 1) < 0.002 and wrapped < fitted < wrapped + MASK * (BATCH * SEQ) ** 2, held


@pytest.mark.parametrize(
    ("use", "program", "seq", "batch"),
    [
        ("full", TRAINER, SEQ, BATCH),
        ("qlora", TRAINER, SEQ, BATCH),
        ("dpo", TOKENS + PREFERENCES, SEQ, BATCH),
        ("grpo", TOKENS + REWARDS, GROUP_SEQ, GROUP),
    ],
)
def test_several_gpus_take_what_the_users_own_script_takes(
    model: Path, use: str, program: str, seq: int, batch: int
) -> None:
    """Weights, gradients and optimizer are split by FSDP; of weights in 4 bits each GPU has all, by DDP."""
    words = ("--for", use, "--seq", str(seq), "--batch", str(batch), "--gpus", "4")
    tensors = run_on_an_l4(model, *words)
    if use == "qlora":
        subprocess.run([PYTHON, "-c", SAVE, model], check=True, capture_output=True)
    sharded = () if use == "qlora" else ("sharded",)
    holds(model, words, tensors, imagined(model, program, use, *sharded, world=4))


def test_the_cheapest_that_does_it_ends_the_search(model: Path) -> None:
    """The first GPU runs out of memory, the second does it, and the third is not run: it stays estimated. On one processor
    they are run one after the other."""
    words = ("--for", "full", "--seq", "4096", "--batch", "4", "--gpu", "t4,a10g,a40,h100-sxm")
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        some = planned(model, *words)
    finally:
        os.sched_setaffinity(0, processors)
    rows = {r["gpu"]: (r["verdict"], r["label"]) for r in some["rows"]}
    run = [name for name, (_, label) in rows.items() if label == "imagined"]
    assert rows["h100-sxm"] == ("fits", "estimated") and run and some["cheapest"] in run
    by_price = sorted(some["rows"], key=lambda r: r["price_usd_per_hour"])
    first = [r["gpu"] for r in by_price if r["gpu"] in run]
    assert first[-1] == some["cheapest"] and all(rows[name][0] != "fits" for name in first[:-1])
    assert any(n.startswith("imagined: with torch ") and "transformers " in n for n in some["notes"]), some["notes"]


def test_ctrl_c_keeps_what_is_known(model: Path) -> None:
    """On a terminal a use is run by itself, after the estimates were shown. Ctrl-C ends that, and the answer is whole."""
    words = [str(HIGHTIDE), "plan", str(model), "--for", "full", "--gpu", "l4,h100-sxm", "--python", str(PYTHON)]
    shell, terminal = pty.fork()
    if shell == 0:
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", HIGHTIDE_DATA=str(model / "data"))
        os.execv(HIGHTIDE, words)
    seen = ""
    try:
        while "imagining l4" not in seen:
            seen += os.read(terminal, 65536).decode(errors="replace")
        os.write(terminal, b"\x03")
        while "Nothing was imagined: it was interrupted." not in seen:
            seen += os.read(terminal, 65536).decode(errors="replace")
    finally:
        _, status = os.waitpid(shell, 0)
        os.close(terminal)
    before, _, after = seen.partition("^C")
    assert before.index("(estimated)") < before.index("Looking for a Python") < before.index("It is run with"), before
    assert "the cheapest GPU that fits is l4" in after and "largest batch" in after and "On l4, of each GPU" in after, (
        after
    )
    assert os.waitstatus_to_exitcode(status) == 0, seen


def test_what_is_missing_is_said(model: Path) -> None:
    other = CACHE / "torch-2.15.0/bin/python"
    code, _, err = asked("plan", model, "--for", "lora", "--imagine", "--python", other, folder=model)
    assert code == 4 and "has no peft" in err and "pip install peft" in err, err
    code, _, err = asked("plan", model, "--imagine", "--python", PYTHON, folder=model)
    assert code == 4 and "there is no vLLM beside" in err and "pip install vllm" in err, err
    code, _, err = asked("plan", model, "--for", "dpo", "--imagine", "--python", other, folder=model)
    assert code == 4 and "has no trl" in err, err
