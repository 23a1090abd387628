"""python worker.py OPTIONS: builds the model, then runs one trial for each line of its input.

Lines of JSON on the descriptor that was standard output; what models print goes to standard error.
CUDA must not be started before the fork: a fork of a process that started it cannot use it.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from typing import Any, Dict

if __package__ in (None, ""):  # run as a file, from wherever hightide unpacked it
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    __package__ = "hightide._fit"

from hightide._fit import names, trial
from hightide._fit.options import Options


def main() -> int:
    """Serve trials until the input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    options = Options.parse(sys.argv[1])
    try:
        step_of_child, ready = _build(options)
    except Exception as error:
        _say(out, {"problem": trial.describe(error), "hint": getattr(error, "hint", "")})
        return 1
    _say(out, ready)
    for line in sys.stdin:
        ask = json.loads(line)
        _say(out, _in_a_fork(step_of_child, ask["batch"], bool(ask.get("forward_only"))))
    return 0


def _build(options: Options) -> Any:
    """Import and build what all trials share; return the function that runs one, and the greeting."""
    names.check(options)
    try:
        import torch
    except ImportError as error:
        raise names.Unknown(f"{sys.executable} has no torch: {error}") from error
    from hightide._fit import models, training

    torch.set_num_threads(1)  # a fork of a process with OpenMP threads hangs in the first parallel region

    def built() -> Any:
        with training.weights_left_alone() if options.imagined else _nothing():
            workload = models.lookup(options)
            training.prepare(workload, options)
        return workload

    function = models.function_of(options)  # what it makes may live on the device, which a fork cannot share
    shared = None if function else built()

    def one(batch: int, forward_only: bool) -> Dict[str, Any]:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0))))
        if options.device == "cpu":
            _limit(options)
        step = training.step_function(shared or built(), options)
        steps = training.steps_needed(options, forward_only)
        return trial.run(step, batch, forward_only, steps, options.device, timed=not options.imagined)

    versions = {"torch": torch.__version__, "python": sys.version.split()[0]}
    for name in ("torchvision", "transformers"):
        if name in sys.modules:
            versions[name] = getattr(sys.modules[name], "__version__", "")
    ready: Dict[str, Any] = {
        "model": options.model,
        "description": shared.description if shared else f"{options.model}, called for each batch",
        "versions": versions,
        "python": sys.executable,
        "arch_list": " ".join(
            sorted(set(re.findall(r"code=((?:sm|compute)_\w+)", torch.__config__.show())))
        ),  # asked so, CUDA is not started
        "cuda": torch.version.cuda or "",
    }
    if shared and shared.model is not None:
        ready["parameters"] = sum(p.numel() for p in shared.model.parameters())
    return one, ready


def _limit(options: Options) -> None:
    """Have the allocator fail before the machine does."""
    limit = options.limit_bytes or trial.available()
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _in_a_fork(work: Any, batch: int, forward_only: bool) -> Dict[str, Any]:
    """Run work in a child and bring its result back; a child that dies is an error, not a silence."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            try:
                result = work(batch, forward_only)
            except Exception as error:  # before the first step: building on the device
                result = {"batch": batch, "ok": False}
                result["problem" if trial.ran_out(error) else "error"] = trial.describe(error)
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(result, pipe)
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    failed: Dict[str, Any] = {"batch": batch, "ok": False}
    if os.WIFSIGNALED(status):
        signal = os.WTERMSIG(status)
        if signal == 9:
            return {**failed, "problem": "killed (signal 9), as the kernel does when memory runs out"}
        return {**failed, "error": f"the trial died of signal {signal}"}
    if not text:
        return {**failed, "error": f"the trial ended with exit code {os.WEXITSTATUS(status)} and said nothing"}
    answer: Dict[str, Any] = json.loads(text)
    return answer


def _say(out: Any, line: Dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # hightide says so; a traceback of ours would say nothing
        os._exit(130)
