"""Trainings that do not fit: does a plan make them fit, is its peak the run's, and do losses stay the same bit for bit?

    python3 bench/levers.py [NAME ...] [--share 0.7] [--batch 256]
    python3 bench/levers.py --own [NAME]

Each training of bench/programs/trainings.py runs on an imaginary GPU with plenty of memory, then is tuned for one that has
a share of what it took. The plan is imagined again: its peak must be what tune said, to the byte. On the CPU, with a batch
of 2, the losses of ten steps with the plan must equal those without, bit for bit. Where no plan fits, the smallest peak is
what `tune` found. It needs `scripts/setup torch libraries`.

--own runs one training (gpt) on the CPU with a plan that has no lever and with one that has some. It says which share of the
steps' processor time the code of plans and levers takes: the bar is half a percent with the first, where nothing is a lever's. What
else the agent does in a recorded run is said beside it; bench/overhead.py measures that.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import BENCH, CACHE, HIGHTIDE, RESULTS, run

PYTHON = CACHE / "libraries" / "bin" / "python"
PROGRAM = BENCH / "programs" / "trainings.py"
GiB = 1 << 30
RANKS = {"ddp": 2, "fsdp": 2}  # programs that torchrun starts, and how many ranks


def names() -> list[str]:
    return re.findall(r'^    "([a-z0-9-]+)": ', PROGRAM.read_text(), re.MULTILINE)


def losses(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("loss ")]


class Training:
    """One program, and what came of it."""

    def __init__(self, name: str, batch: int, share: float, folder: Path) -> None:
        self.name, self.batch, self.share, self.folder = name, batch, share, folder
        self.env = {"HIGHTIDE_DATA": str(folder / "data")}
        self.plan = folder / "plan.toml"

    def hightide(self, *arguments: object) -> Any:
        return run([HIGHTIDE, *arguments], env=self.env, cwd=self.folder)

    def program(self, batch: int, steps: int) -> list[object]:
        launcher = (
            ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS[self.name]]
            if self.name in RANKS
            else []
        )
        return ["--", PYTHON, *launcher, PROGRAM, self.name, batch, "--steps", steps]

    def gpu(self, memory: int) -> list[object]:
        return ["--gpu", "a10", "--gpus", RANKS.get(self.name, 1), "--memory", f"{memory >> 20}MiB"]

    def imagine(self, memory: int, *more: object) -> Any:
        done = self.hightide("imagine", *self.gpu(memory), "--no-suggest", "-q", "--json=imagined.json", *more,
                             *self.program(self.batch, 6))  # fmt: skip
        try:
            return json.loads((self.folder / "imagined.json").read_text())
        except (OSError, ValueError):
            return {"failed": done.stderr[-600:]}

    def measure(self) -> dict[str, Any]:
        need = self.imagine(120 * GiB)
        used = need.get("peak_device_used_bytes")
        if not used:
            return {"name": self.name, "outcome": "no verdict", "said": str(need)[-600:]}
        memory = int(used * self.share)
        began = time.perf_counter()
        done = self.hightide("tune", *self.gpu(memory), "-q", "-o", self.plan, "--json=tuned.json",
                             *self.program(self.batch, 6))  # fmt: skip
        took = time.perf_counter() - began
        if done.code > 1:
            return {"name": self.name, "outcome": "failed", "said": done.stderr[-600:]}
        tuned = json.loads((self.folder / "tuned.json").read_text())
        row = {
            "name": self.name, "need_bytes": used, "memory_bytes": memory, "seconds": took, "cpu_seconds": done.cpu,
            "imagined_runs": tuned["imagined_runs"], "blocks": tuned["blocks"], "refused": tuned.get("refused", {}),
            "levers": {p["what"]: p["verdict"].get("peak_allocated_bytes") for p in tuned["points"]},
            "smallest": min((p["verdict"]["peak_device_used_bytes"] for p in [*tuned["points"], tuned.get("smallest")]
                             if p and p["verdict"]["verdict"] in ("fits", "tight", "conditional")), default=None),
        }  # fmt: skip
        plan = tuned.get("recommended")
        if plan is None:
            return {**row, "outcome": "no plan fits"}
        return {**row, "outcome": tuned["verdict"], "plan": [p["what"] for p in tuned["points"] if p["plan"] == plan][0],
                **self.again(memory, plan)}  # fmt: skip

    def again(self, memory: int, plan: dict[str, Any]) -> dict[str, Any]:
        """The plan once more, on the imaginary GPU and on the CPU."""
        once = self.imagine(memory, "--plan", self.plan)
        plain = run([*self.program(2, 10)[1:]])
        changed = self.hightide("run", "-q", "--plan", self.plan, *self.program(2, 10))
        return {
            "same_peak": once.get("peak_allocated_bytes") == plan["planned"]["peak_allocated_bytes"],
            "same_losses": len(losses(plain.stdout)) >= 10 and losses(plain.stdout) == losses(changed.stdout),
            "said": "" if changed.code == 0 else changed.stderr[-400:],
        }


OWN = {
    "no lever": "",
    "foreach, set_to_none, checkpoint": '[levers.foreach]\n[levers.set_to_none]\n[levers.checkpoint]\nblocks = ["*"]\n',
}
MOST_OWN = 0.005


def own(name: str) -> int:
    """The share of the steps' processor time that plans and levers take, in one process each."""
    shares = []
    for what, text in OWN.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "plan.toml").write_text(f"version = 1\n{text}")
            done = run([HIGHTIDE, "run", "-q", "--plan", "plan.toml", "--", PYTHON, BENCH / "programs" / "own_share.py", name, 8, 30],
                       env={"HIGHTIDE_DATA": folder + "/data"}, cwd=Path(folder))  # fmt: skip
            if done.code != 0:
                raise SystemExit(f"{what}: {done.stderr[-600:]}")
            said = json.loads(done.stdout.splitlines()[-1])
        shares.append(said["levers"])
        print(f"{name}, {what:34} {said['cpu_seconds']:6.2f} s in 30 steps, {100 * said['levers']:.3f} % of them in plans and levers, "
              f"{100 * said['agent']:.3f} % in all of the agent", flush=True)  # fmt: skip
    return 0 if shares[0] <= MOST_OWN else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=names())
    parser.add_argument("--share", type=float, default=0.7, help="of what the program takes, the memory of the GPU")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--own", action="store_true", help="the share of the steps that plans and levers take")
    options = parser.parse_args()
    if options.own:
        return max(own(name) for name in (options.names if options.names != names() else ["gpt"]))
    rows = []
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row := Training(name, options.batch, options.share, Path(folder)).measure())
        print(f"{name:24} {row['outcome']:12} {row.get('need_bytes', 0) / GiB:6.2f} GiB  {row.get('imagined_runs', 0):3} runs "
              f"{row.get('seconds', 0):5.0f} s  peak {row.get('same_peak', '-')!s:5} losses {row.get('same_losses', '-')!s:5} "
              f"{row.get('plan', '')}{row.get('said', '')}", flush=True)  # fmt: skip
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "levers.json").write_text(json.dumps(rows, indent=1))
    wrong = [r["name"] for r in rows if not (r.get("same_peak", True) and r.get("same_losses", True))]
    fitted = sum(r["outcome"] in ("fits", "tight", "conditional") for r in rows)
    print(f"{fitted} of {len(rows)} fit with a plan; wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
