"""The workloads of `hightide bench`, in the real frameworks: one architecture everywhere, each step told once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from conftest import SOURCE

CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
FRAMEWORKS = str(CACHE / "frameworks" / "bin" / "python")
MAIN = SOURCE / "hightide" / "_workload" / "main.py"

# Added up by hand. ResNet-18 with ten classes has as many in torchvision too.
PARAMETERS = {
    "lenet": 456 + 2416 + 48120 + 10164 + 850,
    "resnet18": 11_181_642,
    "transformer6": (30000 + 16) * 256 + 6 * (4 * 65792 + 263168 + 262400 + 4 * 256) + 2 * 256 + 2570,
}

BUILD = """
import json, sys
sys.path.insert(0, %r)
from hightide_agent import sdk
from hightide._workload.main import build, main
from hightide._workload.options import Options

framework, model, *more = sys.argv[1:]
built = {name: build(Options(framework, name, seq_len=16)).parameters for name in %r}
few = ["--batch", "2", "--seq-len", "16", "--steps", "2", "--warmup", "1"]
code = main(["--framework", framework, "--model", model, *few, *more])
print(json.dumps({"built": built, "steps": sdk.steps(), "code": code}))
"""


@pytest.mark.parametrize(
    ("framework", "more", "env"),
    [
        ("pytorch", [], {}),
        ("tensorflow", [], {}),
        ("keras", [], {"KERAS_BACKEND": "torch"}),
        ("jax", ["--mode", "inference"], {}),
    ],
)
def test_models_are_the_same_in_every_framework(
    observe: Any, framework: str, more: List[str], env: Dict[str, str]
) -> None:
    if framework != "pytorch" and not os.path.exists(FRAMEWORKS):
        pytest.skip(f"there is no {FRAMEWORKS}: scripts/setup makes it")
    first = "import torch\n" if framework == "pytorch" else ""
    python = sys.executable if framework == "pytorch" else FRAMEWORKS
    script = first + BUILD % (str(SOURCE), list(PARAMETERS))
    result = observe(script, framework, "lenet", *more, env=env, python=python)
    told = json.loads(result.out.splitlines()[-1])
    assert told == {"built": PARAMETERS, "steps": 3, "code": 0}
    assert {"type": "fact", "key": "parameters", "value": PARAMETERS["lenet"]} in result.main.all("fact")
    names = [span["name"] for told in result.main.all("spans") for span in told["spans"]]
    assert names == ["build", "warm-up", "steps"]


def test_resnet_is_the_one_of_torchvision() -> None:
    import torch
    import torchvision

    from hightide._workload import of_pytorch
    from hightide._workload.models import MODELS

    def sizes(model: Any) -> List[Any]:
        return sorted(tuple(p.shape) for p in model.parameters())

    ours = of_pytorch.resnet18(torch, MODELS["resnet18"], 0)
    theirs = torchvision.models.resnet18(num_classes=10)
    assert sizes(ours) == sizes(theirs)


def test_a_model_of_ones_own(observe: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def make():\n    return lambda n: print('batch of', n)\n")
    script = f"""
        import sys
        sys.path.insert(0, {str(SOURCE)!r})
        from hightide_agent import sdk
        from hightide._workload import own
        from hightide._workload.main import run
        from hightide._workload.options import Options
        options = Options("jax", "mine:make", batch=5, steps=2, warmup=1)
        run(own.build(options), options)
        print(sdk.steps())
    """
    assert observe(script).out.splitlines() == ["batch of 5"] * 3 + ["3"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["pytorch", "lenett"], 2, "no model named 'lenett'"),
        (["jax", "lenett"], 2, "no model 'lenett' in jax; there is lenet, resnet18"),
        (["pytorch", "lenet", "--device", "cuda"], 3, "reaches no GPU here"),
        (["tensorflow", "lenet"], 3, "python has no tensorflow"),
    ],
)
def test_what_cannot_run_says_why(words: List[str], code: int, said: str) -> None:
    framework, model, *more = words
    command = [sys.executable, str(MAIN), "--framework", framework, "--model", model, *more]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, said in last) == (code, True), done.stderr
