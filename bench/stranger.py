"""How long a stranger waits: a clean environment, `pip install hightide-*.whl`, a training that leaks, the finding.

    python3 bench/stranger.py [--wheel FILE] [--rounds 5]

Without --wheel one is built of bin/hightide (scripts/setup tools). The training is examples/line_leak.py, which needs no package.
The environment is Python's own venv, the command is the one that pip put beside that Python, and nothing of this
machine's hightide is used: the home folder is new too. Making the environment is told, and not counted: it is there
already where people train. pip asks no registry, as the wheel needs no other package.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from common import CACHE, RESULTS, ROOT, must, run

BAR = 30.0  # seconds, from pip to the finding
LINE = "line_leak.py:15"  # that keeps what it should not


def built(folder: Path) -> Path:
    must(run([CACHE / "tools" / "bin" / "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT / "packaging"))
    (wheel,) = folder.glob("*.whl")
    return wheel


def one_round(wheel: Path, folder: Path) -> dict[str, float]:
    """The seconds of each part; it ends this where the finding is not there."""
    own = {"HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "LC_ALL": "C.UTF-8", "HIGHTIDE_DATA": ""}
    script = folder / "line_leak.py"
    script.write_bytes((ROOT / "examples" / "line_leak.py").read_bytes())
    environment = folder / "venv"
    seconds = {"venv": must(run([sys.executable, "-m", "venv", environment], env=own)).wall}
    path = f"{environment / 'bin'}:{os.environ['PATH']}"
    own |= {"PATH": path, "VIRTUAL_ENV": str(environment)}
    seconds["pip"] = must(run([environment / "bin" / "pip", "install", "--quiet", "--no-index", wheel], env=own)).wall
    done = must(run([environment / "bin" / "hightide", "run", "--", "python", script.name], env=own, cwd=folder))
    seconds["run and report"] = done.wall
    seconds["alone"] = must(run([environment / "bin" / "python", script.name], env=own, cwd=folder)).wall
    if LINE not in done.stderr + done.stdout or "leak" not in done.stderr + done.stdout:
        sys.exit(f"no finding at {LINE}:\n{done.stdout}{done.stderr}")
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory(prefix="hightide-stranger-") as name:
        wheel = options.wheel.resolve() if options.wheel else built(Path(name))
        for number in range(1 if options.quick else options.rounds):
            folder = Path(name) / str(number)
            folder.mkdir()
            rounds.append(one_round(wheel, folder))
    waited = [one["pip"] + one["run and report"] for one in rounds]
    for part in rounds[0]:
        print(f"{part:16}{statistics.median(one[part] for one in rounds):6.1f} s")
    print(
        f"{'pip to finding':16}{statistics.median(waited):6.1f} s, at most {max(waited):.1f} s; the bar is {BAR:.0f} s"
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "stranger.json").write_text(json.dumps({"rounds": rounds, "load": os.getloadavg()[0]}, indent=1))
    return 1 if statistics.median(waited) > BAR else 0


if __name__ == "__main__":
    sys.exit(main())
