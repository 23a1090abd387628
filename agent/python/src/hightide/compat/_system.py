"""What the machine has, as the engine says it, and sizes in words."""

from __future__ import annotations

import platform
import sys
from typing import Any, Dict, Optional

from .. import _engine
from .._picture import size

MIB, GIB = 2**20, 2**30
UNITS = {"b": 1, "kb": 2**10, "mb": MIB, "gb": GIB, "tb": 2**40, "kib": 2**10, "mib": MIB, "gib": GIB, "tib": 2**40}


def format_memory(bytes_value: float) -> str:
    """Bytes as people read them: 1.5 GiB."""
    return size(bytes_value)


def convert_bytes(value: float, from_unit: str = "B", to_unit: str = "MB") -> float:
    """A size in another unit; KB, MB and GB are powers of 1024 here, as in the old names.

    Raises:
        ValueError: there is no such unit.
    """
    for unit in (from_unit, to_unit):
        if unit.lower() not in UNITS:
            raise ValueError(f"there is no unit {unit!r}; there are B, KB, MB, GB and TB")
    return value * UNITS[from_unit.lower()] / UNITS[to_unit.lower()]


def parse_memory(text: str) -> int:
    """Bytes of a size such as "1.5 GB".

    Raises:
        ValueError: it is not a size.
    """
    number = text.strip().rstrip("bBkKmMgGtTiI").strip()
    unit = text.strip()[len(number) :].strip().lower() or "b"
    try:
        return int(float(number) * UNITS[unit if unit in UNITS else unit + "b"])
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not a size: write it as '1.5 GB'") from None


def format_duration(seconds: float) -> str:
    """Seconds as people read them: 250 ms, 3.2 s, 4 min 5 s."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def cuda() -> Any:
    """torch.cuda where this process can use a GPU by it; None: it cannot, or has not imported torch."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available() else None


def number_of(device: Any) -> Optional[int]:
    """The number of a device given as 1, "cuda:1", "/GPU:1" or a torch.device; None: the current one.

    Raises:
        ValueError: it is not a name of a device.
    """
    if device is None or isinstance(device, int):
        return device
    text = str(device)
    kind, colon, number = text.rpartition(":")
    if not colon:
        kind, number = text, ""
    if (number and not number.isdigit()) or kind.strip("/").lower() not in (
        "cuda",
        "gpu",
        "cpu",
        "device:gpu",
        "mps",
        "xpu",
    ):
        raise ValueError(f"{text!r} is not a device: write it as 0, 'cuda:0' or '/GPU:0'")
    return int(number) if number else None


def get_gpu_info(device: Any = None) -> Dict[str, Any]:
    """A GPU as PyTorch sees it, its memory in bytes. Without one: `available` is False, and `reason` says why."""
    found = cuda()
    if found is None:
        torch = sys.modules.get("torch")
        why = "torch is not imported" if torch is None else "torch sees no GPU here"
        return {"available": False, "reason": why, "device_count": 0}
    number = number_of(device)
    number = found.current_device() if number is None else number
    if not 0 <= number < found.device_count():
        raise ValueError(f"there is no GPU {number}: torch sees {found.device_count()}")
    about = found.get_device_properties(number)
    free, total = found.mem_get_info(number)
    return {
        "available": True, "device_count": found.device_count(), "device_id": number,
        "current_device": found.current_device(), "device_name": about.name,
        "total_memory": about.total_memory, "free_memory": free, "used_memory": total - free,
        "allocated_memory": found.memory_allocated(number), "reserved_memory": found.memory_reserved(number),
        "max_memory_allocated": found.max_memory_allocated(number),
        "multiprocessor_count": about.multi_processor_count, "compute_capability": (about.major, about.minor),
    }  # fmt: skip


def system_info() -> Dict[str, Any]:
    """This machine and this Python; `hightide` is what `hightide info --json` says of them."""
    torch, tensorflow = sys.modules.get("torch"), sys.modules.get("tensorflow")
    found: Dict[str, Any] = {
        "platform": platform.platform(), "architecture": platform.machine(),
        "python_version": platform.python_version(), "torch_version": getattr(torch, "__version__", None),
        "tensorflow_version": getattr(tensorflow, "__version__", None), "cuda_available": cuda() is not None,
        "cuda_version": getattr(getattr(torch, "version", None), "cuda", None),
        "cuda_device_count": cuda().device_count() if cuda() is not None else 0,
    }  # fmt: skip
    try:
        found["hightide"] = _engine.ask_json("info", "--python", sys.executable)
    except (_engine.Failed, OSError) as error:
        _engine.say(f"what the engine knows of this machine is missing: {error}")
        return found
    host = found["hightide"].get("host") or {}
    found.update(
        cpu_count=host.get("cpus"), cpu_memory_total=host.get("memory_bytes"),
        memory_limit=host.get("memory_limit_bytes"), gpus=host.get("gpus") or [],
    )  # fmt: skip
    return found
