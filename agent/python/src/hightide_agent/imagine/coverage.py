"""What a training that was ended early did not show: evaluation, checkpoints, the longest batch."""

from __future__ import annotations

import functools
import linecache
import re
import sys
import tokenize
from typing import Any, Callable, Dict, Iterator, List

from .. import collected
from ..places import is_library
from ..tracker import CHECKPOINT, EVALUATION
from ..training import Training

MAX_DEPTH = 4
MAX_SHAPES = 64
TRAINERS = frozenset(("lightning.pytorch", "pytorch_lightning", "fastai", "ignite"))
SETTINGS = r"(?!ion_strategy|strategy|steps|batch|accumulation|delay|on_|do_|total|safetensors|only|compile)"
EVALUATES = re.compile(
    r"\.eval ?\(|evaluat%s|validat|no_grad|inference_mode|\beval_%s|\bval_|\btest_" % (SETTINGS, SETTINGS)
)
EVAL_MODE = re.compile(r"\.eval ?\(")
SAVES = re.compile(r"\bsave ?\(|save_%s|checkpoint(?!ing)|state_dict ?\(\)" % SETTINGS)
"""What the source of a program has that evaluates, or saves, and is not a setting of a trainer."""


class Coverage:
    """Which phases were seen, and what the loaders gave."""

    def __init__(self, training: Training, torch: Any, unused: Any) -> None:
        self.unused = unused  # forward passes that no backward used: they evaluate, in whatever mode
        self.agent = training.agent
        self.tensor = torch.Tensor
        self.seen = {EVALUATION: 0, CHECKPOINT: 0}
        self.trained = {EVALUATION: False, CHECKPOINT: False}  # whether one came after a step
        self.trainer: Callable[[], Any] = lambda: None  # a weak reference: the arguments of transformers' Trainer
        self.first: Any = None  # what stands first in its loader
        self.loader: Dict[int, List[Any]] = {}  # id → [batches seen, batches in all, shapes, batch size]
        tracker: Any = training.tracker
        enter = tracker.enter

        def entered(phase: int, module: int = 0) -> bool:
            if phase in self.seen:
                self.seen[phase] += 1
                self.trained[phase] = self.trained[phase] or tracker.steps_now() > 0
            return bool(enter(phase, module))

        tracker.enter = entered

    def loaders(self, module: Any) -> None:
        """Note the shapes of what loaders give."""
        iterator = module._BaseDataLoaderIter
        original = iterator.__next__

        @functools.wraps(original)
        def __next__(this: Any) -> Any:
            batch = original(this)
            try:
                self._batch(this, batch)
            except Exception as error:
                self.agent.log("could not look at a batch", error)
            return batch

        iterator.__next__ = __next__

    def report(self) -> None:
        """Say what was not reached; called when the training is ended by us."""
        if not self.seen[EVALUATION] and self._has(EVAL_MODE, "eval_strategy"):
            self._say("evaluation", "no evaluation ran before the end: what it takes is not in these figures")
        elif not self.seen[EVALUATION] and not self.unused.evaluates() and self._has(EVALUATES, "eval_strategy"):
            self._say("evaluation", "no module was in eval mode before the end: what is evaluated without it, as under "
                      "no_grad, is not told from the rest", perhaps=True)  # fmt: skip
        if not self.seen[CHECKPOINT] and self._has(SAVES, "save_strategy"):
            self._say("checkpoint", "no checkpoint was saved before the end: what saving takes is not in these figures")
        for seen, total, shapes, _ in self.loader.values():
            if len(shapes) > 1 and (total is None or seen < total) and self.first is None:
                of = "" if total is None else " of %d" % total
                largest = max(shapes, key=lambda s: shapes[s])
                self._say("longest batch", "batches differ in size: %d%s seen, the largest %s; a larger one may follow"
                          % (seen, of, largest), perhaps=True)  # fmt: skip
                break

    def _has(self, pattern: Any, strategy: str) -> bool:
        """Whether the program has it: by the arguments of its trainer, or else by its source."""
        asked = getattr(self.trainer(), strategy, None)
        if asked is not None and str(getattr(asked, "value", asked)) != "no":
            return True
        return _in_source(pattern)

    def untrained(self, torch: Any) -> None:
        """The program ended without a step; say so if it was going to take some."""
        if trains(torch):
            self._say("training", "an optimizer was built and took no step: a training takes more")

    def _say(self, what: str, text: str, perhaps: bool = False) -> None:
        """Record what was not reached; perhaps: whether it was is not known."""
        self.agent.record({"type": "not_reached", "what": what, "text": text, "perhaps": perhaps})

    def _batch(self, iterator: Any, batch: Any) -> None:
        key = id(getattr(iterator, "_dataset", iterator))
        entry = self.loader.get(key)
        if entry is None:
            try:
                total = len(iterator)
            except TypeError:
                total = None
            entry = self.loader[key] = [0, total, {}, 0]
        entry[0] += 1
        shapes, size = [], 0
        for tensor in _tensors(batch, self.tensor):
            shapes.append("x".join(map(str, tensor.shape)))
            size += tensor.numel() * tensor.element_size()
        more = ", … (%d in all)" % len(shapes) if len(shapes) > 4 else ""
        text = ", ".join(shapes[:4]) + more or type(batch).__name__
        if len(entry[2]) < MAX_SHAPES or text in entry[2]:
            entry[2][text] = size


def trains(torch: Any) -> bool:
    """Whether the program has an optimizer of what lies on a GPU."""
    return any(
        parameter.is_cuda
        for optimizer in collected.of_types(collected.subclasses(torch.optim.Optimizer))
        for group in optimizer.param_groups
        for parameter in group["params"]
    )


def _in_source(pattern: Any) -> bool:
    """Whether the program's own source has it, or may have it: where a library trains, that decides."""
    if not TRAINERS.isdisjoint(sys.modules):
        return True
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path.endswith(".py") and not is_library(path) and pattern.search(_code(linecache.getlines(path))):
            return True
    return not getattr(sys.modules.get("__main__"), "__file__", None)  # python -c, a notebook: it cannot be seen


def _code(lines: List[str]) -> str:
    """A source without its comments and texts; all of it where it cannot be read."""
    source = iter(lines)
    try:
        tokens = tokenize.generate_tokens(lambda: next(source, ""))
        return "".join(
            t.string + " " * (t.type == tokenize.NAME) for t in tokens if t.type in (tokenize.NAME, tokenize.OP)
        )
    except (tokenize.TokenError, SyntaxError):
        return "".join(lines)


def _tensors(value: Any, kind: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif depth < MAX_DEPTH:
        inner = value.values() if hasattr(value, "values") else value if isinstance(value, (list, tuple)) else ()
        for item in inner:
            yield from _tensors(item, kind, depth + 1)
