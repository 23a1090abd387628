"""Where the program makes its optimizer and the settings of its trainer, for a plan that is to be written as code.

    Optimizer.__init__, TrainingArguments, Trainer, Accelerator, zero_grad ─▶ Sites ─▶ levers/written.py
                                                                 innermost frame of the program's own

Installed where HIGHTIDE_PATCH is set, before any of them is called.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ..places import is_users

Watch = Callable[[str, Callable[[Any], None]], None]

ARGUMENTS, LIGHTNING, ACCELERATOR = "TrainingArguments", "Trainer", "Accelerator"
TRANSFORMERS = "Trainer of transformers"
MAKERS = (
    ("transformers.trainer", TRANSFORMERS, "__init__"),
    ("transformers.training_args", ARGUMENTS, "__post_init__"),
    ("lightning.pytorch.trainer.trainer", LIGHTNING, "__init__"),
    ("pytorch_lightning.trainer.trainer", LIGHTNING, "__init__"),
    ("accelerate.accelerator", ACCELERATOR, "__init__"),
)
seen: Optional[Sites] = None
"""Those of this process."""
MOST_NAMES = 400  # variables of a frame that are looked at


def install(torch: Any, watch: Watch) -> None:
    """Note them from now on."""
    global seen
    seen = Sites(torch)
    seen.install(watch)


class Site:
    """A place in the program: a file, a line, and there the variables that hold modules."""

    def __init__(self, frame: Any) -> None:
        self.file, self.line = _place(frame)
        self.times = 1
        self.variables: List[Tuple[str, Any]] = []  # weak references

    def keep(self, torch: Any, frame: Any) -> None:
        """Note the variables by which a module can be named there."""
        module: type = torch.nn.Module
        for name, value in list(frame.f_locals.items())[:MOST_NAMES]:
            if isinstance(value, module):
                self.variables.append((name, weakref.ref(value)))
            elif name == "self":
                own = list(getattr(value, "__dict__", {}).items())[:MOST_NAMES]
                self.variables += [("self." + n, weakref.ref(v)) for n, v in own if isinstance(v, module)]

    def named(self, model: Any) -> Optional[str]:
        """The model as an expression, which holds at that place; None: no variable has it."""
        for name, reference in self.variables:
            if reference() is model:
                return name
        for name, reference in self.variables:
            for path, inner in getattr(reference(), "named_modules", lambda: ())():
                if inner is model:
                    return name + "".join("[%s]" % part if part.isdigit() else "." + part for part in path.split("."))
        return None


class Sites:
    """All places that were seen so far: optimizers by their id, trainers' settings by their class's name."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.optimizers: Dict[int, Site] = {}
        self.makers: Dict[str, Optional[Site]] = {}  # None: made by a library, as from the command line
        self.owners: Dict[str, Any] = {}  # the settings themselves
        self.settings: Set[str] = set()  # files of settings that are edited
        self.zeroing: Dict[Tuple[str, int], Site] = {}  # calls that keep gradients as zeros

    def install(self, watch: Watch) -> None:
        """Wrap what makes them."""
        watch("torch.optim.optimizer", lambda module: self._optimizers(module.Optimizer))
        for module, name, method in MAKERS:
            watch(module, functools.partial(self._maker, name, method))

    def of(self, optimizer: Any) -> Optional[Site]:
        """Where an optimizer was made; None where a library made it."""
        return self.optimizers.get(id(optimizer))

    def files(self) -> Set[str]:
        """The files of all places, and the one that was started."""
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        made = [*self.optimizers.values(), *self.makers.values(), *self.zeroing.values()]
        return (
            self.settings
            | {site.file for site in made if site is not None}
            | ({os.path.abspath(main)} if main else set())
        )

    def _optimizers(self, kind: Any) -> None:
        plain, zero = kind.__init__, kind.zero_grad

        @functools.wraps(plain)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            frame = _own(sys._getframe(1))
            if frame is not None and id(optimizer) not in self.optimizers:
                self.optimizers[id(optimizer)] = self._site(frame)
            plain(optimizer, *args, **kwargs)

        @functools.wraps(zero)
        def zero_grad(optimizer: Any, set_to_none: bool = True) -> Any:
            if not set_to_none:
                frame = _own(sys._getframe(1))
                if frame is not None:
                    self.zeroing.setdefault(_place(frame), Site(frame))
            return zero(optimizer, set_to_none=set_to_none)

        kind.__init__, kind.zero_grad = __init__, zero_grad

    def _site(self, frame: Any) -> Site:
        """A place again is the same one, passed more than once."""
        for site in self.optimizers.values():
            if (site.file, site.line) == _place(frame):
                site.times += 1
                return site
        site = Site(frame)
        site.keep(self.torch, frame)
        return site

    def _maker(self, name: str, method: str, module: Any) -> None:
        kind = getattr(module, name.partition(" ")[0])
        plain = getattr(kind, method)

        @functools.wraps(plain)
        def made(owner: Any, *args: Any, **kwargs: Any) -> Any:
            self.owners[name] = owner
            frame = _own(sys._getframe(1))
            if frame is not None:
                before = self.makers.get(name)
                if before is not None and (before.file, before.line) != _place(frame):
                    before.times += 1
                self.makers[name] = before = before or Site(frame)
                if not before.variables:
                    before.keep(self.torch, frame)
            else:
                self.makers.setdefault(name, None)
            return plain(owner, *args, **kwargs)

        setattr(kind, method, made)


def _place(frame: Any) -> Tuple[str, int]:
    return os.path.abspath(frame.f_code.co_filename), frame.f_lineno


def _own(frame: Any) -> Any:
    """The innermost frame of the program's own."""
    while frame is not None and not is_users(frame.f_code, frame.f_globals):
        frame = frame.f_back
    return frame
