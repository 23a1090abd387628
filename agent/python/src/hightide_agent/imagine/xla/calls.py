"""Which calls of compiled functions are steps: those of the largest function that is given what came of its last call.

    compiled ─▶ its size; is it the program's own?        called ─▶ its arguments: which functions did they come of?
                                                                 ─▶ its results: they come of those, and of it

A training hands parameters or the optimizer's state from call to call, through functions in between or not. So a step
is a call whose arguments come of an earlier call of the same function and were not arguments before. A function that is
called meanwhile, is larger, and never got its own results (the gradients of small batches that are added up, an
evaluation) tells that steps are something else.

A jitted call that is in JAX's cache runs no Python. Here it does: the shortcut is not taken.
"""

from __future__ import annotations

import functools
import re
import weakref
from typing import Any, Dict, FrozenSet, Optional, Set, Tuple

from ...training import Training
from ...xla.programs import OWN

SMALLEST = 256  # bytes of results that are handed on; less is a key of random numbers
MANY = 64  # functions that an array is told to come of
ARRAYS = 200_000  # arrays that are followed


class _Function:
    """One compiled function of the program."""

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes  # arguments, results and temporaries
        self.calls = 0
        self.handed = False  # its results came back to it
        self.last: Set[int] = set()  # arguments of its last call that came of it, by id
        self.larger = 0  # the largest other function since its last step that was not handed its results


class Calls:
    """All calls of compiled functions of this process."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.agent = training.agent
        self._own: Any = weakref.WeakKeyDictionary()  # of an executable, its function
        self._from: Dict[int, Tuple[Any, FrozenSet[_Function]]] = {}  # of an array by id: it, weakly; what it came of
        self._leader: Optional[_Function] = None

    def install(self, pxla: Any) -> None:
        """See what is compiled, and called, from here on."""
        compile, call = pxla.MeshComputation.compile, pxla.ExecuteReplicated.__call__
        pxla.MeshExecutable.create_cpp_call = lambda *_: None

        @functools.wraps(compile)
        def compiled(computation: Any, /, *args: Any, **kwargs: Any) -> Any:
            executable = compile(computation, *args, **kwargs)
            try:
                self._compiled(computation, executable)
            except Exception as error:
                self.agent.log("could not see what is compiled", error)
            return executable

        @functools.wraps(call)
        def called(executable: Any, /, *args: Any) -> Any:
            before = self._before(executable, args)
            results = call(executable, *args)
            self._after(executable, before, results)
            return results

        pxla.MeshComputation.compile, pxla.ExecuteReplicated.__call__ = compiled, called

    def slowly(self, pjit: Any) -> None:
        """Have each call of a jitted function run Python."""
        pjit._get_fastpath_data = lambda *_, **__: None

    def _compiled(self, computation: Any, executable: Any) -> None:
        info = computation.compile_args.get("all_args_info")
        found = re.match(r"(.+) at (.+):(\d+)$", str(info.debug_info.func_src_info)) if info is not None else None
        stats = executable.memory_analysis()
        if found is None or OWN in found.group(2) or stats is None:
            return
        bytes = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
        if executable.unsafe_call not in self._own:
            self._own[executable.unsafe_call] = _Function(bytes)

    def _before(self, executable: Any, args: Any) -> Tuple[FrozenSet[_Function], bool]:
        """What the arguments came of, and whether this call is a step."""
        try:
            came: Set[_Function] = set()
            function = self._own.get(executable)
            back: Set[int] = set()
            bytes = 0
            for arg in args:
                known = self._from.get(id(arg))
                if known is None or known[0]() is not arg:
                    continue
                came |= known[1]
                if function in known[1] and id(arg) not in back:
                    back.add(id(arg))
                    bytes += arg.nbytes
            step = function is not None and self._is_step(function, back, bytes)
            return frozenset(came if len(came) <= MANY else ()), step
        except Exception as error:
            self.agent.log("could not look at a call", error)
            return frozenset(), False

    def _is_step(self, function: _Function, back: Set[int], bytes: int) -> bool:
        function.calls += 1
        fresh, function.last = bool(back - function.last), back
        if not fresh or bytes < SMALLEST:
            if not function.handed:
                for other in self._own.values():
                    if other is not function:
                        other.larger = max(other.larger, function.bytes)
            return False
        first, function.handed = not function.handed, True
        larger, function.larger = function.larger, 0
        leader = self._leader
        if larger > function.bytes or (leader is not None and leader.bytes > function.bytes):
            return False
        self._leader = function
        if first:  # the call before was one, too
            self.training.steps.passed(function)
        return True

    def _after(self, executable: Any, before: Tuple[FrozenSet[_Function], bool], results: Any) -> None:
        came, step = before
        try:
            function = self._own.get(executable)
            if function is not None:
                came = came | {function}
            for result in results:
                self._follow(result, came)
        except Exception as error:
            self.agent.log("could not look at what a call gave", error)
        if step:
            self.training.steps.passed(self._leader)

    def failed(self) -> Optional[BaseException]:
        """The error of a call whose results nobody has read: it is raised where one is. None where all went well."""
        for reference, _ in list(self._from.values()):
            array = reference()
            try:
                if array is not None and not array.is_deleted():
                    array.block_until_ready()
            except Exception as error:
                return error
        return None

    def _follow(self, result: Any, came: FrozenSet[_Function]) -> None:
        if len(self._from) >= ARRAYS:
            return
        key = id(result)
        held = self._from

        def gone(reference: Any) -> None:
            if held.get(key, (None,))[0] is reference:
                held.pop(key, None)

        held[key] = weakref.ref(result, gone), came
