"""The releases of PyTorch that tests run with, newest first, as requirements/torch.versions lists them."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))


def listed() -> list[str]:
    lines = (ROOT / "requirements" / "torch.versions").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def python(version: str) -> Path:
    """The interpreter of a release's environment, which scripts/setup makes."""
    return CACHE / f"torch-{version}" / "bin" / "python"


NEWEST = listed()[0]
