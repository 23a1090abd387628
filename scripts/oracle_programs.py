"""Made-up programs for scripts/oracle.py: settings, requests and frees, by seed."""

from __future__ import annotations

import random

MIB = 1 << 20

# Operations, as oracle_test.go reads them: five integers each.
(ALLOC, FREE, RECORD, EMPTY, GATE, CONFIGURE, FRACTION, BEGIN, END, RELEASE, PEAKS, SUMS, POOL, DESTROY, CAPTURE,
 CAPTURED) = range(16)  # fmt: skip

CAPTURE_STREAM = 3


# Settings that move no memory of a device, by the version from which on they are known.
IDLE = {
    (2, 6): ["release_lock_on_cudamalloc:True", "pinned_use_cuda_host_register:True", "pinned_num_register_threads:8"],
    (2, 9): [
        "release_lock_on_hipmalloc:True",
        "pinned_use_hip_host_register:True",
        "pinned_use_background_threads:True",
        "graph_capture_record_stream_reuse:True",
    ],
    (2, 15): [
        "pinned_free_catch_all:True",
        "pinned_reserve_segment_size_mb:32",
        "pinned_max_round_threshold_mb:64",
        "pinned_max_cached_size_mb:128",
        "expandable_segments_reserve_by_class:[serving:0.01]",
    ],
}


class Program:
    """A made-up program: what it sets, what it asks for, in which order."""

    def __init__(self, seed: int, length: int, version: tuple[int, int], total: int, fresh: bool = False) -> None:
        self.random = random.Random(seed)
        self.seed, self.length, self.version, self.total = seed, length, version, total
        # In a process of its own: its settings come from the environment, and nothing is cleaned up.
        self.fresh = fresh
        self.ops: list[tuple[int, ...]] = []
        self.kept: list[int] = []  # pools with a user at the end
        self.pools: list[int] = []  # objects that keep a pool
        self.names = 0
        self.live: list[int] = []
        self.scope = self.capture = 0
        r = self.random
        self.style = r.choice(["mixed", "training", "stack", "serving", "small", "tight", "tight"])
        self.streams = r.choice([1, 1, 2, 4])
        self.record = self.streams > 1 and r.random() < 0.6
        # Before 2.6 a pool serves one stream, by another entry point.
        self.uses_pools = r.random() < (0.5 if fresh else 0.25) and version >= (2, 6)
        self.captures = self.uses_pools and version >= (2, 15) and r.random() < 0.5
        if self.captures:  # an event recorded in a capture cannot be asked for
            self.streams = min(self.streams, CAPTURE_STREAM)
        self.uses_objects = self.uses_pools and version >= (2, 9) and r.random() < 0.5
        # With private pools, PyTorch's own count of a pool's pages goes wrong and an assertion ends the
        # process once their memory is given back: only where that never happens.
        self.expandable = not self.uses_pools or fresh
        self.order = r.choice([0, 1, 2, 3])
        self.capacity = 0
        self.odd = False
        self.confs = [self.conf(True)]
        self.releases = "expandable_segments:True" not in self.confs[0] or not self.uses_pools
        # A stream that is being captured must not be waited for, as a retry would.
        self.rejects = "throw_on_cudamalloc_oom:True" in self.confs[0]
        if self.rejects:
            self.length *= 2  # what is rejected leaves no event
        self.limited = self.releases and not self.captures
        if self.limited and (self.style == "tight" or r.random() < 0.25):
            self.capacity = r.randrange(30, 400) * 2 * MIB
        if not self.uses_pools and r.random() < 0.15:
            self.confs.append(self.conf(False))
        self.write()

    def reserves_in_vain(self) -> bool:
        """Whether address space may stay reserved for which no memory was left: no way to give it back."""
        return (self.capacity > 0 or self.rejects) and any("expandable_segments:True" in conf for conf in self.confs)

    def conf(self, first: bool) -> str:
        """One line of settings. The first states all that would survive from an earlier program."""
        r = self.random
        parts = []
        large = 20
        if self.version >= (2, 11) and first:
            large = r.choice([20, 20, 20, 11, 16, 32, 64, 21])
            self.odd = large % 2 == 1  # no device maps pages of that size
            parts.append(f"large_segment_size_mb:{large}")
        parts.append(f"expandable_segments:{self.expandable and not self.odd and r.random() < 0.35}")
        if self.version >= (2, 13):
            parts.append(f"throw_on_cudamalloc_oom:{r.random() < 0.1}")
        parts += self.idle()
        if not first and r.random() < 0.5:
            return ",".join(parts)
        if self.fresh and first:
            parts += self.fresh_only()
        if r.random() < 0.3 and first:
            least = large if self.version >= (2, 11) else large + 1
            parts.append(
                f"max_split_size_mb:{r.choice([least, large + 1, 32, 48, 64, 100]) if large <= 32 else large + 8}"
            )
            # Up to 2.10 what was set before stays.
            if (r.random() < 0.4 or self.version < (2, 11)) and self.version >= (2, 6):
                parts.append(f"max_non_split_rounding_mb:{least + r.choice([0, 1, 12, 100])}")
        if r.random() < 0.35:
            one = str(r.choice([1, 2, 4, 8, 16]))
            listed = (
                "[" + ",".join(f"{1 << b}:{r.choice([0, 1, 2, 4, 8])}" for b in sorted(r.sample(range(8), 3))) + ",>:2]"
            )
            parts.append(f"roundup_power2_divisions:{r.choice([one, listed])}")
        if r.random() < 0.4:
            parts.append(f"garbage_collection_threshold:{r.choice([0.2, 0.5, 0.6, 0.8, 0.95])}")
        return ",".join(parts)

    def idle(self) -> list[str]:
        """Settings that must not move any memory of a device."""
        r = self.random
        if r.random() < 0.7:
            return []
        known = [setting for since, settings in IDLE.items() if self.version >= since for setting in settings]
        if self.version < (2, 15) and self.uses_pools:  # 2.9 fails an assertion in a pool's scope
            known = [setting for setting in known if not setting.startswith("graph_capture")]
        if self.fresh:
            known.append("backend:native")
        return r.sample(known, min(2, len(known)))

    def fresh_only(self) -> list[str]:
        """Settings that count from a process's beginning, or cannot be undone."""
        r = self.random
        parts = []
        if self.version >= (2, 10) and not self.captures and r.random() < 0.4:
            parts.append(f"per_process_memory_fraction:{r.choice([0.01, 0.02, 0.03, 1.0])}")
        if self.version >= (2, 15) and r.random() < 0.5:
            parts.append(f"expandable_segments_reserve:{r.choice(['0.01', '0.002', '1G', '0.05G'])}")
        return parts

    def write(self) -> None:
        r = self.random
        if self.limited and r.random() < 0.35:
            top = self.capacity or self.total
            self.ops.append((FRACTION, int(1e6 * min(1.0, r.uniform(0.3, 1.1) * min(top, 800 * MIB) / self.total))))
        elif self.rejects and self.limited:  # it then goes by the setting alone
            self.ops.append((FRACTION, 1_000_000))
        getattr(self, {"tight": "mixed"}.get(self.style, self.style))()
        if self.capture or self.scope:
            self.pool()

    def size(self) -> int:
        r = self.random
        kind = r.random()
        if self.rejects and r.random() < 0.02:
            return r.randrange(self.total // 4, self.total + self.total // 8)
        if self.style == "small":
            return r.choice([r.randrange(1, 4096), r.randrange(1, 200_000), 512, 1024, r.randrange(1, MIB + 2)])
        if kind < 0.25:
            return r.randrange(1, 8192)
        if kind < 0.4:
            return r.choice(
                [512, 513, MIB, MIB + 1, MIB - 511, 2 * MIB, 10 * MIB, 10 * MIB - 1, 10 * MIB - 512, 20 * MIB, 19 * MIB]
            )
        if kind < 0.6:
            return r.randrange(1, 2 * MIB)
        if kind < 0.85:
            return r.randrange(MIB, 24 * MIB)
        return r.randrange(10 * MIB, r.choice([40, 130]) * MIB)

    def alloc(self, size: int | None = None) -> int:
        r = self.random
        self.names += 1
        name = self.names
        stream = r.randrange(self.streams) if r.random() < 0.4 else 0
        if self.capture and r.random() < 0.6:
            stream = CAPTURE_STREAM
        size = size or self.size()
        tensor = int(self.record and r.random() < 0.5)
        self.ops.append((ALLOC, name, size, stream, tensor))
        self.live.append(name)
        # Earlier versions remember uses inside a pool's scope by the address of a C++ object, which may be
        # another block's by the time it is freed.
        if tensor and (not self.scope or self.version >= (2, 15)):
            for _ in range(r.choice([0, 1, 1, 2])):
                self.ops.append((RECORD, name, r.randrange(self.streams)))
        return name

    def free(self, at: int = -1) -> None:
        self.ops.append((FREE, self.live.pop(at)))

    def aside(self) -> None:
        """Now and then something else than allocations."""
        r = self.random
        if r.random() < 0.02 and not self.capture and (not self.scope or self.version >= (2, 15)):
            self.ops.append((EMPTY,))  # earlier ones refuse it inside a pool's scope
        if self.record and r.random() < 0.08:
            self.ops.append((GATE, r.randrange(self.streams), r.randrange(2)))
        if r.random() < 0.005:
            self.ops.append((r.choice([PEAKS, SUMS]),))
        if len(self.confs) > 1 and r.random() < 0.01:
            self.ops.append((CONFIGURE, 1))
        if self.uses_pools and r.random() < 0.06:
            self.pool()

    def pool(self) -> None:
        r = self.random
        if self.capture:
            self.ops.append((CAPTURED, self.capture))
            self.kept.append(self.capture)
            self.capture = 0
        elif self.scope:
            self.ops.append((END, self.scope))
            if self.scope in self.pools:  # as the context manager does
                self.ops.append((RELEASE, self.scope))
            self.scope = 0
        elif self.captures and r.random() < 0.4:
            self.capture = len(self.ops) + 1
            self.ops.append((CAPTURE, self.capture, CAPTURE_STREAM))
        elif self.uses_objects and r.random() < 0.5:
            self.object()
        elif self.kept and r.random() < 0.3 and self.releases:
            self.ops.append((RELEASE, self.kept.pop(r.randrange(len(self.kept)))))
        else:
            # A pool whose last user went must not be used again.
            plain = [k for k in self.kept if not any(op[:2] == (CAPTURE, k) for op in self.ops)]
            self.scope = r.choice(plain) if plain and r.random() < 0.6 else len(self.ops) + 1
            self.ops.append((BEGIN, self.scope))
            self.kept.append(self.scope)

    def object(self) -> None:
        """Make, use or drop a torch.cuda.MemPool."""
        r = self.random
        if not self.pools or r.random() < 0.3:
            self.pools.append(len(self.ops) + 1)
            self.ops.append((POOL, self.pools[-1]))
        elif r.random() < 0.7 or not self.releases:
            self.scope = r.choice(self.pools)
            self.ops.append((BEGIN, self.scope))
        elif not (self.fresh and self.version < (2, 10)):
            self.ops.append((DESTROY, self.pools.pop(r.randrange(len(self.pools)))))

    def mixed(self) -> None:
        r = self.random
        goal = r.choice([5, 20, 60])
        while len(self.ops) < self.length:
            self.aside()
            if not self.live or r.random() < goal / (goal + len(self.live)):
                self.alloc()
            else:
                self.free(r.randrange(len(self.live)))

    small = mixed

    def stack(self) -> None:
        r = self.random
        while len(self.ops) < self.length:
            for _ in range(r.randrange(1, 15)):
                self.alloc()
                self.aside()
            for _ in range(r.randrange(1, len(self.live) + 1)):
                self.free()

    def training(self) -> None:
        """Parameters, activations freed backwards while gradients come, states of an optimizer."""
        r = self.random
        layers = [self.size() for _ in range(r.randrange(3, 12))]
        for size in layers:
            self.alloc(size)
        states = False
        while len(self.ops) < self.length:
            batch = r.choice([1, 1, 1, 2])
            kept = len(self.live)
            for size in layers:
                self.alloc(max(1, size * batch // r.choice([1, 2, 4])))
                self.alloc(r.randrange(1, 4 * MIB))
                if r.random() < 0.5:
                    self.free()
                self.aside()
            gradients = 0
            while len(self.live) - gradients > kept:
                self.free(
                    kept + r.randrange(len(self.live) - kept - gradients)
                    if r.random() < 0.1
                    else len(self.live) - 1 - gradients
                )
                if gradients < len(layers):
                    self.alloc(layers[-1 - gradients])
                    gradients += 1
            if not states:
                states = True
                kept += 2 * len(layers)
                for size in layers * 2:
                    self.alloc(size)
                    self.live.insert(0, self.live.pop())
            while len(self.live) > kept:
                self.free()
            self.aside()

    def serving(self) -> None:
        """Requests that grow step by step and end in any order."""
        r = self.random
        running: list[list[int]] = []
        while len(self.ops) < self.length:
            self.aside()
            if len(running) < 6 and r.random() < 0.3:
                running.append([])
            for request in running:
                old = request[-1] if request else r.randrange(1, 3 * MIB)
                self.alloc(old + old // 8 + 512)
                request.append(old + old // 8 + 512)
                if len(self.live) > 12:
                    self.free(r.randrange(len(self.live) - 1))
            running = [q for q in running if r.random() < 0.9]
