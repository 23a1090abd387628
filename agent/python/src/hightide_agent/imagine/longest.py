"""--longest: the largest sample of a data set is in the first batch, or the largest batch comes first.

    DataLoader's index sampler ─▶ ours: the same indices, the largest sample's in the place of the first one
                                   └ a batch sampler of the program's own ─▶ its batches, the largest one first

Samples are looked at once, FIRST of them at most; of how many is told as a `condition`. A sample's size is what its
tensors, arrays, lists and texts hold together.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Iterator, List

from ..agent import Agent
from .coverage import Coverage

FIRST = 20_000  # samples that are looked at
DEEPEST = 4


def install(agent: Agent, seen: Coverage) -> Callable[[Any], None]:
    """Put ours around the index samplers of loaders."""

    def installed(module: Any) -> None:
        original = module.DataLoader._index_sampler.fget
        plain = module.BatchSampler if hasattr(module, "BatchSampler") else None
        sizes: Any = weakref.WeakKeyDictionary()

        def _index_sampler(loader: Any) -> Any:
            sampler = original(loader)
            data = loader.dataset
            try:
                if not hasattr(data, "__getitem__") or not len(data):
                    return sampler
                if loader not in sizes:
                    sizes[loader] = Sizes(data)
                return Ordered(agent, seen, sampler, sizes[loader], type(sampler) is plain)
            except Exception as error:
                agent.log("could not look for the longest sample", error)
                return sampler

        module.DataLoader._index_sampler = property(functools.wraps(original)(_index_sampler))

    return installed


class Sizes:
    """How large the samples of a data set are."""

    def __init__(self, data: Any) -> None:
        self.total = len(data)
        self.all: List[int] = [size(data[index]) for index in range(min(self.total, FIRST))]

    @property
    def largest(self) -> int:
        """The index of the largest sample."""
        return max(range(len(self.all)), key=self.all.__getitem__)

    def of(self, batch: Any) -> int:
        """The size of a batch that is filled up to its largest sample."""
        return len(batch) * max([self.all[i] for i in batch if isinstance(i, int) and i < len(self.all)] or [0])


class Ordered:
    """A sampler whose first batch has the largest sample. Everything else is the sampler's own."""

    def __init__(self, agent: Agent, seen: Coverage, sampler: Any, sizes: Sizes, plain: bool) -> None:
        self.agent, self.seen, self.sampler, self.sizes, self.plain = agent, seen, sampler, sizes, plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sampler, name)

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self.sampler)
        first = next(indices, None)
        if first is None:
            return
        largest = self.sizes.largest
        if isinstance(first, list) and not self.plain:
            yield from self._batches([first, *indices])
            return
        displaced = first[0] if isinstance(first, list) else first
        if largest not in (first if isinstance(first, list) else [first]):
            first = [largest, *first[1:]] if isinstance(first, list) else largest
        self._tell("sample %d" % largest)
        yield first
        for each in indices:
            yield [displaced if i == largest else i for i in each] if isinstance(each, list) else (
                displaced if each == largest else each)  # fmt: skip

    def _batches(self, batches: List[Any]) -> Iterator[Any]:
        place = max(range(len(batches)), key=lambda n: self.sizes.of(batches[n]))
        self._tell("batch %d" % place)
        yield batches[place]
        yield from batches[:place] + batches[place + 1 :]

    def _tell(self, what: str) -> None:
        seen, total = len(self.sizes.all), self.sizes.total
        self.seen.first = what
        looked = "%d samples" % total if seen == total else "the first %d of %d samples" % (seen, total)
        self.agent.record({"type": "condition", "name": "longest first", "value": "%s of %s" % (what, looked)})


def size(sample: Any, depth: int = 0) -> int:
    """What a sample holds: elements of tensors and arrays, characters of texts, and 1 for each other thing."""
    elements = getattr(sample, "numel", None)
    if callable(elements):
        return int(elements())
    if isinstance(getattr(sample, "size", None), int):  # an array
        return int(sample.size)
    if isinstance(sample, (str, bytes)):
        return len(sample)
    inner = sample.values() if hasattr(sample, "values") else sample if isinstance(sample, (list, tuple)) else None
    if inner is None or depth >= DEEPEST:
        return 1
    if isinstance(inner, list) and inner and isinstance(inner[0], (int, float)):
        return len(inner)
    return sum(size(each, depth + 1) for each in inner)
