"""Imagine what torchtitan published for its 8B model on real H100s, started as its own start script starts it.

    python3 bench/imagine_h100.py --titan FOLDER --python ENV/bin/python [--only NAME ...]

FOLDER is a checkout of pytorch/torchtitan at 9dec370, of which benchmarks/llama3_h100_202412_torchtitan.md tells.
ENV has torch 2.6.0 (published: a nightly of three weeks after 2.6 was cut), torchao 0.8.0, torchdata 0.10.0,
datasets 3, tiktoken, blobfile, tensorboard and setuptools below 80. The cards had 96 GB; 95 GiB are taken.

The allocator settings of the published runs are not told, and they move the reserved peak by 3 GiB. So each row is
imagined twice: as run_llama_train.sh starts it, which sets expandable segments, and as torchrun alone does.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import os
import string
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HIGHTIDE = Path(os.environ.get("HIGHTIDE_BINARY", ROOT / "bin" / "hightide"))
WORDS = 128_000  # of Llama 3's tokenizer, beside its 256 special ones
BOUND = 0.01  # how far the reserved peak may be from the published one

STARTS = {"script": ["./run_llama_train.sh"], "torchrun": ["torchrun", "--nproc-per-node", "8", "train.py"]}

COMPILE = ["--training.compile"]
GATHER = ["--float8.enable_fsdp_float8_all_gather", "--float8.precompute_float8_dynamic_scale_for_fsdp"]
FLOAT8 = ["--float8.enable_float8_linear", *GATHER]
BATCH = ["--training.batch_size", "2"]  # of 8,192 tokens, selective checkpointing


def context(degree: int) -> list[str]:
    """32,768 tokens on each rank, full checkpointing."""
    parallel = ["--experimental.context_parallel_degree", str(degree), "--training.seq_len", str(32_768 * degree)]
    return ["--activation_checkpoint.mode", "full", *parallel, *COMPILE, *FLOAT8]


class Row(NamedTuple):
    published: float  # GiB reserved
    world: int
    play: str  # one rank of each kind: rings are not symmetric
    arguments: list[str]


ROWS = {
    "fsdp-8": Row(82.4, 8, "0", BATCH),
    "fsdp-8-compile": Row(77.0, 8, "0", BATCH + COMPILE),
    "fsdp-8-float8": Row(76.8, 8, "0", BATCH + COMPILE + FLOAT8),
    "cp-1": Row(83.9, 8, "0", context(1)),
    "cp-2": Row(84.2, 8, "0,1", context(2)),
    "cp-4": Row(84.0, 8, "0-3", context(4)),
    "cp-8": Row(84.5, 8, "all", context(8)),
    "fsdp-128": Row(67.0, 128, "0", BATCH),
    "fsdp-128-compile": Row(62.0, 128, "0", BATCH + COMPILE),
    "fsdp-128-float8": Row(61.8, 128, "0", BATCH + COMPILE + FLOAT8),
}


def prepare(folder: Path, titan: Path) -> list[str]:
    """Words, text and a configuration: what the published runs read from elsewhere. The arguments that name them."""
    single = [bytes([byte]) for byte in range(256)]
    made = map(bytes, itertools.product(string.ascii_lowercase.encode(), repeat=4))
    words = itertools.islice(itertools.chain(single, made), WORDS)
    lines = [f"{base64.b64encode(word).decode()} {rank}\n" for rank, word in enumerate(words)]
    (folder / "words").write_text("".join(lines))
    (folder / "text").mkdir()
    (folder / "text" / "data.json").write_text((json.dumps({"text": "w " * 3000}) + "\n") * 400)
    settings = (titan / "train_configs" / "llama3_8b.toml").read_text()
    for switch in ("enable_profiling", "enable_tensorboard"):
        settings = settings.replace(f"{switch} = true", f"{switch} = false")
    (folder / "8b.toml").write_text(settings)
    files = ["--job.config_file", str(folder / "8b.toml"), "--model.tokenizer_path", str(folder / "words")]
    text = ["--training.dataset", "c4_test", "--training.dataset_path", str(folder / "text")]
    return [*files, *text, "--training.steps", "50"]


def environment(folder: Path, python: Path) -> dict[str, str]:
    """Empty caches, and the interpreter's torchrun first on the path."""
    torchrun = folder / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text(f"#!{python}\nfrom torch.distributed.run import main\n\nmain()\n")
    torchrun.chmod(0o755)
    path = f"{torchrun.parent}{os.pathsep}{os.environ['PATH']}"
    caches = {name: str(folder / name) for name in ("HF_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    env = {**os.environ, **caches, "PATH": path}
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)  # what starts the ranks says it, or nobody
    return env


def reserved(name: str, start: str, row: Row, titan: Path, python: Path) -> dict[int, int]:
    """Bytes reserved at the peak, by rank played."""
    machine = ["--gpu", "h100-sxm", "--memory", "95GiB", "--world-size", str(row.world), "--play", row.play]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = [*STARTS[start], *prepare(folder, titan), *row.arguments]
        options = ["--no-suggest", "--quiet", "--json", "--data-dir", str(folder / "data")]
        done = subprocess.run(
            [str(HIGHTIDE), "imagine", *machine, *options, "--", *command],
            capture_output=True, text=True, cwd=titan, env=environment(folder, python),
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{name}, {start}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        answer = json.loads(done.stdout)
    return {rank["rank"]: rank["peak_reserved_bytes"] for rank in answer["ranks"] if rank["played"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--titan", type=Path, required=True, help="checkout of torchtitan at 9dec370")
    parser.add_argument("--python", type=Path, required=True, help="its interpreter")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    asked = parser.parse_args()
    missed = 0
    for name in asked.only:
        row = ROWS[name]
        errors = []
        for start in STARTS:
            ranks = reserved(name, start, row, asked.titan.resolve(), asked.python.absolute())
            errors.append(max(ranks.values()) / 2**30 / row.published - 1)
            each = ", ".join(f"rank {rank} {peak / 2**30:.2f}" for rank, peak in sorted(ranks.items()))
            print(
                f"{name:17} {row.published} GiB published, by {start:8} {each} ({100 * errors[-1]:+.2f} %)", flush=True
            )
        missed += min(map(abs, errors)) > BOUND
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
