"""Time a training step on the imaginary GPU: BERT base, forward and backward, batch 8, fp32.

    python3 bench/device_step.py [--beside FOLDER] [--torch 2.15.0] [--steps 40]

No kernel runs on either side, so what is measured is PyTorch's own dispatch and what the library adds to
it. --beside names a folder with another imaginary device to compare with (special.c, undef3.txt and
nvml.c of the first prototype, which answers every call with success and keeps no shadows); it is built
here with the headers of the environment. The bar: at most 1.3 times as long. Runs alternate, and the
median step of each is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torchversions

from common import CACHE, ROOT

LIBRARY = ROOT / "device" / "lib" / "libhightide_device.so"
SPEC = "name=NVIDIA A10;slug=a10;memory=23729274880;context=360710144;cc=8.6;sms=72"
BAR = 1.3
ROUNDS = 3

STEP = """
import json, sys, time
import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
model = BertForSequenceClassification(BertConfig(num_labels=2)).to("cuda").eval()
ids, mask = torch.randint(0, 1000, (8, 128)).to("cuda"), torch.ones(8, 128, dtype=torch.long).to("cuda")
kinds = torch.zeros(8, 128, dtype=torch.long).to("cuda")

def step():
    model(input_ids=ids, attention_mask=mask, token_type_ids=kinds).logits.mean().backward()
    model.zero_grad()

for _ in range(5):
    step()
times = []
for _ in range(int(sys.argv[1])):
    begin = time.perf_counter()
    step()
    times.append(time.perf_counter() - begin)
print(json.dumps({"ms": [1e3 * t for t in times], "peak": torch.cuda.max_memory_allocated()}))
time.sleep(0.5)  # autograd's thread wants the interpreter once more
"""


def build_other(source: Path, into: Path, python: Path) -> Path:
    """The other device as a library: what it answers, and a function that returns 0 for every further name."""
    site = next(python.parent.parent.glob("lib/python3*/site-packages"))
    include = [
        *site.glob("nvidia/*/include"),
        *(CACHE / "device").glob("lib/python3*/site-packages/nvidia/*/include"),
    ]
    names = (source / "undef3.txt").read_text().split()
    rest = into / "rest.c"
    rest.write_text("".join(f"__attribute__((weak)) int {n}(){{return 0;}}\n" for n in names))
    flags = ["-O2", "-w", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "-DCUDNNV=92600", "-DNCCLV=23007"]
    library = into / "libcuda.so.1"
    headers = [f"-I{p}" for p in include]
    subprocess.run(["gcc", *flags, *headers, "-o", library, source / "special.c", rest], check=True)
    subprocess.run(
        ["gcc", "-O2", "-w", "-fPIC", "-shared", "-o", into / "libnvidia-ml.so.1", source / "nvml.c"], check=True
    )
    return library


def measure(python: Path, library: Path, steps: int) -> tuple[list[float], int]:
    """The ms of each step, and the peak in bytes."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HIGHTIDE_", "CUDA_", "PYTORCH_"))}
    env |= {
        "LD_PRELOAD": str(library),
        "LD_LIBRARY_PATH": str(library.parent),
        "HIGHTIDE_DEVICE_SPEC": SPEC,
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run([python, "-c", STEP, str(steps)], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{library}: exit {done.returncode}\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found["ms"], found["peak"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--beside", type=Path, help="folder of another device's sources, to compare with")
    parser.add_argument("--torch", default=torchversions.NEWEST)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    python = torchversions.python(options.torch)
    with tempfile.TemporaryDirectory() as folder:
        sides = {"imaginary": LIBRARY}
        if options.beside:
            sides["beside"] = build_other(options.beside, Path(folder), python)
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, library in sides.items():
                ms, peak = measure(python, library, options.steps)
                times[name].append(statistics.median(ms))
                print(f"{name}: {times[name][-1]:.1f} ms a step, peak {peak} bytes", flush=True)
    best = {name: min(values) for name, values in times.items()}
    print(json.dumps({"torch": options.torch, "ms": best}))
    if options.beside:
        ratio = best["imaginary"] / best["beside"]
        print(f"{ratio:.2f} times the other (bar {BAR})")
        sys.exit(ratio > BAR)


if __name__ == "__main__":
    main()
