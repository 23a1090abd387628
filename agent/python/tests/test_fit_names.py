"""Model names of `hightide fit`: told before anything is imported, and as the frameworks themselves tell them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from hightide._fit import names

WORKER = Path(names.__file__).with_name("worker.py")
TRAP = "import sys; sys.exit('a framework was imported')"


def refused(folder: Path, model: str, **more: str) -> Dict[str, str]:
    """What the worker says of a model, in a folder where importing a framework ends the process."""
    for package in ("torch", "torchvision", "transformers"):
        (folder / package).mkdir(exist_ok=True)
        (folder / package / "__init__.py").write_text(TRAP)
    vision, auto = folder / "torchvision" / "models", folder / "transformers" / "models" / "auto"
    vision.mkdir(exist_ok=True)
    (vision / "resnet.py").write_text(
        "@register_model()\n@legacy(\n    a=('b', 1),\n)\ndef resnet50(*, weights=None):\n    pass\n"
    )
    auto.mkdir(parents=True, exist_ok=True)
    (auto / "configuration_auto.py").write_text('NAMES = {"evo": "EvoConfig"}\n')
    (auto / "auto_mappings.py").write_text(
        'CONFIG_MAPPING_NAMES = OrderedDict([\n    ("llama4", "Llama4Config"),\n])\n'
    )
    env = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(WORKER), json.dumps({"model": model, **more})]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, input="", check=False)
    assert "a framework was imported" not in done.stderr
    assert done.returncode == 1, done.stderr
    answer: Dict[str, str] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("model", "problem", "hint"),
    [
        ("resnet51", "did you mean resnet or resnet50?", "torchvision's, as resnet50"),
        ("ResNet-50", "did you mean resnet50?", ""),
        ("llama-4", "did you mean llama4?", ""),
        ("bert-base-uncased", "did you mean bert?", ""),
        ("somebody/Llama-3.1-8B", "did you mean llama?", "--size 8b"),
        ("./nowhere/config.json", "there is no file ./nowhere/config.json", "a folder with one"),
        ("broken.json", "broken.json is not a transformers config: it is not JSON", "config.json"),
        ("untyped.json", "it has no model_type", '"model_type": "llama"'),
        ("typed.json", "of model type 'lama4', which the transformers of", "did you mean llama4"),
        ("./empty", "./empty has no config.json", ""),
        ("own.py:make", "name the module, not its file", "--model own:make"),
        ("own:mak", "has no mak", "did you mean make?"),
        ("nobody:make", "no module nobody in", "run hightide where nobody.py lies"),
        ("own:", "names no function", "train:make"),
    ],
)
def test_a_wrong_name_is_refused_before_a_framework_is_imported(
    tmp_path: Path, model: str, problem: str, hint: str
) -> None:
    (tmp_path / "own.py").write_text("import torch\n\ndef make():\n    pass\n")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "untyped.json").write_text("{}")
    (tmp_path / "typed.json").write_text('{"model_type": "lama4"}')
    (tmp_path / "empty").mkdir()
    answer = refused(tmp_path, model)
    assert problem in answer["problem"]
    assert hint in answer["hint"]


def test_a_wrong_size_is_refused_with_those_there_are(tmp_path: Path) -> None:
    assert "bert has no sizes" in refused(tmp_path, "bert", size="8b")["problem"]
    answer = refused(tmp_path, "qwen", size="8b")
    assert "no size '8b' of qwen" in answer["problem"]
    assert "0.5b, 1.5b, 7b" in answer["hint"]


def test_a_function_that_may_come_from_elsewhere_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("from torch import *\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names._check_function("shop:make")


def test_the_names_are_those_that_the_packages_register() -> None:
    torchvision = pytest.importorskip("torchvision", reason="needs torchvision")
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    assert names.torchvision_names() == set(torchvision.models.list_models(module=torchvision.models))
    assert names.transformers_types() == set(transformers.CONFIG_MAPPING)
