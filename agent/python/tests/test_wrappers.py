"""What the agent puts in a function's place takes every call that the function takes."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from conftest import observed_environment
from test_imagine_device import LIBRARY, device

CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))

# Prints the signatures of all functions that modules and their classes have by name: of the agent's, or of those named.
SIGNATURES = """
import inspect, json, os, sys, types
wanted = set(json.loads(sys.stdin.read() or "[]"))

def parameters(function):
    bound = type(getattr(function, "__wrapped__", None)) is types.MethodType  # a copy of a class's own
    try:
        found = inspect.signature(function, follow_wrapped=bool(wanted) and not bound)
    except (ValueError, TypeError):
        return None
    all = found.parameters.values()
    return [(p.name, p.kind.value, None if p.default is p.empty else repr(p.default)) for p in all]

def functions(name, variables, depth):
    for key, value in list(variables.items()):
        path = "%s %s" % (name, key) if not depth else "%s.%s" % (name, key)
        if type(value) in (classmethod, staticmethod):
            value = value.__func__
        if issubclass(type(value), type) and not depth:
            yield from functions(path, type.__dict__["__dict__"].__get__(value), 1)
        yield path, value

out = {}
for name, module in list(sys.modules.items()):
    if isinstance(module, types.ModuleType) and name.split(".")[0] not in ("hightide_agent", "sitecustomize"):
        for path, function in functions(name, vars(module), 0):
            ours = type(function) is types.FunctionType and "/hightide_agent/" in function.__code__.co_filename
            if path in wanted or (not wanted and ours):
                out[path] = parameters(function)
os.write(1, b"SIGNATURES" + json.dumps(out).encode())
"""

TORCH = """
import torch, torch.utils.data, torch.optim, torch.nn.init
import torch.distributed.launcher.api, torch.distributed.fsdp, torch.distributed._symmetric_memory
import torch._inductor.runtime.triton_heuristics, torch.distributed._functional_collectives, ctypes
try: import transformers.modeling_utils, transformers.trainer, transformers.models.auto.auto_factory, safetensors.torch
except ImportError: pass
try: import transformers.generation.utils
except ImportError: pass
"""
FRAMEWORKS = {
    "jax": "import jax; jax.jit(lambda x: x + 1)(1)",
    "keras": "import os; os.environ['KERAS_BACKEND'] = 'jax'; import keras; keras.Model",
    "tensorflow": "import tensorflow as tf; tf.function(lambda x: x + 1)(1)",
    "lightning": "import torch, lightning.pytorch",
}
BESIDE = {
    "frameworks": ("import torch, lightning.pytorch", "lightning.pytorch.trainer.trainer Trainer.fit"),
    "deepspeed": ("import torch, deepspeed.launcher.runner", "deepspeed.launcher.runner main"),
}
"""Environments of libraries that are wrapped where GPUs are imagined alone, and one function of each."""
EVERYTHING = {
    "HIGHTIDE_IMAGINE_FAKE_WEIGHTS": "1", "HIGHTIDE_IMAGINE_SWITCH": "bf16", "HIGHTIDE_IMAGINE_LONGEST": "1",
    "HIGHTIDE_IMAGINE_UNTIL": "evaluation,checkpoint", "HIGHTIDE_IMAGINE_STEPS": "auto",
}  # fmt: skip

Parameters = List[Tuple[str, int, Any]]


def signature(parameters: Parameters) -> inspect.Signature:
    kinds = list(inspect._ParameterKind)
    made = [inspect.Parameter(n, kinds[k], default=inspect.Parameter.empty if d is None else d)
            for n, k, d in parameters]  # fmt: skip
    return inspect.Signature(made)


def calls(original: Parameters, ours: Parameters) -> Iterator[Tuple[List[str], Dict[str, str]]]:
    """Calls that the original takes, as (positional, by name)."""
    P = inspect.Parameter
    positional = [n for n, k, _ in original if k in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)]
    only = [n for n, k, _ in original if k == P.POSITIONAL_ONLY]
    first = max(len(only), int(positional[:1] in (["self"], ["cls"])))
    required = [n for n, k, d in original if k == P.POSITIONAL_OR_KEYWORD and d is None]
    names = {n: n for n, k, d in original if k == P.KEYWORD_ONLY and d is None}
    every = {n: n for n, k, _ in original if k == P.KEYWORD_ONLY}
    more = [n for n, k, _ in original if k == P.VAR_POSITIONAL]
    any_name = [n for n, k, _ in original if k == P.VAR_KEYWORD]
    yield positional, every
    yield only + required, names
    yield positional[:first], {**{n: n for n in positional[first:]}, **every}
    yield positional[:first], {**{n: n for n in required if n not in positional[:first]}, **names}
    if more:
        yield positional + ["one", "two"], every
    if any_name:  # also a name that the wrapper may have for something else
        taken = {n for n, *_ in original}
        yield positional, {**every, "any": "", **{n: n for n, *_ in ours if n not in taken}}


def check(ours: Dict[str, Any], originals: Dict[str, Any]) -> List[str]:
    wrong = []
    for path, mine in ours.items():
        original = originals.get(path)
        if original is None:  # of C, without a signature, or of the agent alone
            continue
        taken = signature(mine)
        for args, kwargs in calls(original, mine):
            try:
                taken.bind(*args, **kwargs)
            except TypeError as error:
                wrong.append("%s%s: %s (%s; %s)" % (path, taken, error, args, kwargs))
        defaults = {n: d for n, _, d in original}
        wrong += ["%s: %s=%s, not %s" % (path, n, d, defaults[n]) for n, _, d in mine
                  if d is not None and n in defaults and defaults[n] not in (None, d)]  # fmt: skip
    return wrong


def signatures(python: str, script: str, env: Dict[str, str], wanted: List[str], folder: Path) -> Dict[str, Any]:
    done = subprocess.run(
        [python, "-c", script + "\n" + SIGNATURES], env={**os.environ, **env}, input=json.dumps(wanted), text=True,
        capture_output=True, timeout=600, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: Dict[str, Any] = json.loads(done.stdout.partition("SIGNATURES")[2])
    return found


def observed(folder: Path, **more: str) -> Dict[str, str]:
    channels = folder / ("channels%d" % len(list(folder.glob("channels*"))))
    channels.mkdir(mode=0o700)
    return observed_environment(channels, **more)


@pytest.mark.parametrize("how", ["observed", "imagined", "played"])
def test_what_is_wrapped_of_pytorch_takes_the_same_calls(tmp_path: Path, how: str) -> None:
    pytest.importorskip("torch", reason="needs torch: scripts/setup puts one in place")
    if how != "observed" and not (LIBRARY / "libhightide_device.so").exists():
        pytest.skip("device/lib is not built: make device")
    more = {} if how == "observed" else {**device(tmp_path, 2), **EVERYTHING}
    if how == "imagined":
        more["HIGHTIDE_IMAGINE_SANDBOX"] = str(tmp_path / "box")
    if how == "played":
        more.update(HIGHTIDE_IMAGINE_PLAY="0/2", HIGHTIDE_DEVICE_PLAY="1")
    ours = signatures(sys.executable, TORCH, observed(tmp_path, **more), [], tmp_path)
    least = {"observed": 8, "imagined": 50, "played": 60}[how]
    assert len(ours) >= least, sorted(ours)
    wrong = check(ours, signatures(sys.executable, TORCH, {}, list(ours), tmp_path))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("environment", list(BESIDE))
def test_what_is_wrapped_of_libraries_on_imaginary_gpus_takes_the_same_calls(tmp_path: Path, environment: str) -> None:
    python = CACHE / environment / "bin" / "python"
    if not python.exists():
        pytest.skip("needs %s: scripts/setup puts it in place" % environment)
    if not (LIBRARY / "libhightide_device.so").exists():
        pytest.skip("device/lib is not built: make device")
    script, one = BESIDE[environment]
    more = {**device(tmp_path, 2), **EVERYTHING, "HIGHTIDE_IMAGINE_PLAY": "0/2", "HIGHTIDE_DEVICE_PLAY": "1"}
    ours = signatures(str(python), script, observed(tmp_path, **more), [], tmp_path)
    assert one in ours, sorted(ours)
    wrong = check(ours, signatures(str(python), script, {}, list(ours), tmp_path))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("framework", list(FRAMEWORKS))
def test_what_is_wrapped_of_other_frameworks_takes_the_same_calls(tmp_path: Path, framework: str) -> None:
    python = CACHE / "frameworks" / "bin" / "python"
    if not python.exists():
        pytest.skip("needs the frameworks: scripts/setup puts them in place")
    script = FRAMEWORKS[framework]
    ours = signatures(str(python), script, observed(tmp_path), [], tmp_path)
    assert ours
    wrong = check(ours, signatures(str(python), script, {}, list(ours), tmp_path))
    assert not wrong, "\n".join(wrong)
