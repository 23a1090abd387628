"""Which calls of compiled functions are steps: those of the largest function that is given what came of its last call.

    compiled ─▶ its size; is it the program's own?        called ─▶ its arguments: which functions did they come of?
                                                                 ─▶ its results: they come of those, and of it

A training hands parameters or the optimizer's state from call to call, through functions in between or not. So a step
is a call whose arguments come of an earlier call of the same function and were not arguments before. A function that is
called meanwhile, is larger, never got its own results, and gave what came to the arguments (the gradients of small
batches that are added up) tells that steps are something else.

A jitted call that is in JAX's cache runs no Python. Here it does: the shortcut is not taken.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Dict, FrozenSet, List, Optional, Set, Tuple

from ...training import Training
from ...xla.programs import SIZES
from ...xla.wrapped import OWN, Place, place, placed
from .asides import Asides
from .failures import Failures
from .held import Call, Held

SMALLEST = 256  # bytes of results that are handed on; less is a key of random numbers
MANY = 64  # functions that an array is told to come of
ARRAYS = 200_000  # arrays that are followed
PMAP = OWN + "pmap.py"
SWEEP = 4096  # from so many on those that are gone are let go of, each time that they have doubled


class _Function:
    """One compiled function of the program, with the programs of all shapes that it was compiled for."""

    def __init__(self, source: str, place: Place) -> None:
        self.source = source  # as JAX writes it: name, file and line
        self.place = place  # those, of the function itself where a library wraps it
        self.bytes = 0  # of its largest program
        self.back: Dict[int, int] = {}  # which result came back as which argument
        self.calls = 0
        self.handed = False  # its results came back to it
        self.last: Set[int] = set()  # arguments of its last call that came of it, by id
        self.since: Set[_Function] = set()  # others that were called since its last step, and not handed their results


class Program:
    """A function as it was compiled for arguments of certain shapes."""

    def __init__(self, function: _Function, sizes: Dict[str, int], positions: List[int]) -> None:
        self.function = function
        self.sizes = sizes  # as a `program` record has them
        self.bytes = sizes["argument_bytes"] + sizes["output_bytes"] + sizes["temp_bytes"]
        self.temporaries = sizes["temp_bytes"]
        self.results = sizes["output_bytes"] - sizes["alias_bytes"]  # that need memory of their own
        self.positions = positions  # of the arguments that are used, among all
        self.each: List[int] = []  # bytes of each result, once it was called
        function.bytes = max(function.bytes, self.bytes)


class Calls:
    """All calls of compiled functions of this process."""

    def __init__(self, training: Training, held: Held, asides: Asides) -> None:
        self.training = training
        self.agent = training.agent
        self.held, self.asides = held, asides
        self.failures = Failures(training, held)
        self._own: Any = weakref.WeakKeyDictionary()  # of an executable, its program
        self._functions: Dict[Any, _Function] = {}  # by what _key tells them apart by
        # Of an array by id: it, weakly; what it came of; which result it was, of which function; its bytes.
        self._from: Dict[int, Tuple[Any, FrozenSet[_Function], int, Optional[_Function], int]] = {}
        self._sweep = SWEEP
        self._leader: Optional[_Function] = None

    def install(self, pxla: Any) -> None:
        """See what is compiled, and called, from here on."""
        compile, call = pxla.MeshComputation.compile, pxla.ExecuteReplicated.__call__
        pxla.MeshExecutable.create_cpp_call = lambda *_: None

        @functools.wraps(compile)
        def compiled(computation: Any, /, *args: Any, **kwargs: Any) -> Any:
            executable = None
            own = self._is_own(computation) and getattr(computation, "_executable", None) is None
            try:
                if own:
                    self.held.dumps.begin()
                executable = compile(computation, *args, **kwargs)
            finally:
                if own:
                    self._compiled(computation, executable, sys._getframe(1))
            return executable

        @functools.wraps(call)
        def called(executable: Any, /, *args: Any) -> Any:
            kept = getattr(executable, "kept_var_idx", args)  # arguments that the program has use for
            used = args if len(kept) == len(args) else [arg for at, arg in enumerate(args) if at in kept]
            before = self._before(executable, used)
            try:
                results = call(executable, *args)
            except Exception as error:
                self._failed(executable, used, error)
                raise
            self._after(executable, before, used, results)
            return results

        pxla.MeshComputation.compile, pxla.ExecuteReplicated.__call__ = compiled, called

    def slowly(self, pjit: Any) -> None:
        """Have each call of a jitted function run Python."""
        pjit._get_fastpath_data = lambda *_, **__: None

    def _is_own(self, computation: Any) -> bool:
        """Whether a program is of a function of the user's, or of a library but JAX. jax.pmap wraps one in its own."""
        info = computation.compile_args.get("all_args_info")
        file = placed(str(info.debug_info.func_src_info))[1] if info is not None else ""
        return bool(file) and (OWN not in file or file.endswith(PMAP))

    def _compiled(self, computation: Any, executable: Any, frame: Any) -> None:
        try:
            self.held.dumps.end(executable.unsafe_call if executable is not None else None)
            stats = executable.memory_analysis() if executable is not None else None
            if stats is None or executable.unsafe_call in self._own:
                return
            found = computation.compile_args
            constants = len(getattr(computation, "const_args", None) or ())
            source = str(found["all_args_info"].debug_info.func_src_info)
            self._own[executable.unsafe_call] = Program(
                self._functions.setdefault(_key(source, computation), _Function(source, place(source, frame)[0])),
                {key: int(getattr(stats, name)) for key, name in SIZES},
                [at - constants for at in sorted(found["kept_var_idx"])],
            )
        except Exception as error:
            self.agent.log("could not see what is compiled", error)

    def _before(self, executable: Any, args: Any) -> Tuple[FrozenSet[_Function], bool]:
        """What the arguments came of, and whether this call is a step."""
        try:
            self.held.look()
            came: Set[_Function] = set()
            program = self._own.get(executable)
            function: Optional[_Function] = program.function if program is not None else None
            back: Set[int] = set()
            bytes = given = 0
            besides = own = False
            held, leader = self._from, self._leader
            last: Optional[FrozenSet[_Function]] = None  # what the argument before came of: mostly this one did, too
            for at, arg in enumerate(args):
                key = id(arg)
                known = held.get(key)
                if known is None or known[0]() is not arg:
                    besides = True
                    continue
                _, sources, number, maker, its = known
                if sources is not last:
                    last, own = sources, function in sources
                    came |= sources
                if maker is not None and maker is function:
                    maker.back[number] = at
                if own and key not in back:
                    back.add(key)
                    bytes += its
                if maker is not None and maker is leader and number in maker.back:
                    given += its
                else:
                    besides = True
            step = function is not None and self._is_step(function, back, bytes, came)
            if self.asides.wanted():
                if step:
                    self.asides.stepped(came, len(came) <= MANY, bytes)
                elif program is not None:
                    self.asides.called(program, given, besides)
            return frozenset(came if len(came) <= MANY else ()), step
        except Exception as error:
            self.agent.log("could not look at a call", error)
            return frozenset(), False

    def _is_step(self, function: _Function, back: Set[int], bytes: int, came: Set[_Function]) -> bool:
        function.calls += 1
        fresh, function.last = bool(back - function.last), back
        if not fresh or bytes < SMALLEST:
            if not function.handed:
                for other in self._functions.values():
                    if other is not function and function.bytes > other.bytes:
                        other.since.add(function)
            return False
        first, function.handed = not function.handed, True
        larger = any(other in came and other.bytes > function.bytes for other in function.since)
        function.since.clear()
        leader = self._leader
        if larger or (leader is not None and leader.bytes > function.bytes):
            return False
        self._leader = function
        if first:  # the call before was one, too
            self.training.steps.passed(function)
        return True

    def _after(self, executable: Any, before: Tuple[FrozenSet[_Function], bool], args: Any, results: Any) -> None:
        came, step = before
        try:
            frame = sys._getframe(2)
            call = Call(executable, args, results, self._own.get(executable), frame)
            if not self.failures.look(call, None, frame):
                self.held.look(call)
            call.close()
        except Exception as error:
            self.agent.log("could not look at what a call held", error)
        try:
            program = self._own.get(executable)
            function: Optional[_Function] = program.function if program is not None else None
            if function is not None:
                came = came | {function}
            self._follow(results, came, program)
        except Exception as error:
            self.agent.log("could not look at what a call gave", error)
        if step:
            if self.asides.wanted() and self._leader is not None:
                self.asides.gave([weakref.ref(results[at]) for at in self._leader.back if at < len(results)])
            self.training.steps.passed(self._leader)

    def _failed(self, executable: Any, args: Any, error: BaseException) -> None:
        """A call raised an error."""
        try:
            frame = sys._getframe(2)
            call = Call(executable, args, (), self._own.get(executable), frame)
            self.failures.look(call, error, frame)
            call.close()
        except Exception as trouble:
            self.agent.log("could not look at a call that failed", trouble)

    def failed(self) -> Optional[BaseException]:
        """The error of a call whose results nobody has read: it is raised where one is. None where all went well."""
        for reference, *_ in list(self._from.values()):
            array = reference()
            try:
                if array is not None and not array.is_deleted():
                    array.block_until_ready()
            except Exception as error:
                return error
        return None

    def _follow(self, results: Any, came: FrozenSet[_Function], program: Optional[Program]) -> None:
        held = self._from
        if len(held) >= self._sweep:
            for key in [key for key, known in held.items() if known[0]() is None]:
                del held[key]
            self._sweep = max(SWEEP, 2 * len(held))
        if len(held) >= ARRAYS:
            return
        function, each = (program.function, program.each) if program is not None else (None, [])
        if len(each) != len(results):
            each = [int(result.nbytes) for result in results]
            if program is not None:
                program.each = each
        for number, result in enumerate(results):
            held[id(result)] = weakref.ref(result), came, number, function, each[number]


def _key(source: str, computation: Any) -> Any:
    """What tells functions apart, and not the shapes that one is compiled for: libraries that wrap jax.jit have all of
    theirs on one line of their own."""
    found = computation.compile_args
    types = tuple(
        tuple((str(getattr(aval, "dtype", "")), len(getattr(aval, "shape", ()))) for aval in found[name])
        for name in ("global_in_avals", "global_out_avals")
    )
    return source, str(getattr(computation, "_name", "")), tuple(sorted(found["kept_var_idx"])), types
