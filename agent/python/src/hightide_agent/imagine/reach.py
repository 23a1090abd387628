"""Getting to what a training comes to late: an evaluation, a checkpoint, the end of an epoch.

    --until evaluation ─▶ loaders of the training end after a few batches ─▶ the epoch ends ─▶ the program evaluates
                          transformers' Trainer is told to evaluate and to save, once    ─▶ the evaluation's loader
                          Lightning's gets short epochs                                     ends once it takes no more

The training is not ended before each goal was reached after an optimizer step. A loader is taken for the training's
if steps were taken while it gave batches, and for an evaluation's if the model is not to train and nothing goes
backward. An evaluation that keeps its outputs takes more with each batch, and is not cut. What was cut is told as a
`condition`.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Callable, Dict, List, Set, Tuple

from ..serving import READY
from ..tracker import CHECKPOINT, EVALUATION
from ..training import Training
from .coverage import Coverage

BATCHES, STEPS = 8, 3  # of a loader of the training, before it ends
LEVEL = 8  # batches of an evaluation that took no more than the ones before
LIGHTNING = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")


class Reach:
    """The goals, and what is done to reach them."""

    def __init__(self, training: Training, seen: Coverage, torch: Any) -> None:
        self.agent = training.agent
        self.tracker = training.tracker
        self.seen = seen
        self.torch = torch
        self.goals: Set[str] = set(filter(None, os.environ.get("HIGHTIDE_IMAGINE_UNTIL", "").split(","))) - {READY}
        self._epoch = False
        self._evaluating = False  # the module that was set last is not to train
        self._forced: Set[str] = set()
        self._cut: Dict[str, str] = {}

    def install(self, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
        """Wrap what gives batches, where there is a goal. The Trainer's arguments are looked at in any case."""
        watch("transformers.trainer_callback", self._trainer)
        if not self.goals:
            return
        watch("torch.utils.data.dataloader", self._loaders)
        self._modes(self.torch.nn.Module)
        for name in LIGHTNING:
            watch(name, self._lightning)

    def missing(self) -> Set[str]:
        """The goals that are not reached yet."""
        reached = {"evaluation": self.seen.trained[EVALUATION], "checkpoint": self.seen.trained[CHECKPOINT],
                   "epoch": self._epoch}  # fmt: skip
        return {goal for goal in self.goals if not reached.get(goal, True)}

    def _loaders(self, module: Any) -> None:
        iterator = module._BaseDataLoaderIter
        original = iterator.__next__
        lives: Any = weakref.WeakKeyDictionary()

        @functools.wraps(original)
        def __next__(this: Any) -> Any:
            life = lives.get(this)
            if life is None:
                life = lives[this] = Life(weakref.ref(this), self.tracker.steps_now(), self.tracker.quick.backwards)
            if self._ends(life):
                raise StopIteration
            try:
                batch = original(this)
            except StopIteration:
                self._ended(life)
                raise
            life.given += 1
            return batch

        iterator.__next__ = __next__

    def _ends(self, life: Life) -> bool:
        """Whether a loader gives no further batch."""
        steps = self.tracker.steps_now() - life.step
        if steps:
            if life.given < BATCHES or steps < STEPS or not self.missing():
                return False
            self._tell("training's loader", life)
            self._ended(life)
            return True
        if not self._evaluates(life) or self._several():
            return False
        life.marks.append(self._marks())
        if len(life.marks) <= LEVEL or any(now > then for now, then in zip(life.marks[-1], life.marks[-1 - LEVEL])):
            return False
        self._tell("evaluation's loader", life)
        self._ended(life)
        return True

    def _evaluates(self, life: Life) -> bool:
        """Whether a pass over a loader is one of an evaluation, so far."""
        return (self._evaluating or not self.torch.is_grad_enabled()) and self.tracker.quick.backwards == life.backwards

    def _ended(self, life: Life) -> None:
        """A loader has given its last batch."""
        if self.tracker.steps_now() > life.step:
            self._epoch = True
        elif life.given and self.tracker.steps_now() and self._evaluates(life):  # hooks see no short ones
            self.seen.seen[EVALUATION] += 1
            self.seen.trained[EVALUATION] = True

    def _modes(self, module: Any) -> None:
        original = module.train

        @functools.wraps(original)
        def train(this: Any, mode: bool = True) -> Any:
            self._evaluating = not mode
            return original(this, mode)

        module.train = train

    def _several(self) -> bool:
        """Whether ranks run beside each other: all must take as many batches."""
        distributed = self.torch.distributed
        alone = os.environ.get("HIGHTIDE_IMAGINE_PLAY") or not distributed.is_available()
        return not alone and distributed.is_initialized() and distributed.get_world_size() > 1

    def _marks(self) -> Tuple[int, ...]:
        """What all devices hold now, and held at most."""
        if not self.torch.cuda.is_initialized():
            return (0,)
        found: List[int] = []
        for device in range(self.torch._C._cuda_getDeviceCount()):
            stats = self.torch._C._cuda_memoryStats(device)["allocated_bytes"]["all"]
            found += [stats["current"], stats["peak"]]
        return tuple(found)

    def _tell(self, whose: str, life: Life) -> None:
        try:
            of = " of %d" % len(life.of())
        except (TypeError, NotImplementedError):
            of = ""
        self._cut[whose] = "the %s after %d%s batches" % (whose, life.given, of)
        self.agent.record({"type": "condition", "name": "cut short", "value": ", ".join(self._cut.values())})

    def _trainer(self, module: Any) -> None:
        """transformers' Trainer evaluates and saves when its callbacks say so."""
        handler = module.CallbackHandler
        original = handler.on_step_end

        @functools.wraps(original)
        def on_step_end(this: Any, /, args: Any, state: Any, control: Any, *more: Any, **others: Any) -> Any:
            control = original(this, args, state, control, *more, **others)
            try:
                self.seen.trainer = weakref.ref(args)
                self._force(args, control)
            except Exception as error:
                self.agent.log("could not make the Trainer evaluate or save", error)
            return control

        handler.on_step_end = on_step_end

    def _force(self, args: Any, control: Any) -> None:
        if self.tracker.steps_now() < STEPS:
            return
        todo = self.missing() - self._forced
        for goal, strategy, name in (("evaluation", "eval_strategy", "should_evaluate"),
                                     ("checkpoint", "save_strategy", "should_save")):  # fmt: skip
            asked = getattr(args, strategy, "no")
            if goal in todo and str(getattr(asked, "value", asked)) != "no":
                self._forced.add(goal)
                setattr(control, name, True)

    def _lightning(self, module: Any) -> None:
        """Lightning counts the batches of an epoch beforehand, and evaluates and saves at its end."""
        original = module.Trainer.fit

        @functools.wraps(original)
        def fit(trainer: Any, /, *args: Any, **kwargs: Any) -> Any:
            trainer.limit_train_batches = BATCHES
            trainer.val_check_interval, trainer.check_val_every_n_epoch = 1.0, 1
            self._cut["epochs"] = "epochs after %d batches" % BATCHES
            self.agent.record({"type": "condition", "name": "cut short", "value": ", ".join(self._cut.values())})
            return original(trainer, *args, **kwargs)

        module.Trainer.fit = fit


class Life:
    """One pass over a loader."""

    def __init__(self, of: Callable[[], Any], step: int, backwards: int) -> None:  # a weak reference to its iterator
        self.of, self.step, self.backwards, self.given = of, step, backwards, 0
        self.marks: List[Tuple[int, ...]] = []
