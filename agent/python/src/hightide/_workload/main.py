"""python main.py --framework pytorch --model lenet --batch 32 …: build a model and run its steps.

Under `hightide run` the steps are marked, spans tell building, warm-up and steps apart, and the count of parameters is
told. Without it, the same program runs and nothing is told.

Exit: 0 done, 1 it failed, 2 wrong usage, 3 it cannot run here. The last line on standard error then says why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from typing import Any, Dict, List

if __package__ in (None, ""):  # run as a file, from wherever hightide unpacked it
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    __package__ = "hightide._workload"

import hightide
from hightide import _engine
from hightide._workload import own
from hightide._workload.models import MODELS
from hightide._workload.of_files import RUNTIMES
from hightide._workload.options import DTYPES, FILE_DTYPES, Built, Options, Unavailable, Unknown

# What --framework names, and the file here that builds with it. A new framework is a line here.
FRAMEWORKS: Dict[str, str] = {
    "pytorch": "of_pytorch",
    "tensorflow": "of_tensorflow",
    "keras": "of_keras",
    "jax": "of_jax",
}

USAGE, UNAVAILABLE = 2, 3


def main(words: List[str]) -> int:
    """Run what the words ask for; the exit code."""
    if words == ["--list"]:  # what there is, for those who check names before they start anything
        known: Dict[str, Dict[str, Any]] = {
            "frameworks": {**FRAMEWORKS}, "models": {**MODELS}, "dtypes": {**DTYPES}, "runtimes": {**RUNTIMES},
        }  # fmt: skip
        print(json.dumps({**{key: list(names) for key, names in known.items()}, "file_dtypes": FILE_DTYPES}))
        return 0
    options = parse(words)
    try:
        if not options.runtime and options.model not in MODELS:
            own.check(options.model)
        with hightide.span("build"):
            built = build(options)
        if built.parameters is not None:
            tell("parameters", built.parameters)
        run(built, options)
    except Unknown as error:
        return _say(f"{error}{'; ' if error.hint else ''}{error.hint}", USAGE)
    except Unavailable as error:
        return _say(str(error), UNAVAILABLE)
    except Exception as error:
        if options.dtype == "fp32" or not _of_type(error):
            raise
        first = str(error).strip().partition("\n")[0]
        return _say(f"{options.framework} has no {options.dtype} for this on {options.device}: {first}", UNAVAILABLE)
    return 0


def build(options: Options) -> Built:
    """The model in the framework that is asked for.

    Raises:
        Unavailable: the framework is not installed, or it cannot do that here.
        Unknown: there is no such model.
    """
    module: Any = import_module("." + FRAMEWORKS.get(options.framework, "of_files"), __package__)
    package = RUNTIMES[options.runtime].package if options.runtime else module.PACKAGE
    try:
        import_module("numpy")
        built: Built = module.build(options)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in (package, "numpy"):
            raise Unavailable(f"{sys.executable} has no {missing}") from error
        raise
    return built


def run(built: Built, options: Options) -> None:
    """Take the steps. One that the framework's adapter did not see is marked here."""
    for name, count in (("warm-up", options.warmup), ("steps", options.steps)):
        with hightide.span(name):
            for _ in range(count):
                before = _steps_seen()
                built.step(options.batch)
                if _steps_seen() == before:
                    hightide.step()


def tell(key: str, value: int) -> None:
    """State a fact of this process, where it is recorded."""
    sdk = _engine.agent()
    agent = sdk.agent() if sdk is not None else None
    if agent is not None:
        agent.fact(key, value)


def _steps_seen() -> int:
    sdk = _engine.agent()
    return int(sdk.steps()) if sdk is not None else 0


def _of_type(error: Exception) -> bool:
    """Whether a framework says that it has no kernel for a type."""
    text = str(error)
    said = ("not implemented for", "No registered", "Could not find device for node", "UNIMPLEMENTED", "Unimplemented")
    return isinstance(error, NotImplementedError) or any(words in text for words in said)


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"hightide: {text}\n")
    return code


def parse(words: List[str]) -> Options:
    """What the words ask for. Wrong ones end the program."""
    p = argparse.ArgumentParser(prog="workload", description="Build a model and run some steps of it.")
    by = p.add_mutually_exclusive_group(required=True)
    by.add_argument("--framework", choices=list(FRAMEWORKS))
    by.add_argument("--runtime", choices=list(RUNTIMES), default="")
    p.add_argument("--model", required=True, help=f"{', '.join(MODELS)}, or module:function; for a runtime a file")
    p.add_argument("--batch", type=_count, help="default: 32; for a runtime as the file has it, else 1")
    p.add_argument("--mode", choices=["train", "inference"], help="default: train; for a runtime inference")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--dtype", choices=FILE_DTYPES, default="fp32")
    p.add_argument("--seq-len", type=_count, default=128)
    p.add_argument("--steps", type=_count, default=10)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    given = p.parse_args(words)
    if given.runtime:
        if given.mode == "train" or given.device != "cpu":
            p.error(f"{given.runtime} infers, on cpu")
        given.framework, given.mode, given.batch = "", "inference", given.batch or 0
        return _options(given)
    given.mode, given.batch = given.mode or "train", given.batch or 32
    if given.dtype not in DTYPES:
        p.error(f"no dtype {given.dtype} for a framework; there is {', '.join(DTYPES)}")
    if given.model not in MODELS and ":" not in given.model and given.framework != "pytorch":
        p.error(f"no model {given.model!r} in {given.framework}; there is {', '.join(MODELS)}, or module:function")
    return _options(given)


def _options(given: argparse.Namespace) -> Options:
    fields = vars(given)
    fields["train"] = fields.pop("mode") == "train"
    return Options(**fields)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
