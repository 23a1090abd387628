"""What the memory at the peak was for: the allocator's history replayed to its highest point.

    history, backwards from the end ─▶ live bytes at each event ─▶ the highest ─▶ the blocks that lived then
    owners ─▶ parameters, gradients, optimizer state, buffers     when it was allocated, when freed ─▶ the rest

The history is a ring: what fell out of it lies before the peak, or the peak was not seen and nothing is said.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..places import is_library
from ..pytorch.owners import CACHE
from ..tracker import BACKWARD, DATA, EVALUATION, FORWARD, NONE, OPTIMIZER, STEP

ROUND = 512  # bytes: what the allocator rounds a block to
TOLERANCE = 0.01  # of the peak: how far the replayed one may be from the allocator's own
WORKSPACES = (8519680, 33554432)  # cuBLAS's and cuBLASLt's, by compute capability: kept for good, or for one call
ONE_CALL = 3  # events
SLACK = 1 << 20  # bytes: what the allocator leaves at the end of a block rather than split it
MAX_EVENTS = 2_000_000

# Where keys and values are kept between calls of attention: transformers, vLLM, litgpt, gpt-fast, torchtune.
KEPT_KEYS = re.compile(r"kv_?cache|transformers/cache_utils\.py:|:setup_caches$", re.I)

Edges = List[Tuple[int, int, int]]
# Address, bytes, allocated us (0: before the history), freed us (0: never), lives for good or for one call only, and
# the stack that allocated it (empty where that is not known).
Block = Tuple[int, int, int, int, bool, List[Any]]
# Address, bytes, and the stack that allocated it, which a block keeps that lives longer than the history reaches back.
Live = Tuple[int, int, List[Any]]


def at_peak(snapshot: Any, owners: Any, peaks: List[Any], edges: Edges) -> Iterator[Dict[str, Any]]:
    """One `categories` record for each device whose peak is in the history."""
    for peak in peaks:
        traces = snapshot.get("device_traces") or []
        events = traces[peak.device] if peak.device < len(traces) else []
        if not events or len(events) > MAX_EVENTS or "time_us" not in events[0]:
            continue
        live = [
            (b["address"], b["size"], b.get("frames") or [])
            for s in snapshot["segments"] if s.get("device", 0) == peak.device
            for b in _placed(s) if b["state"] == "active_allocated"
        ]  # fmt: skip
        total, index = _highest(events, sum(size for _, size, _ in live))
        if index is None or abs(total - peak.allocated) > TOLERANCE * peak.allocated:
            continue
        pools = _graph_pools(snapshot, peak.device)
        blocks = _blocks(events, live, index)
        sums, at, by_stack = _classify(blocks, owners, peak.device, events, index, edges, pools)
        sums["other"] = sums.get("other", 0) + peak.allocated - sum(sums.values())
        record = {"type": "categories", "device": "cuda:%d" % peak.device, "allocated_bytes": peak.allocated,
                  "reserved_bytes": peak.reserved, "step": at[1], **{k: v for k, v in sums.items() if v}}  # fmt: skip
        if by_stack:
            record["by_stack_bytes"] = by_stack
        if pools:
            record["graph_pools_bytes"] = sum(end - begin for begin, end in pools)
        if 0 < at[0] < 8:
            record["phase"] = ("", "step", "data", "forward", "backward", "optimizer", "evaluation", "checkpoint")[
                at[0]
            ]
        record.update(_line(events[index].get("frames") or []))
        yield record


def _graph_pools(snapshot: Any, device: int) -> List[Tuple[int, int]]:
    """Where the private pools lie from which CUDA graphs take what they compute into."""
    return sorted(
        (s["address"], s["address"] + s["total_size"]) for s in snapshot["segments"]
        if s.get("device", 0) == device and tuple(s.get("segment_pool_id") or (0, 0)) != (0, 0)
    )  # fmt: skip


def _placed(segment: Any) -> Iterator[Any]:
    """A segment's blocks with their addresses, which an older torch leaves out."""
    address = segment["address"]
    for block in segment["blocks"]:
        yield block if "address" in block else {**block, "address": address}
        address += block["size"]


def _rounded(size: int) -> int:
    return max(ROUND, (size + ROUND - 1) // ROUND * ROUND)


def _highest(events: List[Any], now: int) -> Tuple[int, Optional[int]]:
    """The highest number of live bytes, and the index of the allocation that brought it first: the edges of later steps
    may be left out."""
    best, at, total = 0, None, now
    for i in range(len(events) - 1, -1, -1):
        action = events[i]["action"]
        if action == "alloc":
            if total >= best:
                best, at = total, i
            total -= _rounded(events[i]["size"])
        elif action == "free_requested":
            total += _rounded(events[i]["size"])
    return best, at


def _blocks(events: List[Any], live: List[Live], index: int) -> List[Block]:
    """The blocks that lived right after the event at `index`."""
    blocks: Dict[int, Tuple[int, int, int]] = {address: (size, 0, len(events)) for address, size, _ in live}
    stacks = {address: frames for address, _, frames in live}
    for i in range(len(events) - 1, index, -1):
        event = events[i]
        if event["action"] == "alloc":
            blocks.pop(event["addr"], None)
        elif event["action"] == "free_requested":
            blocks[event["addr"]] = (_rounded(event["size"]), event["time_us"], i)
    began: Dict[int, Tuple[int, int]] = {}
    for i in range(index, -1, -1):
        event = events[i]
        if event["action"] == "alloc" and event["addr"] in blocks and event["addr"] not in began:
            began[event["addr"]] = (event["time_us"], i)
    whole = []
    for address, (size, freed, end) in blocks.items():
        us, start = began.get(address, (0, -1))
        frames = (events[start].get("frames") or []) if start >= 0 else [] if freed else stacks[address]
        whole.append((address, size, us, freed, not freed or end - start <= ONE_CALL, frames))
    return whole


def _classify(
    blocks: List[Block],
    owners: Any,
    device: int,
    events: List[Any],
    index: int,
    edges: Edges,
    pools: List[Tuple[int, int]],
) -> Tuple[Dict[str, int], Tuple[int, int], int]:
    """Bytes of each category, phase and step of the peak, and how many of the bytes only a stack told apart."""
    times = [edge[0] for edge in edges]

    def phase(us: int) -> Tuple[int, int]:
        at = bisect_right(times, us) - 1
        return (edges[at][1], edges[at][2]) if at >= 0 else (NONE, 0)

    owned: Dict[int, List[Tuple[str, int, List[int]]]] = {}
    for (where, address, bytes_, category, _), seen in owners.seen.items():
        if where == "cuda:%d" % device:
            owned.setdefault(address, []).append((category, bytes_, [owners.times[n] for n in seen]))
    peak = phase(events[index]["time_us"])
    workspaces: Set[int] = set()  # phases that have one for good
    sums: Dict[str, int] = {}
    by_stack = 0
    kept = bool(owners.more)  # an adapter says where keys and values lie
    for address, size, began, freed, brief, frames in sorted(blocks, key=lambda block: block[2]):
        category, bytes_ = next(
            (
                (named, whole)
                for named, whole, seen in owned.get(address, ())
                if any(began <= t and (not freed or t <= freed) for t in seen)
            ),
            ("", size),
        )
        if category == CACHE:  # an engine says how large its cache is; what the allocator adds is no part of it
            size = bytes_
        category = category or _named(frames, kept)
        born = phase(began) if began else (NONE, 0)
        if brief and not freed and _workspace(size) and not category:  # one that was full at its end freed nothing
            brief = born[1] < peak[1] or born[0] not in workspaces
            workspaces.add(born[0])
        category = category or _unowned(size, born, brief, peak)
        if category == "other" and _inside(pools, address):
            category = "graphs"
        elif category == "other":
            category = _of_stack(frames)
            by_stack += size if category != "other" else 0
        sums[category] = sums.get(category, 0) + size
    return sums, peak, by_stack


def _inside(pools: List[Tuple[int, int]], address: int) -> bool:
    at = bisect_right(pools, (address, 1 << 63)) - 1
    return at >= 0 and address < pools[at][1]


def _workspace(size: int) -> bool:
    """Whether a block is as large as one of cuBLAS's: an activation may be, too."""
    return any(0 <= size - workspace <= SLACK for workspace in WORKSPACES)


def _unowned(size: int, born: Tuple[int, int], brief: bool, peak: Tuple[int, int]) -> str:
    """What a block is that belongs to no model: by the phase it was allocated in."""
    if brief and _workspace(size) and born[0] in (FORWARD, BACKWARD, EVALUATION, STEP):
        return "workspaces"
    if born[0] in (FORWARD, EVALUATION):
        return "activations"
    if born[0] in (BACKWARD, OPTIMIZER):
        return "temporaries"
    if born[0] == DATA:
        return "inputs"
    if born[0] == STEP:  # between the phases: the loss, batches that were moved by hand
        return "activations" if peak[0] in (BACKWARD, STEP) and born[1] == peak[1] else "other"
    return "other"


def _named(frames: List[Any], kept: bool) -> str:
    """What a block is for by the name of who allocated it, whatever the phase. kept: the KV cache is known."""
    for frame in frames:
        place = "%s:%s" % (frame["filename"], frame["name"])
        if not kept and KEPT_KEYS.search(place):
            return CACHE
        if "dequant" in frame["name"].lower():
            return "temporaries"
    return ""


def _of_stack(frames: List[Any]) -> str:
    """What a block is for whose phase nobody saw, as in a first step: the model was not known before it ended."""
    for frame in frames:
        file, name = frame["filename"], frame["name"]
        if "/torch/optim/" in file:
            return "temporaries"
        if name == "_call_impl" and file.endswith("/torch/nn/modules/module.py"):
            return "activations"
    return "other"


def _line(frames: List[Any]) -> Dict[str, Any]:
    """The user's own line of a stack, innermost first."""
    for frame in frames:
        if not is_library(frame["filename"]):
            return {"file": frame["filename"], "line": frame["line"], "function": frame["name"]}
    return {}
