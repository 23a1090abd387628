"""Break one rule of the allocator's model at a time: every time, a mismatch must follow.

    python bench/mutants.py [--quick] [--programs FILE] [--only TEXT | --part 1/4]

PyTorch's own allocator is recorded first (scripts/oracle.py, every version at hand). Then each rule below
is broken in a copy of its file, which `go test -overlay` puts in the place of the original, and the
recorded programs and the traces of real GPUs are played: a rule whose breaking nobody notices is told.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import CACHE, RESULTS, ROOT, Row, exit_code, publish

ALLOCATOR = ROOT / "internal" / "allocator"
DEVICE = "name=NVIDIA A10;slug=a10;memory=23729274880;context=0;cc=8.6;sms=72"


@dataclass(frozen=True)
class Mutant:
    rule: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("the least block is 512 bytes", "settings.go", "minBlock     = 512 ", "minBlock     = 1024 "),
    Mutant("up to 1 MiB the small pool serves", "settings.go", "smallLimit   = 1 * mem.MiB", "smallLimit   = 1*mem.MiB - 512"),
    Mutant("small segments are 2 MiB", "settings.go", "smallSegment = 2 * mem.MiB", "smallSegment = 4 * mem.MiB"),
    Mutant("large segments are 20 MiB", "settings.go", "largeSegment = 20 * mem.MiB", "largeSegment = 22 * mem.MiB"),
    Mutant("from 10 MiB on a segment is a request's own", "settings.go", "case rounded < minOwn:", "case rounded <= minOwn:"),
    Mutant("own segments are rounded to 2 MiB", "settings.go", "ownStep      = 2 * mem.MiB", "ownStep      = 4 * mem.MiB"),
    Mutant("divisions round from 512 times their number on", "settings.go", "d > 1 && n > minBlock*mem.Bytes(d)", "d > 1 && n > 8*minBlock*mem.Bytes(d)"),
    Mutant("powers of two stay as they are", "settings.go", "if n&(n-1) == 0 {\n\t\treturn n", "if n&(n-1) == 0 {\n\t\treturn n + minBlock"),
    Mutant("divisions go by powers of two", "settings.go", "bits.Len64(uint64(n)) - 1 - 20", "bits.Len64(uint64(n)) - 20"),
    Mutant("max_non_split_rounding is as large segments", "settings.go", "\treturn s.largeSegment()\n}\n\n// page is", "\treturn 2 * s.largeSegment()\n}\n\n// page is"),
    Mutant("reservations are 9/8 of the memory at most", "settings.go", "size := memory + memory/8", "size := memory / 256"),
    Mutant("expandable_segments_reserve in bytes", "settings.go", "size = min(size, s.ReserveBytes)", "size = min(size, 4*s.ReserveBytes)"),
    Mutant("expandable_segments_reserve as a part", "settings.go", "s.ReserveFraction*float64(memory))", "4*s.ReserveFraction*float64(memory))"),
    Mutant("ties by the age of segments in newer versions", "settings.go", "return BySegment", "return ByAddress"),
    Mutant("ties by address in older versions", "settings.go", "return ByAddress", "return BySegment"),
    Mutant("ties by the age of blocks in between", "settings.go", "return ByBlock", "return BySegment"),
    Mutant("of a split block the front is the new one", "native.go", "n.blocks[rest].made, n.blocks[b].made // the front", "n.blocks[b].made, n.blocks[rest].made // the front"),
    Mutant("a fraction of 1 is a limit in older versions", "settings.go", "v.Before(pytorch.FractionOfOneFrees)", "false"),
    Mutant("the rest of divisions begins at the last size in older versions", "settings.go", "v.Before(pytorch.RestAfterLast)", "false"),
    Mutant("small blocks are kept for small requests", "native.go", "if rounded <= smallLimit {\n\t\treturn small", "if rounded < smallLimit {\n\t\treturn small"),
    Mutant("collection counts every look into a pool", "native.go", "\t\ta.pool.calls++", "\t\ta.pool.calls += 2 * (a.pool.calls & 1)"),
    Mutant("oversize blocks are kept for oversize requests", "native.go", "a.rounded < n.maxSplit && size >= n.maxSplit", "a.rounded < n.maxSplit && size > 2*n.maxSplit"),
    Mutant("oversize requests do not waste", "native.go", "size >= a.rounded+n.maxNonSplitRound", "size > 2*(a.rounded+n.maxNonSplitRound)"),
    Mutant("expandable blocks are left without the setting", "native.go", "\tif !a.expandable {\n\t\tfor ok := true", "\tif false {\n\t\tfor ok := true"),
    Mutant("holes come before what can grow", "native.go", "n.growable(list.at(next).block) >= n.growable(list.at(at).block)", "true"),
    Mutant("garbage is collected before new memory is taken", "native.go", "\tif n.collects() {\n\t\tn.collectGarbage()", "\tif false {\n\t\tn.collectGarbage()"),
    Mutant("oversize blocks go first", "native.go", "\tif n.releaseOversize(a) {", "\tif false {"),
    Mutant("a failed release of oversize blocks is not a reason to try", "nativefree.go", "return released >= wanted", "return true"),
    Mutant("a capture does not wait", "native.go", "\tif !a.Capturing {\n\t\tn.releaseCached()", "\tif true {\n\t\tn.releaseCached()"),
    Mutant("retries are counted", "native.go", "n.Stats.AllocRetries++", "n.Stats.AllocRetries += 2"),
    Mutant("the memory limit", "native.go", "n.limited && n.total+a.segment > n.limit", "n.limited && n.total+a.segment >= 2*n.limit"),
    Mutant("the memory limit counts whole segments", "native.go", "n.limited && n.total+a.segment > n.limit", "n.limited && n.total+a.rounded > n.limit"),
    Mutant("throw_on_cudamalloc_oom", "native.go", "if n.settings.ThrowOnCudaMalloc && n.memory > 0", "if false"),
    Mutant("rejected requests leave no event", "native.go", "\tif rejected {\n\t\treturn 0", "\tif rejected && false {\n\t\treturn 0"),
    Mutant("the small pool splits from 512 bytes on", "settings.go", "return rest >= minBlock", "return rest >= 2*minBlock"),
    Mutant("the large pool splits above 1 MiB", "settings.go", "rest > smallLimit", "rest >= smallLimit"),
    Mutant("oversize blocks are not split", "settings.go", "&& (s.MaxSplit <= 0 || rounded < s.MaxSplit)", ""),
    Mutant("parts of expandable segments do not count as split", "native.go", "\t\tif !expandable {\n\t\t\tf.change(parts, cached)", "\t\tif !expandable || true {\n\t\t\tf.change(parts, cached)"),
    Mutant("whole use of a split block", "native.go", "parts, cached = -1, -block.size", "parts, cached = 0, -block.size"),
    Mutant("best fit: ties by address", "native.go", "return key{uint64(block.size), block.address}", "return key{uint64(block.size), -block.address}"),
    Mutant("best fit: ties by age", "native.go", "uint64(s.age)<<32", "uint64(-s.age)<<32"),
    Mutant("large before small when emptying the cache", "nativefree.go", "n.releaseBlocks(n.large)\n\tn.releaseBlocks(n.small)", "n.releaseBlocks(n.small)\n\tn.releaseBlocks(n.large)"),
    Mutant("emptying the cache waits", "nativefree.go", "\tn.completeAll(nil)\n", "\tn.Stats.SyncAllStreams++\n"),
    Mutant("pools with users keep their memory", "nativefree.go", "\tif p.used {\n\t\treturn false", "\tif false {\n\t\treturn false"),
    Mutant("a dropped pool waits for its own frees", "nativefree.go", "\t\tn.completeAll(p)\n", ""),
    Mutant("expandable blocks come after plain ones", "nativefree.go", "\t\t\t\texpandable = append(expandable, b)", "\t\t\t\t_ = n.unmap(b) && n.whole(b)"),
    Mutant("partly used segments stay", "nativefree.go", "return n.blocks[b].prev == 0 && n.blocks[b].next == 0", "return n.blocks[b].prev == 0"),
    Mutant("joining with the block before", "nativefree.go", "[2]int32{block.prev, block.next}", "[2]int32{0, block.next}"),
    Mutant("joining with the block after", "nativefree.go", "[2]int32{block.prev, block.next}", "[2]int32{block.prev, 0}"),
    Mutant("oversize release wants at least max_split_size", "nativefree.go", "wanted := max(a.rounded, n.maxSplit)", "wanted := a.rounded"),
    Mutant("oversize release leaves smaller blocks", "nativefree.go", "\t\tif n.blocks[b].size < n.maxSplit {\n\t\t\tbreak", "\t\tif false {\n\t\t\tbreak"),
    Mutant("collection stops below the threshold", "nativefree.go", "if n.total <= threshold {", "if n.total <= 2*threshold {"),
    Mutant("collection takes those above average age", "nativefree.go", "float64(n.idle(b)) < average", "float64(n.idle(b)) <= average"),
    Mutant("collection goes on only until enough is freed", "nativefree.go", "freed && target > 0 && count > 0", "freed && count > 0"),
    Mutant("collection leaves expandable segments", "nativefree.go", "n.segmentOf(b).expandable || float64", "float64"),
    Mutant("oversize allocations are counted", "nativefree.go", "n.Stats.OversizeAllocations.down(1)", "n.Stats.OversizeAllocations.down(2)"),
    Mutant("growth begins in the free block before a hole", "expandable.go", "prev != 0 && n.blocks[prev].state == free {\n\t\t\tb = prev", "prev != 0 && false {\n\t\t\tb = prev"),
    Mutant("growth takes the lowest place", "expandable.go", "if room >= a.rounded {\n\t\t\treturn b", "if room >= 2*a.rounded {\n\t\t\treturn b"),
    Mutant("mapping in whole pages", "expandable.go", "size = roundUp(size, page)\n", "size = roundUp(size, 2*page)\n"),
    Mutant("only whole pages are unmapped", "expandable.go", "(block.address-s.base+page-1)/page*page", "(block.address-s.base)/page*page"),
    Mutant("mapped blocks join the one before", "expandable.go", "\tn.joinNeighbour(b, n.blocks[b].prev, free)\n", ""),
    Mutant("a reservation must hold the request", "expandable.go", "if size < a.rounded {", "if false {"),
    Mutant("reservations free of memory are given back", "nativefree.go", "n.unmap(b) && n.whole(b) {\n\t\t\tn.releaseReservation(b)", "n.unmap(b) && false {\n\t\t\tn.releaseReservation(b)"),
    Mutant("peaks", "stats.go", "s.Peak = max(s.Peak, s.Current)", "s.Peak = max(s.Peak, s.Current-n)"),
    Mutant("sums of decreases", "stats.go", "s.Freed += n", "s.Freed += 2 * n"),
    Mutant("active until no stream uses a block", "stats.go", "\tf.ActiveBytes.down(int64(size))", "\tf.ActiveBytes.down(int64(requested))"),
]  # fmt: skip


def record(folder: Path, programs: int) -> list[Path]:
    """Programs of every PyTorch at hand; the imaginary GPU must be built."""
    library = ROOT / "device" / "lib" / "libhightide_device.so"
    files = []
    for python in sorted(CACHE.glob("torch-*/bin/python")):
        file = folder / f"{python.parent.parent.name}.jsonl"
        env = {**os.environ, "LD_PRELOAD": str(library), "HIGHTIDE_DEVICE_SPEC": DEVICE}
        env["LD_LIBRARY_PATH"] = str(library.parent)
        command = [
            str(python),
            "-W",
            "ignore",
            str(ROOT / "scripts" / "oracle.py"),
            "--programs",
            str(programs),
            "--build",
            str(folder),
        ]
        with file.open("w") as out:
            subprocess.run(command, env=env, stdout=out, stderr=subprocess.DEVNULL, check=True)
        files.append(file)
    return files


def noticed(mutant: Mutant, folder: Path, programs: Path) -> str:
    """Whether the tests fail under a mutant: "noticed", "missed", or why it could not be tried."""
    original = ALLOCATOR / mutant.file
    source = original.read_text()
    if source.count(mutant.old) != 1:
        return f"the rule's text is {source.count(mutant.old)} times in {mutant.file}"
    mutated, overlay = folder / mutant.file, folder / "overlay.json"
    mutated.write_text(source.replace(mutant.old, mutant.new))
    overlay.write_text(json.dumps({"Replace": {str(original): str(mutated)}}))
    tests = "OracleFile|RealTraces|FractionOfOne|Pool|Oversize|Collection"  # from the third on of what the generator meets too seldom
    command = ["go", "test", "-vet=off", f"-overlay={overlay}", "-run", tests, "./internal/allocator"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "HIGHTIDE_ORACLE": str(programs)}, capture_output=True, text=True
    )
    if "build failed" in done.stdout + done.stderr:
        return "does not compile: " + done.stderr.strip().splitlines()[-1]
    return "noticed" if done.returncode else "missed"


def summary(results: dict[str, str]) -> tuple[Row, dict[str, object]]:
    """What these results and those of earlier parts say together. A part counts only for the model it was tried on."""
    sources = sorted(file for file in ALLOCATOR.glob("*.go"))
    model = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()
    file = RESULTS / "mutants.json"
    earlier = json.loads(file.read_text())["raw"] if file.exists() else {}
    if earlier.get("model") == model:
        results = {**earlier["rules"], **results}
    results = {mutant.rule: results[mutant.rule] for mutant in MUTANTS if mutant.rule in results}
    found = sum(what == "noticed" for what in results.values())
    untried = len(MUTANTS) - len(results)
    figure = f"{found} of {len(results)} noticed" + (f", {untried} not tried" if untried else "")
    row = Row("rules of the allocator, each broken", figure, "all", found == len(results))
    return row, {"model": model, "rules": results}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer programs: a rule that few of them meet may be missed"
    )
    parser.add_argument("--programs", type=Path, help="recorded before: the lines of scripts/oracle.py")
    parser.add_argument("--part", default="1/1", help="every n-th rule; parts add up, as long as the model stays")
    parser.add_argument("--only", default="", help="rules whose words contain this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = options.programs or folder / "programs.jsonl"
        if not options.programs:
            programs.write_text("".join(file.read_text() for file in record(folder, 150 if options.quick else 600)))
        part, parts = map(int, options.part.split("/"))
        results = {}
        for mutant in MUTANTS[part - 1 :: parts]:
            if options.only in mutant.rule:
                results[mutant.rule] = noticed(mutant, folder, programs)
                print(f"{results[mutant.rule]:8} {mutant.rule}", flush=True)
    row, told = summary(results)
    publish("mutants", [row], told)
    return exit_code([row])


if __name__ == "__main__":
    sys.exit(main())
