"""Unmodified scripts of pytorch/examples and of transformers: does `tune` make them fit, and is its peak the plan's?

    python3 bench/examples.py EXAMPLES [--transformers FOLDER] [NAME ...] [--share 0.8]

EXAMPLES is a checkout of https://github.com/pytorch/examples, FOLDER one of https://github.com/huggingface/transformers, whose
script needs the package `evaluate`, by PYTHONPATH. Nothing is changed in them and nothing is downloaded: what they read is made
here, in a copy of the script's folder. Each is imagined on an A10 with plenty of memory, tuned for one that has a share of what it
took, and imagined again with the plan, whose peak must be what tune said, to the byte. It needs `scripts/setup torch libraries`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, NamedTuple

from common import CACHE, HIGHTIDE, RESULTS, run

PYTHON = CACHE / "libraries" / "bin" / "python"
GiB = 1 << 30
ROOM = 120 * GiB


def digits(folder: Path) -> None:
    """MNIST's four files, of random pixels, where torchvision looks for them from the scripts' folder."""
    raw = folder.parent / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, count in (("train", 8192), ("t10k", 10_000)):
        head = (0x803).to_bytes(4, "big") + b"".join(n.to_bytes(4, "big") for n in (count, 28, 28))
        labels = (0x801).to_bytes(4, "big") + count.to_bytes(4, "big") + bytes(n % 10 for n in range(count))
        for name, text in (("images-idx3", head + os.urandom(count * 784)), ("labels-idx1", labels)):
            (raw / f"{part}-{name}-ubyte").write_bytes(text)
            with gzip.open(raw / f"{part}-{name}-ubyte.gz", "wb", 1) as file:
                file.write(text)


def words(folder: Path, name: str = "train.txt", lines: int = 8000) -> None:
    """Text of 10,000 words."""
    draw = random.Random(0)
    text = "\n".join(" ".join(f"w{draw.randrange(10_000)}" for _ in range(20)) for _ in range(lines))
    (folder / name).write_text(text + "\n")


def wikitext(folder: Path) -> None:
    place = folder / "data" / "wikitext-2"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in ("train", "valid", "test"):
        words(place, name + ".txt")


def tokenizer(folder: Path) -> None:
    """A text, and a tokenizer of its words."""
    words(folder)
    known = {name: n for n, name in enumerate(["[UNK]", *(f"w{n}" for n in range(10_000))])}
    model = {"type": "WordLevel", "vocab": known, "unk_token": "[UNK]"}
    made: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "model": model,
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None}  # fmt: skip
    place = folder / "tokenizer"
    place.mkdir()
    (place / "tokenizer.json").write_text(json.dumps(made))
    (place / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "model_max_length": 512})
    )


def nothing(folder: Path) -> None:
    """The script makes its data itself."""


class Example(NamedTuple):
    """A script, and what it is started with."""

    script: str
    arguments: str
    data: Callable[[Path], None] = nothing
    transformers: bool = False


GPT2 = (
    "--model_type gpt2 --block_size 256 --tokenizer_name tokenizer --train_file train.txt --validation_file train.txt "
    "--output_dir out"
)

EXAMPLES = {
    "imagenet-resnet50": Example("imagenet/main.py", "--dummy -a resnet50 -b 64 -j 1 --epochs 1"),
    "dcgan": Example("dcgan/main.py", "--dataset fake --accel --batchSize 256 --workers 0 --niter 1"),
    "lstm": Example("word_language_model/main.py", "--accel --epochs 1 --batch_size 512", wikitext),
    "transformer": Example(
        "word_language_model/main.py", "--accel --epochs 1 --model Transformer --batch_size 512 --nlayers 6", wikitext
    ),
    "mnist": Example("mnist/main.py", "--epochs 1 --batch-size 2048", digits),
    "vae": Example("vae/main.py", "--epochs 1 --batch-size 4096", digits),
    "siamese": Example("siamese_network/main.py", "--epochs 1 --batch-size 256", digits),
    "run_clm": Example(
        "examples/pytorch/language-modeling/run_clm.py",
        f"--do_train {GPT2} --per_device_train_batch_size 64 --max_steps 6 --save_strategy no --report_to none "
        "--config_overrides vocab_size=10001,n_embd=256,n_layer=6,n_head=4", tokenizer, True),
    "run_clm_no_trainer": Example(
        "examples/pytorch/language-modeling/run_clm_no_trainer.py",
        f"{GPT2} --per_device_train_batch_size 4 --max_train_steps 6", tokenizer, True),
}  # fmt: skip


class Trial:
    """One script, and what came of it."""

    def __init__(self, example: Example, checkout: Path, scratch: Path) -> None:
        script = checkout / example.script
        self.folder = scratch / script.parent.name
        shutil.copytree(script.parent, self.folder)
        example.data(self.folder)
        self.command = ["--", PYTHON, script.name, *example.arguments.split()]
        self.env = {
            "HIGHTIDE_DATA": str(scratch / "runs"),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(scratch / "hub"),
            "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
        }  # word_language_model loads the model that it saved whole

    def hightide(self, *arguments: object) -> Any:
        done = run([HIGHTIDE, *arguments, *self.command], env=self.env, cwd=self.folder)
        file = self.folder / "result.json"
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            return {"failed": (done.stderr or done.stdout)[-500:]}
        finally:
            file.unlink(missing_ok=True)

    def measure(self, share: float) -> dict[str, Any]:
        gpu = ["--gpu", "a10", "-q", "--json=result.json"]
        need = self.hightide("imagine", *gpu, "--memory", f"{ROOM >> 20}MiB", "--no-suggest")
        used = need.get("peak_device_used_bytes")
        if not used:
            return {"outcome": "no verdict", "said": need.get("failed", need.get("verdict"))}
        memory = f"{int(used * share) >> 20}MiB"
        tuned = self.hightide("tune", *gpu, "--memory", memory, "-o", "plan.toml")
        if "imagined_runs" not in tuned:
            return {"need_bytes": used, "outcome": "failed", "said": tuned.get("failed")}
        row = {"need_bytes": used, "memory": memory, "imagined_runs": tuned["imagined_runs"], "refused": tuned.get("refused", {}),
               "answer": tuned.get("answer"), "notes": tuned["notes"]}  # fmt: skip
        plan = tuned.get("recommended")
        if plan is None:
            return {**row, "outcome": "no plan fits"}
        again = self.hightide("imagine", *gpu, "--memory", memory, "--no-suggest", "--plan", "plan.toml")
        return {
            **row, "outcome": tuned["verdict"], "plan": next(p["what"] for p in tuned["points"] if p["plan"] == plan),
            "same_peak": again.get("peak_allocated_bytes") == plan["planned"]["peak_allocated_bytes"],
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", type=Path, help="a checkout of pytorch/examples")
    parser.add_argument("names", nargs="*", default=[], help=", ".join(EXAMPLES))
    parser.add_argument("--transformers", type=Path, help="a checkout of huggingface/transformers")
    parser.add_argument("--share", type=float, default=0.8, help="of what a script takes, the memory of the GPU")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for name in options.names or EXAMPLES:
        example = EXAMPLES[name]
        checkout = options.transformers if example.transformers else options.examples
        if checkout is None:
            print(f"{name:20} not run: --transformers names no checkout")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            row = rows[name] = Trial(example, checkout.resolve(), Path(scratch)).measure(options.share)
        print(f"{name:20} {row['outcome']:12} takes {row.get('need_bytes', 0) >> 20} MiB, GPU {row.get('memory', '-')}, "
              f"{row.get('imagined_runs', 0)} runs, peak {row.get('same_peak', '-')}: {row.get('plan', row.get('said', ''))}\n"
              f"{'':20} {row.get('answer', '')} {' '.join(row.get('notes', []))}", flush=True)  # fmt: skip
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "examples.json").write_text(json.dumps(rows, indent=1))
    wrong = [name for name, row in rows.items() if not row.get("same_peak", True) or "said" in row]
    print(
        f"{sum('plan' in row for row in rows.values())} of {len(rows)} fit with a plan; wrong: {', '.join(wrong) or 'none'}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
