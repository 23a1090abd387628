"""What a process takes of the card beside its allocator, stage by stage, with modules loaded lazily and eagerly.

Each way is a process of its own: the driver alone, and PyTorch. A figure is what NVML says is in use after a stage less
what it said before the first one, and less what PyTorch's allocator has reserved."""

from __future__ import annotations

import os
import subprocess
import sys

from card import Driver, Figures, Nvml, index

STAGES = "by nvmlDeviceGetMemoryInfo: used then less used before the process touched the card, less reserved by PyTorch"


def driver(figures: Figures, nvml: Nvml, **conditions: object) -> None:
    before, cuda = nvml.used(), Driver()
    cuda.start()
    figures.say("driver: cuInit", nvml.used() - before, "bytes", STAGES, **conditions)
    cuda.context()
    figures.say("driver: primary context", nvml.used() - before, "bytes", STAGES, **conditions)
    of_it = nvml.processes().get(os.getpid())
    figures.say(
        "driver: primary context, of this process", of_it, "bytes", "nvmlDeviceGetComputeRunningProcesses", **conditions
    )
    free, total = cuda.memory()
    figures.say("driver: primary context, seen by itself", total - free - before, "bytes", "cuMemGetInfo", **conditions)


def pytorch(figures: Figures, nvml: Nvml, **conditions: object) -> None:
    before = nvml.used()
    import torch

    def after(stage: str) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        beside = nvml.used() - before - torch.cuda.memory_reserved()
        figures.say(f"PyTorch: {stage}", beside, "bytes", STAGES, torch=torch.__version__, **conditions)

    torch.cuda.init()
    after("torch.cuda.init")
    matrix = torch.empty(256, 256, device="cuda")
    after("first tensor")
    matrix.add_(1)
    after("first kernel")
    for kind in (torch.float32, torch.bfloat16):
        torch.mm(matrix.to(kind), matrix.to(kind))
        after(f"first product, {kind}".replace("torch.", ""))
    torch.nn.functional.linear(matrix.half(), matrix.half(), matrix[0].half())
    after("first linear layer")
    picture = torch.empty(2, 16, 32, 32, device="cuda", requires_grad=True)
    weight = torch.empty(16, 16, 3, 3, device="cuda", requires_grad=True)
    torch.nn.functional.conv2d(picture, weight).sum().backward()
    after("first convolution, forward and backward")
    torch.sort(matrix)
    torch.randn(256, 256, device="cuda")
    torch.softmax(matrix, 0)
    after("sort, random numbers, softmax")


def main() -> None:
    figures, nvml = Figures(sys.argv[1]), Nvml(index())
    if len(sys.argv) > 2:
        conditions = {"CUDA_MODULE_LOADING": os.environ["CUDA_MODULE_LOADING"], "round": int(sys.argv[3])}
        conditions["in_use_before"] = nvml.used()
        figures.part(
            sys.argv[2], lambda: {"driver": driver, "pytorch": pytorch}[sys.argv[2]](figures, nvml, **conditions)
        )
        return
    for way, rounds in (("driver", 2), ("pytorch", 1)):
        for loading in ("LAZY", "EAGER"):
            for number in range(rounds):
                words = [sys.executable, __file__, sys.argv[1], way, str(number + 1)]
                done = subprocess.run(
                    words, env={**os.environ, "CUDA_MODULE_LOADING": loading}, capture_output=True, text=True
                )
                if done.returncode:
                    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
                    figures.say(f"{way}, {loading}", last[:300], "failure", "the probe itself")


if __name__ == "__main__":
    main()
