"""Runs out of memory while 1.6 GiB lie cached in pieces of 200 MiB, then frees everything and writes a
snapshot: the final state says nothing of the moment. Recipe of oom-a10-pieces.pickle (README.md)."""

import pathlib
import pickle
import sys

import torch

MIB = 1 << 20


def tensor(mebibytes: int) -> torch.Tensor:
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


def pieces() -> list[torch.Tensor]:
    whole = [tensor(400) for _ in range(8)]
    del whole  # cached; two of the next lie in each
    return [tensor(200) for _ in range(16)][::2]


def fill(held: list[torch.Tensor]) -> None:
    while True:
        held.append(tensor(1024))


torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
held = pieces()
try:
    fill(held)
except torch.OutOfMemoryError as error:
    print(error)
    print(torch.cuda.mem_get_info(), torch.cuda.memory_stats()["inactive_split_bytes.all.current"])
held.clear()
torch.cuda.empty_cache()
snapshot = torch.cuda.memory._snapshot()
for trace in snapshot["device_traces"]:
    for event in trace:
        for frame in event.get("frames", []):  # no paths of the machine that wrote it
            frame["filename"] = pathlib.Path(frame["filename"]).name
with open(sys.argv[1], "wb") as file:
    pickle.dump(snapshot, file)  # as torch.cuda.memory._dump_snapshot does
