"""Every code block of the article on GPU Memory Profiler, word for word but for the import, and word for word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Dict, Tuple

import pytest

import article_blocks
from test_sdk_engine import PROGRAM, environment

CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
# Which interpreter a group needs, and what stands before it; else it is this one, on its own.
PYTHONS = {"tensorflow": CACHE / "frameworks" / "bin" / "python", "mlflow": CACHE / "trackers" / "bin" / "python"}
UNDER = {"gpu": ["imagine", "--gpu", "a10", "--gpus", "2", "--steps", "0", "--quiet", "--"]}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("article")


@lru_cache(maxsize=None)
def outcome(group: str, folders: Path) -> Dict[Tuple[str, str], str]:
    """What went wrong in each block of a group, which is one process."""
    folder = folders / group
    folder.mkdir()
    python = PYTHONS.get(group, Path(sys.executable))
    under = [str(PROGRAM), *UNDER[group]] if group in UNDER else []
    env = {**environment(folder), "TF_CPP_MIN_LOG_LEVEL": "3", "MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(),
           "MLFLOW_ALLOW_FILE_STORE": "true", "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    command = [*under, str(python), article_blocks.__file__, group, str(folder)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=900, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"title"')]
    assert rows and done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return {(row["title"], row["way"]): row["wrong"] for row in rows}


def test_no_block_is_left_out() -> None:
    titles = [code.title for code in article_blocks.blocks()]
    assert len(titles) == len(set(titles)) == 40
    assert set(titles) == set(article_blocks.BLOCKS) | set(article_blocks.NOT_CODE)


@pytest.mark.parametrize("way", ["changed", "unchanged"])
@pytest.mark.parametrize("title", article_blocks.BLOCKS)
def test_block(title: str, way: str, folders: Path) -> None:
    group = article_blocks.BLOCKS[title].group
    if not PYTHONS.get(group, Path(sys.executable)).exists():
        pytest.skip(f"there is no {PYTHONS[group]}: scripts/setup makes it")
    if group == "gpu":
        pytest.importorskip("torch")
    wrong = outcome(group, folders)[title, way]
    assert not wrong, wrong
