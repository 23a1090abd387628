"""Runs scripts as hightide run would, and hands back their channels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

import pytest

from ring import Ring, rings

SOURCE = Path(__file__).resolve().parents[1] / "src"
sys.path.append(str(SOURCE.parents[2] / "scripts"))
import forkserver  # noqa: E402

HOOK = SOURCE / "hook"
IMPORTS_TORCH = re.compile(r"^\s*import\b.*\btorch\b", re.MULTILINE)


class Result(NamedTuple):
    code: int
    out: str
    err: str
    rings: List[Ring]

    @property
    def main(self) -> Ring:
        """The channel of the process that was started."""
        return self.rings[0]


def observed_environment(folder: Path, **more: str) -> Dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("HIGHTIDE") and k != "PYTHONPATH"}
    env.update(PYTHONPATH=str(HOOK), HIGHTIDE_AGENT_PATH=str(HOOK), HIGHTIDE_CHANNELS=str(folder),
               HIGHTIDE_RUN_ID="test", HIGHTIDE_OUT=str(folder), HIGHTIDE_INTERVAL_NS="100000000")  # fmt: skip
    env.setdefault("OMP_NUM_THREADS", "1")
    env.update(more)
    return env


def observer(home: Path) -> Any:
    """observe(script, *arguments, env={}, options=[], python=None) runs it to its end, at most ten minutes.

    One that uses PyTorch runs in a fork of a process that has imported it already, unless it is to be fresh.
    """

    def run(
        script: str, *arguments: str, env: Optional[Dict[str, str]] = None, options: Optional[List[str]] = None,
        python: str = sys.executable, ok: bool = True, fresh: bool = False,
        logs: bool = False,
    ) -> Result:  # fmt: skip
        folder = home / ("channels%d" % len(list(home.glob("channels*"))))
        folder.mkdir(mode=0o700)
        file = home / "script.py"
        file.write_text(textwrap.dedent(script))
        command, start = [python, *(options or []), str(file), *arguments], observed_environment(folder, **(env or {}))
        if IMPORTS_TORCH.search(script) and python == sys.executable and not (options or fresh):
            done = forkserver.run(command, start, home)
        else:
            done = subprocess.run(
                command, env=start, capture_output=True, text=True, timeout=600, cwd=home, check=False
            )
        result = Result(done.returncode, done.stdout, done.stderr, rings(folder))
        assert not ok or done.returncode == 0, done.stderr
        told = [log for ring in result.rings for log in ring.all("log")]
        assert logs or not told, told
        return result

    return run


@pytest.fixture
def observe(tmp_path: Path) -> Any:
    return observer(tmp_path)
