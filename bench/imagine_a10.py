"""Imagine what was published for a real A10, and check each answer by running its neighbours plainly.

    python3 bench/imagine_a10.py [--quick]

MemoryMark's figures (BERT base, GPT-2, ResNet-50; forward and backward, eval mode, steps of 8) were
measured on a real A10. `hightide fit` must give the same batches and peaks within 2 %; then other
settings and granularity 1, where nothing was published: both neighbours of each answer are run by
themselves, without the search, and peaks must rise with the batch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import HIGHTIDE, PYTHON, ROOT

# model: (largest batch, peak in GiB at it), as published
PUBLISHED = {"bert": (288, 21.33), "gpt2": (152, 21.3), "resnet": (264, 21.5)}

OTHERS = [
    ["bert", "--step", "1"],
    ["gpt2", "--step", "1"],
    ["resnet", "--step", "1"],
    ["bert", "--step", "1", "--seq-len", "512"],
    ["bert", "--step", "1", "--dtype", "bf16"],
    ["bert", "--step", "1", "--train", "--optimizer", "adamw"],
    ["gpt2", "--step", "1", "--amp", "fp16"],
    ["gpt2", "--step", "1", "--train", "--optimizer", "sgd"],
    ["resnet", "--step", "1", "--image-size", "299"],
    ["resnet", "--step", "1", "--train", "--optimizer", "adam"],
]

# A trial without the search: one process, the model's step by the worker's own functions.
PLAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
from hightide._fit import models, trial, training
from hightide._fit.options import Options
options = Options(**json.loads(sys.argv[2]))
workload = models.lookup(options)
training.prepare(workload, options)
step = training.step_function(workload, options)
print(json.dumps(trial.run(step, int(sys.argv[3]), False, training.steps_needed(options, False), "cuda", False)))
"""


def fit(arguments: list[str]) -> dict[str, Any]:
    command = [HIGHTIDE, "fit", "--gpu", "a10", "--python", PYTHON, "--quiet", "--json", "--model", *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


FLAGS = {"--seq-len": ("seq_len", int), "--image-size": ("image_size", int), "--dtype": ("dtype", str)}
FLAGS |= {"--amp": ("amp", str), "--optimizer": ("optimizer", str)}


def options_of(arguments: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"model": arguments[0], "train": "--train" in arguments}
    for flag, (name, kind) in FLAGS.items():
        if flag in arguments:
            options[name] = kind(arguments[arguments.index(flag) + 1])
    return options


def plainly(folder: Path, arguments: list[str], batch: int) -> bool:
    """Whether a batch runs by itself, in a process of its own under `hightide imagine`."""
    script = folder / "plain.py"
    script.write_text(PLAIN)
    source = ROOT / "agent" / "python" / "src"
    command = [HIGHTIDE, "imagine", "--gpu", "a10", "--no-suggest", "--quiet", "--steps", "0", "--data-dir", folder]
    command += ["--", PYTHON, script, source, json.dumps(options_of(arguments)), batch]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(f"plain run of {arguments} at {batch} said nothing:\n{done.stdout}{done.stderr}")
    return bool(json.loads(lines[-1])["ok"])


def rises(answer: dict[str, Any]) -> bool:
    """Peaks of batches that fit never fall as the batch grows."""
    fits = sorted((t["batch"], t["peak_allocated_bytes"]) for t in answer["trials"] if t["ok"])
    return all(a[1] <= b[1] for a, b in zip(fits, fits[1:]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the published figures only")
    quick = parser.parse_args().quick
    missed = 0
    for model, (batch, peak) in PUBLISHED.items():
        answer = fit([model, "--step", "8"])
        best = max((t for t in answer["trials"] if t["ok"]), key=lambda t: t["batch"])
        got = best["peak_allocated_bytes"] / 2**30
        good = answer["largest_batch"] == batch and abs(got / peak - 1) <= 0.02
        missed += not good
        print(
            f"{model:7} steps of 8: {answer['largest_batch']} (published {batch}), peak {got:.2f} GiB "
            f"(published {peak}, {100 * (got / peak - 1):+.1f} %), {len(answer['trials'])} trials, "
            f"{answer['duration_ns'] / 1e9:.0f} s {'' if good else 'MISSED'}"
        )
    if quick:
        return missed > 0
    with tempfile.TemporaryDirectory() as name:
        for arguments in OTHERS:
            answer = fit(arguments)
            largest = answer["largest_batch"]
            neighbours = plainly(Path(name), arguments, largest), plainly(Path(name), arguments, largest + 1)
            good = neighbours == (True, False) and rises(answer)
            missed += not good
            print(
                f"{' '.join(arguments):45} {largest}, plainly {largest} fits: {neighbours[0]}, {largest + 1} fits: "
                f"{neighbours[1]}, {len(answer['trials'])} trials, peaks rise: {rises(answer)} {'' if good else 'MISSED'}"
            )
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
