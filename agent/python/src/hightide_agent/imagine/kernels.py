"""Kernels in Triton, of the program or of torch.compile: a number that one may have written is not known any more.

    count[grid](x, out, 1024) ─▶ the kernel's source: tl.store(out + i, …) ─▶ out is written ─▶ its twin is forgotten
    torch.compile's           ─▶ the names of its parameters: in_out_ptr0, out_ptr1

PyTorch counts no version up for them. What a helper of the program's kernel is given counts as written.
"""

from __future__ import annotations

import ast
import functools
import textwrap
import weakref
from typing import Any, Dict, Iterator, List, Optional, Set

from .source import text_of

SAFE = ("tl.", "triton.", "libdevice.", "tl_math.", "language.")
BUILT_IN = frozenset(("range", "min", "max", "len", "tuple", "int", "float", "bool", "abs", "isinstance", "print"))
FLOATS = ("*fp", "*bf")
METHODS = frozenset(("to", "load", "trans", "reshape", "view", "cast", "item"))


def install(known: Any, watch: Any) -> None:
    """Follow what kernels write."""
    watch("triton.runtime.jit", of_the_program(known))
    watch("torch._inductor.runtime.triton_heuristics", of_the_compiler(known))


def of_the_compiler(known: Any) -> Any:
    """What is to be done with the module that launches the kernels of torch.compile."""

    def watched(module: Any) -> None:
        kind = module.CachingAutotuner
        original = kind.run
        found: Any = weakref.WeakKeyDictionary()

        @functools.wraps(original)
        def run(kernel: Any, /, *args: Any, **more: Any) -> Any:
            try:
                places = found.get(kernel)
                if places is None:
                    places = found[kernel] = _results(kernel)
                for place in places:
                    if place < len(args):
                        known.twins.forget(args[place])
            except Exception as error:
                known.failed(error)
            return original(kernel, *args, **more)

        kind.run = run

    return watched


def _results(kernel: Any) -> List[int]:
    """Where parameters stand that such a kernel writes numbers to which are followed."""
    signature = kernel.triton_meta.get("signature") or {}
    places = []
    for place, name in enumerate(kernel.fn.arg_names):
        writes = name.startswith(("out_ptr", "in_out_ptr")) or name in kernel.mutated_arg_names
        if writes and not str(signature.get(name, "")).startswith(FLOATS):
            places.append(place)
    return places


def of_the_program(known: Any) -> Any:
    """What is to be done with triton.runtime.jit once it is imported."""

    def watched(module: Any) -> None:
        kind: Any = getattr(module, "JITFunction", None)
        original = getattr(kind, "run", None)
        if original is None:
            return
        found: Dict[int, Optional[Set[str]]] = {}

        @functools.wraps(original)
        def run(kernel: Any, /, *args: Any, **more: Any) -> Any:
            result = original(kernel, *args, **more)
            try:
                named = {**dict(zip(kernel.arg_names, args)), **more}
                tensors = {
                    n: t for n, t in named.items() if isinstance(t, known.torch.Tensor) and t.dtype in known.kinds
                }
                if tensors and id(kernel) not in found:
                    found[id(kernel)] = written(str(kernel.src))
                for name, tensor in tensors.items():
                    names = found[id(kernel)]
                    if names is None or name in names:
                        known.twins.forget(tensor)
            except Exception as error:
                known.failed(error)
            return result

        kind.run = run

    return watched


def written(source: str) -> Optional[Set[str]]:
    """The parameters that a kernel may write to; None: it cannot be told."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return None
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if function is None:
        return None
    arguments = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    values: Dict[str, List[Any]] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        values.setdefault(part.id, []).append(node.value)
    names: Set[str] = set()
    for place in _places(function):
        names |= _names(place, values)
    return names & arguments


def _places(function: Any) -> Iterator[Any]:
    """The expressions that say where something is written, or may be."""
    for call in ast.walk(function):
        if not isinstance(call, ast.Call):
            continue
        name = str(getattr(call.func, "attr", getattr(call.func, "id", "")))
        safe = text_of(call.func).startswith(SAFE)
        if "store" in name or name.startswith("atomic"):
            yield from call.args[:1] if safe else [getattr(call.func, "value", call.func), *call.args[:1]]
            yield from (k.value for k in call.keywords if k.arg == "pointer")
        elif not safe and name not in BUILT_IN and not (isinstance(call.func, ast.Attribute) and name in METHODS):
            yield from call.args
            yield from (k.value for k in call.keywords)


def _names(place: Any, values: Dict[str, List[Any]]) -> Set[str]:
    """Which names an address is made of; what is loaded to find it is none."""
    found: Set[str] = set()
    pending = [place]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and str(getattr(node.func, "attr", "")) == "load":
            continue
        if isinstance(node, ast.Name) and node.id not in found:
            found.add(node.id)
            pending.extend(values.get(node.id, ()))
        pending.extend(ast.iter_child_nodes(node))
    return found
