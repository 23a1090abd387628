"""hightide.fit: the largest batch of a step that the user's own program runs.

step(n) ◀── trial.run ◀── ask ── hightide fit --serve (plans; the same search as the command's)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

from .. import _engine, _settings
from . import trial


@dataclass(frozen=True)
class Trial:
    """One batch size that was tried. Bytes are None where they are not known.

    Attributes:
        batch: how many samples.
        ok: whether the steps ran within the memory there was.
        peak_allocated_bytes: what PyTorch's allocator handed out at the most.
        peak_reserved_bytes: what it held from the device at the most.
        device_used_bytes: of the device, everything in it.
        step_time_ns: of a step, in nanoseconds.
        problem: why it is not ok; empty where it is.
        label: measured or imagined.
    """

    batch: int
    ok: bool
    peak_allocated_bytes: Optional[int] = None
    peak_reserved_bytes: Optional[int] = None
    device_used_bytes: Optional[int] = None
    step_time_ns: Optional[int] = None
    problem: str = ""
    label: str = ""


@dataclass(frozen=True)
class Fit:
    """What fit found.

    Attributes:
        largest_batch: 0 where not even the smallest fits.
        trials: in the order they were run.
        data: the whole answer, as `hightide fit --json` prints it.
    """

    largest_batch: int
    trials: List[Trial]
    data: Dict[str, Any] = field(repr=False)

    @property
    def report(self) -> Dict[str, Any]:
        """An earlier name of `data`."""
        return self.data

    def __str__(self) -> str:
        return f"largest batch {self.largest_batch} ({self.data['label']}), {len(self.trials)} trials"


def fit(
    step: Callable[[int], Any],
    *,
    granularity: int = 1,
    first: int = 8,
    most: int = 0,
    headroom: float = 0.0,
    steps: int = 2,
    current: int = 0,
    grad_accum: int = 0,
    price: float = 0.0,
) -> Fit:
    """Find the largest batch for which step(batch) runs, on the device it uses.

    Args:
        step: runs one whole training step of that many samples, from making the batch to the
            optimizer. It is run `steps` times a trial: state that the first makes burdens the second.
            Its side effects are real: give it a copy of a model that you want to keep.
        granularity: only multiples of it are tried.
        first: where to begin.
        most: never beyond; 0: no limit.
        headroom: share of the device to leave free, 0.05 for 5 %.
        steps: how often to run a step before its peak counts.
        current: the batch in use now, to say what it leaves unused; 0: 16.
        grad_accum: the batch that gradient accumulation is to be planned towards; 0: none.
        price: of the GPU in USD an hour; 0: the catalogue's.
    Returns:
        The answer with its trials; imagined where the device is one of hightide's imaginary GPUs.
    Raises:
        ValueError: an argument is out of range.
        RuntimeError: a trial failed for another reason than memory, hightide itself failed, or there is no PyTorch.
        FileNotFoundError: hightide's program is not installed with this package.
        TypeError: step is not a function.
    """
    if not callable(step):
        raise TypeError(f"fit runs step(batch), and {step!r} cannot be called")
    least = {"most": most, "current": current, "grad_accum": grad_accum, "price": price}
    if granularity < 1 or first < 1 or steps < 1 or min(least.values()) < 0 or not 0 <= headroom < 1:
        raise ValueError(
            f"granularity, first and steps are at least 1, {', '.join(least)} at least 0, and headroom a share of the "
            "device, as 0.05"
        )
    try:
        import torch
    except ImportError:
        raise RuntimeError(f"fit measures steps of PyTorch, which {sys.executable} does not have") from None

    import hightide

    device = "cuda" if torch.cuda.is_available() else "cpu"
    imagined = "HIGHTIDE_DEVICE_SPEC" in os.environ and device == "cuda"
    given = {"granularity": granularity, "first": first, "headroom": f"{100 * headroom}%"}
    given.update({name: value for name, value in least.items() if value})
    flags = _engine.flags(_settings.FIT, given) + (["--imagined"] if imagined else [])
    planner = subprocess.Popen(
        [hightide.binary(), "fit", "--serve", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert planner.stdin is not None and planner.stdout is not None
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    ready = {"model": getattr(step, "__qualname__", "step"), "device": name, "python": sys.executable}
    _say(planner.stdin, {**ready, "versions": {"torch": torch.__version__}})
    answer: Dict[str, Any] = {}
    with planner:
        for line in planner.stdout:
            message = json.loads(line)
            if "batch" not in message:
                answer = message
                break
            n = message["batch"]
            result = trial.run(lambda n, _: step(n), n, False, steps, device, timed=not imagined)
            _say(planner.stdin, result)
        planner.stdin.close()
    if not answer or "error" in answer:
        raise RuntimeError(answer.get("error", f"hightide fit ended with exit code {planner.returncode}"))
    known = Trial.__dataclass_fields__
    trials = [Trial(**{k: v for k, v in t.items() if k in known}) for t in answer["trials"]]
    return Fit(answer["largest_batch"], trials, answer)


def _say(pipe: Any, line: Dict[str, Any]) -> None:
    pipe.write(json.dumps(line) + "\n")
    pipe.flush()
