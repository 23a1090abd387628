"""What each compiled program needs, as XLA itself says: arguments, outputs, temporaries, code.

    MeshComputation.compile ─▶ its executable's memory statistics ─▶ "program" records

Nothing is compiled for it: the statistics belong to the executable. Every function may have many programs, one for
each types of arguments. A record is written for those that need more than any of the function before, and as
traces.py counts the others.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ..masking import mask
from ..places import caller
from ..traces import FUNCTIONS, MOST, TEXT
from . import donation, wrapped
from .wrapped import OWN

if TYPE_CHECKING:
    from ..agent import Agent
    from .loops import Loops

LEAST = 1 << 20  # bytes; functions whose programs all need less are not told of
ARGUMENTS = 4  # of a program, that are named: the largest

# Keys of the record, and XLA's names. Aliases are outputs that lie in arguments that were donated.
SIZES = (
    ("argument_bytes", "argument_size_in_bytes"), ("output_bytes", "output_size_in_bytes"),
    ("alias_bytes", "alias_size_in_bytes"), ("temp_bytes", "temp_size_in_bytes"),
    ("code_bytes", "generated_code_size_in_bytes"),
)  # fmt: skip


class _Function:
    __slots__ = ("code", "count", "most", "record", "told")

    def __init__(self) -> None:
        self.count = self.told = self.code = 0
        self.most = -1
        self.record: Dict[str, Any] = {}  # of the program that needs the most


class Programs:
    """The programs that JAX compiles in this process, by function."""

    def __init__(self, agent: Agent, loops: Optional[Loops] = None) -> None:
        self.agent = agent
        self._loops = loops
        self._functions: Dict[Tuple[str, str, int], _Function] = {}
        self._donation = donation.Donation(agent)
        agent.at_end.append(self.end)
        agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        if not self.agent.moving:
            self._functions.clear()

    def install(self, pxla: Any) -> None:
        """See each program that is compiled from here on."""
        if self._loops is not None:
            self._loops.install(pxla)
        original = pxla.MeshComputation.compile

        @functools.wraps(original)
        def compile(computation: Any, /, *args: Any, **kwargs: Any) -> Any:
            before = getattr(computation, "_executable", None)
            executable = original(computation, *args, **kwargs)
            if executable is not before:
                try:
                    self.compiled(computation, executable, sys._getframe(1))
                except Exception as error:
                    self.agent.log("could not see what a program of JAX needs", error)
            return executable

        pxla.MeshComputation.compile = compile

    def compiled(self, computation: Any, executable: Any, frame: Any) -> None:
        """Take in one program. `frame`: of who had it compiled."""
        self._donation.tell()
        stats = executable.memory_analysis()
        place, eager, is_wrapped = _place(computation, frame)
        if stats is None or place is None:
            return
        sizes = {key: int(getattr(stats, name)) for key, name in SIZES}
        needs = sum(sizes[key] for key in ("argument_bytes", "output_bytes", "temp_bytes")) - sizes["alias_bytes"]
        function = self._functions.get(place)
        if function is None:
            if len(self._functions) >= FUNCTIONS or (eager and needs < LEAST):
                return
            function = self._functions[place] = _Function()
        function.count += 1
        function.code += sizes["code_bytes"]
        if needs > function.most:
            function.most = needs
            arguments = _arguments(computation)
            backend = computation.compile_args["backend"]
            name, file, line = place
            function.record = {
                "type": "program", "framework": "jax", "function": name, "file": file, "line": line,
                "device": str(backend.platform), **sizes, "arguments": _named(arguments),
            }  # fmt: skip
            self._tell(function)
            if not eager and not is_wrapped:  # of one that is, arguments are the library's
                self._donation.look(function.record, computation, arguments, frame)
        elif function.count <= MOST or function.count >= 2 * function.told:
            self._tell(function)
        if self._loops is not None and not eager:
            self._loops.look(place, needs, frame)

    def _tell(self, function: _Function) -> None:
        if function.most < LEAST:
            return
        function.told = function.count
        self.agent.record({**function.record, "count": function.count, "code_total_bytes": function.code})

    def end(self) -> None:
        """Tell how many each has in the end."""
        for function in list(self._functions.values()):
            if function.count > function.told:
                self._tell(function)
        self._donation.tell()


def _place(computation: Any, frame: Any) -> Tuple[Optional[wrapped.Place], bool, bool]:
    """Name, file and line of the function that a program is of; whether it is an operation of JAX's own, and the line
    then is the one that runs it; whether a library has it wrapped."""
    info = computation.compile_args.get("all_args_info")
    if info is None:
        return None, False, False
    place, is_wrapped = wrapped.place(str(info.debug_info.func_src_info), frame)
    name, file, _ = place
    if not file:
        return None, False, False
    if OWN not in file:
        return place, False, is_wrapped
    file, line, _ = caller(frame)
    return (name, file, line), True, False


def _arguments(computation: Any) -> List[donation.Argument]:
    """The arguments that the program takes, in their order: constants that were taken out of it come first."""
    found = computation.compile_args
    kept, avals, donated = sorted(found["kept_var_idx"]), found["global_in_avals"], computation._donated_invars
    info = found["all_args_info"]
    names = tuple(info.debug_info.arg_names or ())
    names = ("",) * (len(info.in_avals) - len(names)) + names  # those of captured constants come first
    if not len(kept) == len(avals) == len(donated):
        return []
    named = [str(names[at]) if at < len(names) else "" for at in kept]
    constants = len(getattr(computation, "const_args", None) or ())
    return [donation.Argument(at - constants, *rest) for at, *rest in zip(kept, named, avals, donated)]


def _named(arguments: List[donation.Argument]) -> str:
    """The largest arguments with their types, as people read them."""
    largest = sorted(arguments, key=lambda a: -a.bytes)[:ARGUMENTS]
    text = ", ".join("%s: %s" % (a.name or "a constant", a.type) for a in largest)
    more = len(arguments) - len(largest)
    return mask(text[: 3 * TEXT]) + (" and %d smaller" % more if more else "")
