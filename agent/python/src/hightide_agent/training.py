"""What an adapter tells of its framework, in one place: one Training for each process.

    phase, module, step ─▶ wrap the framework's functions ─▶ tracker, steps ─▶ edges and step records
    allocator           ─▶ how much it holds, at each edge and at an interval ─▶ counters
    tensors             ─▶ what the scan for growing containers must know of them ─▶ holder records
    out_of_memory       ─▶ which of its errors say that memory ran out ─▶ oom records

Each of these is a method, and docs/adapters.md shows them at work. What they return stands in for the framework's
own function: it takes the same arguments, gives the same result and raises the same errors. Nothing here knows a
framework; where one has hooks of its own, its adapter uses those and calls tracker and steps itself.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import control, oom
from .agent import Agent
from .allocators import ALLOCATED, RESERVED, Allocators
from .holders import Holders
from .steps import Steps
from .tracker import BACKWARD, CHECKPOINT, EVALUATION, MODULE, Tracker

if TYPE_CHECKING:
    from .allocators import Read
    from .tensors import Tensors
    from .tracker import AtStepEnd

    Held = Callable[[], Tuple[int, int]]  # bytes allocated and reserved now; -1 where not known
    Described = Tuple[str, str, int, int]  # name, class, bytes of parameters and of buffers
    Owned = Tuple[str, str, Any]  # category of pytorch/owners.py, name, tensor
    Function = Callable[..., Any]
    Part = Tuple[str, Callable[[], Any]]

RARE = (EVALUATION, CHECKPOINT)  # phases that are recorded in steps of which nothing else is


class Training:
    """The process's phases, steps, modules, allocators and tensors, whichever frameworks it uses."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.tracker = Tracker(agent)
        self.steps = Steps(self.tracker)
        self.holders = Holders(agent, lambda: self.tracker.device)
        self.allocators = Allocators(agent)
        self.snapshots: Dict[str, Callable[[str], Any]] = {}  # by framework: writes an allocator snapshot, for a reason
        self.owned: List[Callable[[], Iterator[Owned]]] = []  # what owns tensors beside the modules of a model
        self.at_ready: List[Callable[[], None]] = []  # called when a server has all its memory
        self.at_requests: List[Callable[[], None]] = []  # called when a process does nothing more but answer requests
        self.trains: Callable[[], bool] = lambda: False  # whether the program is going to take steps
        self._held: Dict[str, Held] = {}  # by framework
        self.tracker.at_step_end += [self.holders.step_ended, control.stopper(agent)]
        agent.on_renew.append(self._forget)

    def install_parts(self, framework: str, *parts: Part) -> None:
        """Install the parts of an adapter, each by its name and for itself: trouble with one costs only that one."""
        for name, install in parts:
            try:
                install()
            except Exception as error:
                self.agent.log("could not observe %s of %s" % (name, framework), error)

    def at_step_end(self, callback: AtStepEnd) -> None:
        """Call back at the ends of steps, before the program may be ended there."""
        self.tracker.at_step_end.insert(-1, callback)

    def phase(self, number: int, function: Function) -> Function:
        """Wrap a function: its calls are stays in a phase of tracker.py. Backward passes are counted besides."""
        if number == BACKWARD:
            return self._backward(function)
        tracker, rare = self.tracker, number in RARE

        @functools.wraps(function)
        def in_phase(*args: Any, **kwargs: Any) -> Any:
            if rare:
                tracker.resume()
            entered = tracker.recording and not tracker.inside(number) and tracker.enter(number)
            try:
                return function(*args, **kwargs)
            except Exception as error:
                oom.notice(tracker.agent, error, tracker.current_step())
                raise
            finally:
                if entered:
                    tracker.leave(number)

        return in_phase

    def _backward(self, function: Function) -> Function:
        tracker, quick = self.tracker, self.tracker.quick

        @functools.wraps(function)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if quick.inside:  # one inside another: checkpointing
                return function(*args, **kwargs)
            quick.inside = sys._getframe(1)
            entered = not quick.lead and tracker.enter(BACKWARD)
            try:
                return function(*args, **kwargs)
            except Exception as error:
                oom.notice(tracker.agent, error, tracker.steps_now())
                raise
            finally:
                quick.inside = None
                quick.backwards += 1
                if entered:
                    tracker.leave(BACKWARD)

        return backward

    def step(self, function: Function) -> Function:
        """Wrap an optimizer's method that takes a step: its calls are the optimizer phase, and end a step."""
        tracker, quick, steps = self.tracker, self.tracker.quick, self.steps

        @functools.wraps(function)
        def step(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not quick.lead:
                steps.begin(optimizer)
            try:
                result = function(optimizer, *args, **kwargs)
            except BaseException as error:
                steps.failed(optimizer)
                oom.notice(tracker.agent, error, tracker.steps_now())
                raise
            if not (quick.lead and quick.lead == id(optimizer) and quick.count()):
                steps.end(optimizer)
            return result

        return step

    def module(self, function: Function, describe: Callable[[Any], Described]) -> Function:
        """Wrap the method by which modules are called: its calls are stays in a module, which `describe` names
        when it is called first."""
        tracker = self.tracker
        numbers: Dict[int, Tuple[int, Any]] = {}

        @functools.wraps(function)
        def in_module(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not tracker.recording:
                return function(module, *args, **kwargs)
            number = self._number(numbers, module, describe)
            entered = number > 0 and tracker.enter(MODULE, number)
            try:
                return function(module, *args, **kwargs)
            finally:
                if entered:
                    tracker.leave(MODULE, number)

        return in_module

    def _number(self, numbers: Dict[int, Tuple[int, Any]], module: Any, describe: Callable[[Any], Described]) -> int:
        """The module's number, by its id while it lives; 0 for one that cannot be described, or is one too many."""
        key = id(module)
        known = numbers.get(key)
        if known is None:
            try:
                modules = self.tracker.modules
                number = 0 if modules.full() else modules.describe(*describe(module))
                known = number, weakref.ref(module, lambda _: numbers.pop(key, None))
            except Exception as error:
                self.agent.log("could not describe a module", error)
                return 0
            numbers[key] = known
        return known[0]

    def allocator(self, framework: str, read: Read, held: Optional[Held] = None) -> None:
        """Record what an allocator counts, from now on.

        Args:
            read: gives (device, quantity of allocators.py, value) for all its devices; called on another thread.
            held: bytes allocated and reserved, called at each edge on the thread that trains, so it must be quick.
                Absent: those of all devices that `read` gives.
        """
        self._held[framework] = self._guarded(framework, held or (lambda: _sums(read)))
        self._choose()
        self.allocators.add(framework, read)

    def tensors(self, of: Tensors) -> None:
        """Know a framework's tensors when containers are scanned."""
        self.holders.know(of)

    def out_of_memory(self, classify: oom.Classify) -> None:
        """Know the errors by which a framework says that memory ran out."""
        oom.known.append(classify)

    def _choose(self) -> None:
        """Let edges carry what the allocators hold: together, where there are several."""
        all_held = list(self._held.values())
        self.tracker.device = (lambda: _together(all_held)) if len(all_held) > 1 else next(iter(all_held), None)

    def _guarded(self, framework: str, held: Held) -> Held:
        def guarded() -> Tuple[int, int]:
            try:
                return held()
            except Exception as error:
                self.agent.log("could not ask the allocator of %s" % framework, error)
                self._held.pop(framework, None)
                self._choose()
                return -1, -1

        return guarded

    def _forget(self) -> None:
        """In a forked child: what a device's runtime gave the parent is not the child's."""
        if self.agent.moving:
            return
        self._held, self.snapshots = {}, {}
        self.tracker.device = None


def _sums(read: Read) -> Tuple[int, int]:
    readings = list(read())
    return _sum(v for _, q, v in readings if q == ALLOCATED), _sum(v for _, q, v in readings if q == RESERVED)


def _together(all_held: Any) -> Tuple[int, int]:
    pairs = [held() for held in all_held]
    return _sum(a for a, _ in pairs if a >= 0), _sum(r for _, r in pairs if r >= 0)


def _sum(values: Any) -> int:
    """The sum; -1 of none."""
    found = list(values)
    return sum(found) if found else -1
