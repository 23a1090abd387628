"""A function of the program on a GPU that is not there: `hightide imagine` in a process of its own.

imagine(step, gpu="a10") ─▶ how to find the function, and its arguments, in a file
                         ─▶ hightide imagine -- python -m hightide._call FILE ─▶ verdict, peak, lines
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _engine, _settings
from ._moments import Line

OUT_OF_MEMORY = 1  # the command's exit code


@dataclass(frozen=True)
class Imagined:
    """What an imaginary GPU said; true where it fits. Bytes are None where the run did not get that far.

    Attributes:
        verdict: fits, tight (with less room than the figures are sure of), conditional (fits, if numbers that nobody
            computed are as taken: see `conditions`), oom, or unused (no GPU was touched).
        gpu: its name, as in `hightide gpus`.
        peak_bytes: of the device, everything in it.
        allocated_bytes: what PyTorch's allocator had handed out at its own peak.
        reserved_bytes: what it held from the device at the most.
        total_bytes: of the GPU.
        headroom_bytes: what the peak leaves of it.
        run: its recording: hightide.report(run).
        data: all that `hightide imagine --json` says.
    """

    verdict: str
    gpu: str
    peak_bytes: Optional[int]
    allocated_bytes: Optional[int]
    reserved_bytes: Optional[int]
    total_bytes: Optional[int]
    headroom_bytes: Optional[int]
    run: str
    data: Dict[str, Any] = field(repr=False)

    def __bool__(self) -> bool:
        return self.verdict in ("fits", "tight")

    @property
    def conditions(self) -> List[str]:
        """The numbers that a conditional verdict rests on, each with its line and the value that was taken."""
        return [f"{one['file']}:{one['line']} is {one['value']}" for one in self.data.get("undecided") or []]

    @property
    def lines(self) -> List[Line]:
        """The lines that held the peak, most bytes first; exact."""
        return [
            Line(line["file"], line["line"], line.get("function") or "", line["bytes"], 0)
            for line in self.data.get("peak_lines") or []
        ]

    def __str__(self) -> str:
        peak = "" if self.peak_bytes is None else f", {self.peak_bytes / 2**30:.2f} GiB at the peak"
        return f"{self.verdict} on {self.data.get('gpu_name') or self.gpu}{peak} (imagined)"


def imagine(
    function: Callable[..., Any],
    *arguments: Any,
    gpu: str = "a10",
    gpus: int = 1,
    memory: str = "",
    settings: Optional[_settings.ImagineSettings] = None,
    **named: Any,
) -> Imagined:
    """Run function(*arguments) in a process of its own, on GPUs that only account for memory: does it fit?

    Args:
        function: of a module or of the program's own file. One of a notebook, or with variables of a function around
            it, needs the package cloudpickle. The file is imported in the process: what is to happen once stands
            behind `if __name__ == "__main__"`.
        gpu: a name as in `hightide gpus`.
        gpus: how many of them the machine has.
        memory: another size of their memory, as "24GiB".
        settings: what else `hightide imagine` takes, by the names of its flags, as {"alloc_conf":
            "expandable_segments:True", "steps": "20"}. What would make it fit is tried with {"suggest": True} alone.
    Raises:
        ValueError: there is no such GPU or setting, or the function cannot be sent.
        RuntimeError: the function failed for a reason of its own, or nothing can be imagined here.
        FileNotFoundError: hightide's program is not installed with this package.
        TypeError: what was given is not a function.
    """
    if not callable(function):
        raise TypeError(f"imagine runs a function, and {function!r} cannot be called")
    options = _engine.flags(_settings.IMAGINE, settings or {})
    with tempfile.TemporaryDirectory(prefix="hightide-") as folder:
        call = os.path.join(folder, "call")
        with open(call, "wb") as file:
            pickle.dump(_packed(function, arguments, named), file)
        command = [sys.executable, "-m", "hightide._call", call]
        return run_imagined(command, gpu, gpus, memory, {"PYTHONPATH": _path()}, options)


def run_imagined(
    command: List[str], gpu: str, gpus: int, memory: str, env: Dict[str, str], options: Sequence[str] = ()
) -> Imagined:
    """Run a command on imaginary GPUs. Raises as imagine does; `env`: what it gets besides."""
    found, out, err = ask(command, gpu, gpus, memory, env, options)
    if found.get("verdict") not in ("fits", "tight", "conditional", "oom", "unused"):
        raise RuntimeError(found.get("failure") or found.get("problem") or (err.strip() or out)[-2000:])
    return Imagined(
        found["verdict"], found.get("gpu") or gpu, found.get("peak_device_used_bytes"),
        found.get("peak_allocated_bytes"), found.get("peak_reserved_bytes"), found.get("total_bytes"),
        found.get("headroom_bytes"), found["run_id"], found,
    )  # fmt: skip


def ask(
    command: List[str], gpu: str, gpus: int, memory: str, env: Dict[str, str], options: Sequence[str] = ()
) -> Tuple[Dict[str, Any], str, str]:
    """What `hightide imagine --json` says of a command, whatever its verdict, and what was written to both streams.

    Raises:
        ValueError: hightide does not take what is asked, as there is no such GPU.
        RuntimeError: it cannot imagine anything here.
    """
    import hightide

    if _engine.imaginary():
        raise RuntimeError("this process is on imaginary GPUs itself: imagine nothing within it")
    with tempfile.TemporaryDirectory(prefix="hightide-") as folder:
        answer = os.path.join(folder, "answer.json")
        whole = [hightide.binary(), "imagine", "--gpu", gpu, "--gpus", str(gpus), f"--json={answer}", "--quiet"]
        whole += ["--memory", memory] if memory else []
        quick = [] if "--suggest" in options else ["--no-suggest"]
        code, out, err = _engine.apart([*whole, *options, *quick, "--", *command], env)
        if not os.path.exists(answer):
            problem = _engine.words(err) or f"hightide imagine ended with {code}"
            raise (ValueError if code in (2, 3) else RuntimeError)(problem)
        with open(answer, encoding="utf-8") as file:
            return json.load(file), out, err


def _path() -> str:
    """Where this process finds modules, for the other one; with the folder of this package."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [os.path.abspath(place or os.curdir) for place in sys.path]
    own = {os.path.abspath(place) for place in (sys.prefix, sys.base_prefix)}
    return ":".join(p for p in dict.fromkeys([*places, here]) if not any(p.startswith(o + os.sep) for o in own))


def _packed(function: Callable[..., Any], arguments: Any, named: Dict[str, Any]) -> Dict[str, Any]:
    """How the other process finds the function, and what it gives it."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    file = getattr(sys.modules.get("__main__"), "__file__", None) if module == "__main__" else None
    try:
        if module and "<" not in name and (module != "__main__" or file):
            where = {"module": module, "file": os.path.abspath(file) if file else "", "name": name}
            return {"where": where, "with": pickle.dumps((arguments, named))}
    except Exception as error:
        raise ValueError(f"the arguments of {name} cannot be sent to another process: {error}") from None
    try:
        import cloudpickle
    except ImportError:
        raise ValueError(
            f"{name or function!r} is of no file that can be imported: install cloudpickle, or put it into a module"
        ) from None
    return {"pickled": cloudpickle.dumps((function, arguments, named))}
