"""The root module and its direct children: forward and evaluation phases, and who they belong to.

No global module hook is set: it would cost percents and break compiled graphs. Roots are learnt

- when train() or eval() is called on a module from outside (most loops do one or the other), or else
- at an optimizer's first step, by one look through the garbage collector's list for the modules
  that own its parameters and are nobody's child.

The hooks are taken away at the first torch.compile from all that could be inside the compiled part.
They are off in steps that the tracker does not record. Children's hooks cost more than the phases
do, so after the first steps they are on only in as many as SHARE of the time allows.
"""

from __future__ import annotations

import functools
import os
import weakref
from contextlib import nullcontext
from typing import Any, Callable, Iterator, List, Optional

from .. import collected
from ..tracker import ALWAYS_STEPS, EVALUATION, FORWARD, MODULE, NEVER
from ..training import Training
from .unused import Unused

MAX_ROOTS = 8
MAX_CHILDREN = 64  # of one root
MAX_MODULES = 20000  # looked at in one root
SHARE = 0.001  # of the time that children's hooks may take
CHILD_NS = 30000  # what one child costs in one step: two edges, torch's slower call path, hooking anew


class _Hook:
    """A forward hook that belongs to one module only, and turns into nothing when copied or pickled.

    So a copy of the model, or a model read back from a file where hightide is not known, has no trace of us
    but a function that returns None.
    """

    __slots__ = ("function", "key", "owner", "torch_compiler")

    def __init__(self, owner: Any, compiler: Any, function: Any, key: Any) -> None:
        self.owner = weakref.ref(owner)
        self.torch_compiler = compiler
        self.function = function
        self.key = key

    def __call__(self, module: Any, *given: Any) -> None:
        if self.torch_compiler is not None and self.torch_compiler.is_compiling():
            return
        if self.owner() is module:
            self.function(module, self.key, given[-1])

    def __reduce__(self) -> Any:
        return getattr, (nullcontext(), "__exit__")  # takes any arguments, returns None

    def __deepcopy__(self, memo: Any) -> Any:
        return nullcontext().__exit__


class Root:
    """A module that nobody else contains, as far as we know, with hooks on it and its children."""

    def __init__(self, module: Any, number: int) -> None:
        self.module = weakref.ref(module)
        self.number = number  # module id of the root itself
        self.ids = {id(m) for m in _descendants(module)}
        self.children: list[tuple[int, str, Any]] = []  # id, name, weak reference
        self.handles: list[Any] = []
        self.child_handles: list[Any] = []


class Roots:
    """All roots of this process."""

    def __init__(self, training: Training, torch: Any) -> None:
        self.agent = training.agent
        self.tracker = tracker = training.tracker
        self.torch = torch
        self.roots: list[Root] = []
        self.compile_seen = False
        self.at_compile: List[Callable[[], None]] = []
        self.released = False
        self._active: Optional[Root] = None
        self._phase = FORWARD
        self._opened_by_child = 0
        self._in_train = False
        self.unused = Unused(training, torch)
        self.imagined = os.environ.get("HIGHTIDE_IMAGINE") == "1"  # where a step's time says nothing, each pass is seen
        compiler = getattr(torch, "compiler", None)
        self._compiler = compiler if hasattr(compiler, "is_compiling") else None
        tracker.at_recording.append(self._record)
        training.at_step_end(self._pace)
        training.steps.at_first.append(self._adopt_owner)

    def install(self) -> None:
        """Learn roots from train() and eval()."""
        module_class = self.torch.nn.Module
        original = module_class.train

        @functools.wraps(original)
        def train(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if self._in_train:
                return original(module, *args, **kwargs)
            self._in_train = True
            try:
                return original(module, *args, **kwargs)
            finally:
                self._in_train = False
                self._saw(module)
                if not module.training or not self.tracker.steps:
                    self._look_closely()

        module_class.train = train

    def _look_closely(self) -> None:
        """Record what follows, however short steps are: an evaluation may call the root, or only its children."""
        self.tracker.resume()
        for root in self.roots:
            self._hook_children(root)

    def _adopt_owner(self, optimizer: Any) -> None:
        """Make sure that the modules that own an optimizer's parameters are known."""
        groups = getattr(optimizer, "param_groups", ())  # one of Keras has none
        wanted = {id(group["params"][0]) for group in groups if group["params"]}
        for root in self.roots:
            module = root.module()
            if module is not None:
                wanted -= {id(p) for m in _descendants(module) for p in _own(m, "_parameters")}
        if not wanted:
            return
        for module in self.unowned():
            owned = {id(p) for m in _descendants(module) for p in _own(m, "_parameters")}
            if owned & wanted:
                self._adopt(module)
                wanted -= owned

    def modules(self) -> list[Any]:
        """The roots that are still alive."""
        return [m for m in (root.module() for root in self.roots) if m is not None]

    def compiled(self) -> None:
        """Something is about to be compiled: keep hooks only where no graph can contain them."""
        self.compile_seen = True
        for let_go in self.at_compile:
            let_go()
        self.tracker.quick.lead, self.tracker.always_see = 0, True
        for root in self.roots:
            self._unhook(root.child_handles)
            module = root.module()
            if module is None or not self._is_compiled_wrapper(module):
                self._unhook(root.handles)

    def wrapped(self, made: Any) -> None:
        """torch.compile made this: where it wraps a root, the wrapper is called in its place from now on."""
        try:
            if type(made).__name__ == "OptimizedModule":
                inner = _unwrapped(made)
                if any(root.module() is inner for root in self.roots):
                    self._adopt(made)
        except Exception as error:
            self.agent.log("could not observe a compiled module", error)

    def let_go(self) -> None:
        """Take every hook away, for good."""
        self.released = True
        for root in self.roots:
            self._unhook(root.child_handles)
            self._unhook(root.handles)

    def _saw(self, module: Any) -> None:
        try:
            if type(module).__name__ != "OptimizedModule" and not _own(module, "_modules"):
                return  # a single layer, as when somebody freezes batch norms
            if any(id(module) in root.ids and root.module() is not None for root in self.roots):
                known = next((r for r in self.roots if r.module() is module), None)
                if known is not None and self.tracker.recording:
                    self._hook(known)  # it was compiled since
                return
            self._adopt(module)
        except Exception as error:
            self.agent.log("could not observe a module", error)

    def unowned(self) -> list[Any]:
        """All modules that no other module contains, from one look at the collector's list."""
        found = collected.of_types(collected.subclasses(self.torch.nn.Module))
        inner: set[int] = set()
        for thing in found:
            inner.update(map(id, _own(thing, "_modules")))
        return [module for module in found if id(module) not in inner]

    def _adopt(self, module: Any) -> None:
        self.roots = [r for r in self.roots if r.module() is not None]
        if len(self.roots) >= MAX_ROOTS:
            return
        inner = _unwrapped(module)
        root = Root(module, self._describe(inner, type(inner).__name__))
        for old in [r for r in self.roots if id(r.module()) in root.ids]:  # it was wrapped since
            self._unhook(old.handles)
            self._unhook(old.child_handles)
            self.roots.remove(old)
        self.roots.append(root)
        for name, child in _children(inner):
            if len(root.children) == MAX_CHILDREN or self.tracker.modules.full():
                break
            root.children.append((self._describe(child, name), name, weakref.ref(child)))
        self.tracker.modules.tell()
        if self.tracker.recording:
            self._hook(root)
            self._hook_children(root)

    def _describe(self, module: Any, name: str) -> int:
        parameters, buffers = (
            storage_bytes(t for m in _descendants(module) for t in _own(m, kind))
            for kind in ("_parameters", "_buffers")
        )
        return self.tracker.modules.describe(name, type(module).__name__, parameters, buffers)

    def _is_compiled_wrapper(self, module: Any) -> bool:
        """Whether the module's own call happens outside of what torch.compile makes of it."""
        return any(type(m).__name__ == "OptimizedModule" for m in _descendants(module))

    def _hook(self, root: Root) -> None:
        module = root.module()
        if module is None or root.handles or self.released:
            return
        if self.compile_seen and not self._is_compiled_wrapper(module):
            return
        root.handles = [
            module.register_forward_pre_hook(_Hook(module, self._compiler, self._enter_root, root)),
            module.register_forward_hook(_Hook(module, self._compiler, self._leave_root, root)),
        ]

    def _hook_children(self, root: Root) -> None:
        if root.child_handles or self.compile_seen or self.released:
            return
        for number, _, reference in root.children:
            child = reference()
            if child is not None:
                key = (root, number)
                root.child_handles += [
                    child.register_forward_pre_hook(_Hook(child, self._compiler, self._enter_child, key)),
                    child.register_forward_hook(_Hook(child, self._compiler, self._leave_child, key)),
                ]

    def _unhook(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.remove()
        handles.clear()

    def _record(self, on: bool) -> None:
        """The tracker begins or stops to record steps in full."""
        for root in self.roots:
            if on:
                self._hook(root)
                continue
            if not self.imagined:
                self._unhook(root.handles)
            self._unhook(root.child_handles)

    def _pace(self, step: int) -> int:
        """At the end of a step: decide whether the next one, if it is recorded, records the children."""
        if self.tracker.recording and not self.compile_seen:
            for root in self.roots:
                if step < ALWAYS_STEPS or step % self._every(len(root.children)) == 0:
                    self._hook_children(root)
                elif root.child_handles:
                    self._unhook(root.child_handles)
        return NEVER

    def _every(self, children: int) -> int:
        every, duration = self.tracker.every, self.tracker.typical_step_ns
        if not duration:
            return every
        return every * max(1, int(children * CHILD_NS / (SHARE * duration * every) + 0.999))

    def _enter_root(self, module: Any, root: Root, _: Any) -> None:
        tracker = self.tracker
        if self._active is root or not (tracker.inside(FORWARD) or tracker.inside(EVALUATION)):
            if tracker.inside(self._phase):  # an exception kept it from being left
                tracker.leave(self._phase)
            self._open(module)
            self._active = root
            if tracker.steps < 8:
                self._autocast()
        if root.number != 1:
            tracker.enter(MODULE, root.number)

    def _leave_root(self, module: Any, root: Root, result: Any) -> None:
        if root.number != 1:
            self.tracker.leave(MODULE, root.number)
        if self._active is root:
            self._active = None
            self.tracker.leave(self._phase)
            try:
                self.unused.passed(module, result)
            except Exception as error:
                self.agent.log("could not look at what a forward pass saves", error)

    def _enter_child(self, child: Any, key: tuple[Root, int], _: Any) -> None:
        tracker = self.tracker
        if not tracker.inside(FORWARD) and not tracker.inside(EVALUATION):
            # The root's own call was not made: a training_step that calls its parts.
            self._open(key[0].module() or child)
            self._opened_by_child = key[1]
        tracker.enter(MODULE, key[1])

    def _leave_child(self, child: Any, key: tuple[Root, int], _: Any) -> None:
        self.tracker.leave(MODULE, key[1])
        if self._opened_by_child == key[1]:
            self._opened_by_child = 0
            self.tracker.leave(self._phase)

    def _open(self, module: Any) -> None:
        self._phase = FORWARD if module.training else EVALUATION
        self.tracker.enter(self._phase)

    def _autocast(self) -> None:
        dtype = _autocast_dtype(self.torch)
        if dtype is not None:
            self.agent.fact("amp", str(dtype).replace("torch.", ""))


def _autocast_dtype(torch: Any) -> Any:
    """What autocast computes in at the moment; None: it is off."""
    if hasattr(torch, "get_autocast_dtype"):  # from 2.4 on; the names below warn there
        return next(
            (torch.get_autocast_dtype(kind) for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind)), None
        )
    if torch.is_autocast_enabled():
        return torch.get_autocast_gpu_dtype()
    return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None


def storage_bytes(tensors: Iterator[Any]) -> int:
    """Bytes of the distinct storages under tensors, as they are before an allocator rounds them.

    Args:
        tensors: any shape, type and stride; those without a storage (meta, sparse, lazy) count nothing.
    """
    return sum(storages(tensors).values())


def storages(tensors: Iterator[Any]) -> dict[tuple[str, int], int]:
    """Map (device, address) of each distinct storage to its bytes."""
    found: dict[tuple[str, int], int] = {}
    for tensor in tensors:
        try:
            local = tensor.__dict__.get("_local_tensor", tensor) if hasattr(tensor, "__dict__") else tensor
            storage = local.untyped_storage() if hasattr(local, "untyped_storage") else local.storage()
            size = storage.nbytes()
            if size and local.device.type != "meta":
                found[(str(local.device), storage.data_ptr())] = size
        except Exception:  # no storage of its own
            continue
    return found


def _own(module: Any, kind: str) -> list[Any]:
    """The module's own parameters, buffers or children, read past any __getattr__ of its class."""
    return [value for value in module.__dict__.get(kind, {}).values() if value is not None]


def _descendants(module: Any) -> Iterator[Any]:
    """The module and all below it, each once."""
    seen, todo = {id(module)}, [module]
    while todo and len(seen) < MAX_MODULES:
        current = todo.pop()
        yield current
        for child in _own(current, "_modules"):
            if id(child) not in seen:
                seen.add(id(child))
                todo.append(child)


def _unwrapped(module: Any) -> Any:
    """What is inside of data-parallel, sharding and compiling wrappers."""
    for _ in range(8):
        inner = module.__dict__.get("_modules", {})
        name = type(module).__name__
        if "_orig_mod" in inner:
            module = inner["_orig_mod"]
        elif "module" in inner and ("Parallel" in name or name in ("DeepSpeedEngine", "AveragedModel")):
            module = inner["module"]
        elif "_fsdp_wrapped_module" in inner:
            module = inner["_fsdp_wrapped_module"]
        else:
            return module
    return module


def _children(module: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Direct children by name; of lists and dicts of modules, which are never called, their members."""
    for name, child in list(module.__dict__.get("_modules", {}).items()):
        if child is None:
            continue
        if type(child).__name__ in ("ModuleList", "ModuleDict"):
            yield from _children(child, prefix + name + ".")
        else:
            yield prefix + name, child
