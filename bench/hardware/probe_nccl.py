"""What NCCL takes of each card: at its start, and with each kind of collective. Worlds of one rank, and of all cards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from card import Figures, Nvml, index

SOURCE = "nvmlDeviceGetMemoryInfo: used then less used after the context, less reserved by PyTorch"
MOST = 8  # ranks


def rank(figures: Figures, world: int, number: int, meeting: str) -> None:
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(number if world > 1 else 0)
    tensor = torch.zeros(1 << 20, device="cuda")
    tensor.add_(1)
    torch.cuda.synchronize()
    nvml = Nvml(index() + number if world > 1 else index())
    before = nvml.used() - torch.cuda.memory_reserved()

    def after(stage: str) -> None:
        torch.cuda.synchronize()
        taken = nvml.used() - torch.cuda.memory_reserved() - before
        version = ".".join(map(str, torch.cuda.nccl.version()))
        figures.say(
            f"{world} ranks, rank {number}: {stage}", taken, "bytes", SOURCE, torch=torch.__version__, nccl=version
        )

    dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=number, world_size=world)
    after("process group")
    dist.all_reduce(tensor)
    after("all_reduce")
    dist.all_gather_into_tensor(torch.zeros(world << 20, device="cuda"), tensor)
    after("all_gather")
    dist.reduce_scatter_tensor(tensor, torch.zeros(world << 20, device="cuda"))
    after("reduce_scatter")
    dist.broadcast(tensor, 0)
    after("broadcast")
    dist.all_to_all_single(torch.zeros(world << 10, device="cuda"), torch.zeros(world << 10, device="cuda"))
    after("all_to_all")
    dist.all_reduce(tensor, group=dist.new_group(list(range(world))))
    after("a second group")
    dist.destroy_process_group()
    after("ended")


def main() -> None:
    figures = Figures(sys.argv[1])
    if len(sys.argv) > 2:
        world, number, meeting = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
        figures.part(f"{world} ranks, rank {number}", lambda: rank(figures, world, number, meeting))
        return
    cards = int(os.environ.get("HARDWARE_CARDS", "1"))
    for world in sorted({1, min(cards, 2), min(cards, MOST)}):
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, __file__, sys.argv[1], str(world)]
            meeting = os.path.join(folder, "meeting")
            ranks = [subprocess.Popen([*words, str(number), meeting]) for number in range(world)]
            for process in ranks:
                process.wait()
    if cards == 1:
        figures.say("two ranks", "one card here: NCCL refuses two ranks on one", "not here", "the probe itself")


if __name__ == "__main__":
    main()
