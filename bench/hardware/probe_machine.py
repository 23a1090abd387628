"""The machine: what PyTorch says of itself and of each card."""

from __future__ import annotations

import sys

from card import Figures


def main() -> None:
    figures = Figures(sys.argv[1])
    import torch

    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device")
    for name, value in {
        "torch": torch.__version__,
        "CUDA of torch": torch.version.cuda,
        "cuDNN": torch.backends.cudnn.version(),
        "NCCL": ".".join(map(str, torch.cuda.nccl.version())),
        "architectures": " ".join(torch.cuda.get_arch_list()),
    }.items():
        figures.say(name, value, "text", "PyTorch")
    figures.say("cards", torch.cuda.device_count(), "number", "torch.cuda.device_count")
    card = torch.cuda.get_device_properties(0)
    for name in ("name", "total_memory", "multi_processor_count", "major", "minor", "L2_cache_size", "warp_size",
                 "shared_memory_per_multiprocessor", "regs_per_multiprocessor", "max_threads_per_multi_processor"):  # fmt: skip
        if hasattr(card, name):
            figures.say(f"card: {name}", getattr(card, name), "number", "torch.cuda.get_device_properties")


if __name__ == "__main__":
    main()
