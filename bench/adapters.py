"""What the adapters of Keras and JAX cost a training: `hightide run --no-stacks` against none, side by side.

    python bench/adapters.py [--quick] [--rounds 6] [--seconds 20] [--realtime] [--program keras-jax keras-tensorflow jax]

Measured as beside.py says: plain, plain again and recorded train at the same time on one core, and compared is the processor
time of a step. So a machine that is busy with other work disturbs all alike; with --realtime, which root may ask for, that
core does no other work, and each variant has a tenth of a second at a time. The heap sampler is off, since its cost is that
of bench/overhead.py. The adapter of PyTorch is in the loop that beside.py measures.
"""

from __future__ import annotations

import argparse
import sys

from beside import pinned, together
from subject import script

from common import CACHE, HIGHTIDE, Recordings, Row, exit_code, publish, ratios

FRAMEWORKS = CACHE / "frameworks" / "bin" / "python"
# Environment, program and steps of a block of some tenths of a second. One thread each: they share a core.
PROGRAMS = {
    "keras-jax": (["KERAS_BACKEND=jax"], "keras_fit.py", 50),
    "keras-tensorflow": (["KERAS_BACKEND=tensorflow"], "keras_fit.py", 50),
    "jax": ([], "jax_steps.py", 100),
}
ALONE = ["JAX_PLATFORMS=cpu", "XLA_FLAGS=--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
         "TF_NUM_INTRAOP_THREADS=1", "TF_NUM_INTEROP_THREADS=1", "CUDA_VISIBLE_DEVICES=", "TF_CPP_MIN_LOG_LEVEL=3"]  # fmt: skip
BAR = 1.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 rounds: rough")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20, help="of each round")
    parser.add_argument("--realtime", action="store_true", help="before all other programs of that core, as root may")
    parser.add_argument("--program", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    for needed, how in ((HIGHTIDE, "make build"), (FRAMEWORKS, "scripts/setup frameworks")):
        if not needed.exists():
            sys.exit(f"{needed} is not there: {how}")
    rows: list[Row] = []
    kept: dict[str, object] = {}
    for name in options.program:
        variables, program, block = PROGRAMS[name]
        data = Recordings()
        plain = pinned("env", *variables, *ALONE, FRAMEWORKS, script(program), realtime=options.realtime)
        commands = {"plain": plain, "plain again": plain, "recorded": [*data.command("--no-stacks"), *plain]}
        rounds = []
        for number in range(2 if options.quick else options.rounds):
            rounds.append(together(commands, options.seconds, number, block))
            print(f"\r  {name}: round {number + 1}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        none = [found["plain"] for found in rounds]
        again, cost = (ratios([found[v] for found in rounds], none) for v in ("plain again", "recorded"))
        rows.append(Row(f"{name}: processor time of a step", cost.text(), f"<= {BAR:.2f}", cost.high <= BAR))
        rows.append(Row("  plain again", again.text()))
        kept[name] = rounds
    publish("adapters", rows, kept)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
