"""What the adapters of Keras and JAX cost a training: `hightide run --no-stacks` against none, in turns.

    python bench/adapters.py [--quick] [--realtime] [--pairs 6] [--turns 4] [--program keras-jax keras-tensorflow jax]

Measured as subject.py says. A pair's turns are 20 seconds of training, of one thread on one core. With --realtime, which root may
ask for, that core does no other work meanwhile: so a busy machine gives an answer too. The heap sampler is off, since its cost is
that of bench/overhead.py. The adapter of PyTorch is in the loop that overhead.py measures.
"""

from __future__ import annotations

import argparse
import sys
import time

from beside import pinned
from subject import script, total, trial

from common import CACHE, HIGHTIDE, Recordings, Row, exit_code, publish, ratios

FRAMEWORKS = CACHE / "frameworks" / "bin" / "python"
# Environment, program and steps of a block of about a second.
PROGRAMS = {
    "keras-jax": ("KERAS_BACKEND=jax", "keras_fit.py", 150),
    "keras-tensorflow": ("KERAS_BACKEND=tensorflow", "keras_fit.py", 150),
    "jax": ("KERAS_BACKEND=jax", "jax_steps.py", 400),
}
ALONE = ["JAX_PLATFORMS=cpu", "XLA_FLAGS=--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
         "TF_NUM_INTRAOP_THREADS=1", "TF_NUM_INTEROP_THREADS=1", "CUDA_VISIBLE_DEVICES=", "TF_CPP_MIN_LOG_LEVEL=3"]  # fmt: skip
BAR = 1.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 pairs: rough")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--turns", type=int, default=4, help="turns of each pair, of two blocks a variant")
    parser.add_argument("--realtime", action="store_true", help="before all other programs of that core, as root may")
    parser.add_argument("--program", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    for needed, how in ((HIGHTIDE, "make build"), (FRAMEWORKS, "scripts/setup frameworks")):
        if not needed.exists():
            sys.exit(f"{needed} is not there: {how}")
    rows: list[Row] = []
    kept: dict[str, object] = {}
    for name in options.program:
        variable, program, work = PROGRAMS[name]
        plain = pinned("env", variable, *ALONE, FRAMEWORKS, script(program), realtime=options.realtime)
        data = Recordings()
        variants = {"plain": (plain, False), "recorded": ([*data.command("--no-stacks"), *plain], True)}
        pairs = []
        begin = time.monotonic()
        for seed in range(2 if options.quick else options.pairs):
            pairs.append(trial(variants, work, options.turns, seed))
            print(f"\r  {name}: pair {seed + 1}, {time.monotonic() - begin:.0f} s", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        counted = [pair for pair in pairs if pair]
        if not counted:
            rows.append(Row(name, "no turn counted: the machine was busy"))
            continue
        spent = {variant: [total(pair, variant) for pair in counted] for variant in variants}
        wall = ratios([s.wall for s in spent["recorded"]], [s.wall for s in spent["plain"]])
        cpu = ratios([s.cpu for s in spent["recorded"]], [s.cpu for s in spent["plain"]])
        rows.append(Row(f"{name}, time", wall.text()))
        rows.append(Row("  its processor time", cpu.text(), f"<= {BAR:.2f}", cpu.high <= BAR))
        rows.append(Row("  turns that counted", f"{sum(map(len, counted))} of {len(pairs) * options.turns}"))
        kept[name] = [[{v: vars(s) for v, s in turn.items()} for turn in pair] for pair in pairs]
    publish("adapters", rows, kept)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
