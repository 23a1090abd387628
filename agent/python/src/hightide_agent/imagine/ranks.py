"""One process plays one rank of many: the real process groups and communicators, and nobody else there.

    torchrun, accelerate, deepspeed ─▶ the launcher becomes the script, as the rank that is played
    init_process_group ─▶ a store in this process instead of the network ─▶ ProcessGroupNCCL, told made-up ids
    objects of other ranks ─▶ theirs where they are played too (mailbox.py), else what this rank itself would
                              have sent, counted and named by line

The device answers collectives at once. A key that only another rank would set is waited for briefly, and then is
an error that names it, where the real job would go on: nothing hangs. The same holds for a rank that the program
starts itself, and that waits for others which nobody started.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..calls import given
from .ledger import Ledger
from .mailbox import Mailbox

COUNTERS = 64  # communicators of one group for which ids are made up
ID_BYTES = 128
PATIENCE = 20  # seconds
# Facts of a process whose program made a world of which nobody else is there.
FAKE_RANK, FAKE_WORLD = "torch.fake_rank", "torch.fake_world"
STARTING = 60  # seconds, where the others may still be importing


def played() -> Optional[Tuple[int, int]]:
    """(rank, world size) that this process plays."""
    rank, _, world = os.environ.get("HIGHTIDE_IMAGINE_PLAY", "").partition("/")
    return (int(rank), int(world)) if rank.isdigit() and world.isdigit() and int(world) > 0 else None


def install(ledger: Ledger, torch: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Play the rank that HIGHTIDE_IMAGINE_PLAY names; without one, say what a started rank waits for."""
    place = played()
    if place is not None:
        watch("torch.distributed.launcher.api", lambda module: _launcher(module, place))
        watch("deepspeed.launcher.runner", lambda module: _deepspeed(module, place))
    if not torch.distributed.is_available():
        return
    watch("torch.distributed.distributed_c10d", lambda module: _places(module, ledger))
    if place is None:
        watch("torch.distributed.distributed_c10d", lambda module: _unstarted(module, torch))
        return
    for name, value in environment(*place, int(os.environ.get("LOCAL_WORLD_SIZE", "0") or 0)).items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")  # its thread asks the store about the others
    watch("torch.distributed.distributed_c10d", lambda module: _groups(module, torch, ledger, place))


def environment(rank: int, world: int, local: int) -> Dict[str, str]:
    """What torchrun sets, with `local` ranks on each machine; 0: not known."""
    local = min(world, local or max(1, len([v for v in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if v])))
    return {
        "RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank % local), "LOCAL_WORLD_SIZE": str(local),
        "GROUP_RANK": str(rank // local), "GROUP_WORLD_SIZE": str(-(-world // local)), "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world), "ROLE_NAME": "default", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "imagined", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
    }  # fmt: skip


def _unstarted(module: Any, torch: Any) -> None:
    """A store that waits for processes which nobody started says so, in place of half an hour of silence."""
    import datetime

    original = torch._C._distributed_c10d.TCPStore
    names = ("host_name", "port", "world_size", "is_master", "timeout", "wait_for_workers")

    class TCPStore(original):  # type: ignore[misc,valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            asked = {**dict(zip(names, args)), **kwargs}
            others = int(asked.get("world_size") or 0) - 1
            local = int(os.environ.get("LOCAL_WORLD_SIZE", "0") or 0)
            patience = datetime.timedelta(seconds=PATIENCE if 0 < local <= others else STARTING)
            timeout = asked.get("timeout", module.default_pg_timeout)
            if others < 1 or not asked.get("wait_for_workers", True) or timeout <= patience:
                original.__init__(self, *args, **kwargs)
                return
            asked["timeout"] = patience
            try:
                original.__init__(self, *args[6:], **asked)
            except Exception as error:
                raise RuntimeError(_alone(others, asked)) from error
            self.set_timeout(timeout)

    TCPStore.__module__ = original.__module__
    replace(original, TCPStore)


def _places(module: Any, ledger: Ledger) -> None:
    """Which rank a process is, where its program says so and no launcher did. In a world of PyTorch's fake backend
    the others are nowhere."""
    original = module.init_process_group

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        try:
            rank, world = module.get_rank(), module.get_world_size()
            if world > 1 and "fake" in str(module.get_backend()).lower():
                ledger.agent.fact(FAKE_RANK, rank)
                ledger.agent.fact(FAKE_WORLD, world)
            elif world > 1:
                ledger.agent.set_rank(rank, world)
        except Exception as error:
            ledger.agent.log("could not tell the rank in the process group", error)
        return result

    replace(original, init_process_group)


def _alone(others: int, asked: Dict[str, Any]) -> str:
    who = "rank %s" % os.environ["RANK"] if os.environ.get("RANK") else "this process"
    text = "hightide imagine: %s waits at %s:%s for %d other%s, and not all of them were started here. "
    text %= (who, asked.get("host_name"), asked.get("port"), others, "" if others == 1 else "s")
    return text + "To imagine one rank of many: hightide imagine --world-size N --play RANK"


def _launcher(module: Any, place: Tuple[int, int]) -> None:
    """torchrun and all that launch through it: be the rank instead of starting ranks."""

    def __call__(self: Any, *args: Any) -> Any:
        config, entry = self._config, self._entrypoint
        os.environ.update(environment(*place, int(config.nproc_per_node)))
        if callable(entry):
            return {place[0]: entry(*args)}
        local = os.environ["LOCAL_RANK"]
        _become([entry] + [str(a).replace("${local_rank}", local).replace("$local_rank", local) for a in args])

    module.elastic_launch.__call__ = __call__


def _deepspeed(module: Any, place: Tuple[int, int]) -> None:
    """DeepSpeed's own launcher, which tells a rank its place on the machine by an argument too."""
    original = module.main

    @functools.wraps(original)
    def main(args: Any = None) -> Any:
        asked = module.parse_args(args)
        if getattr(asked, "autotuning", ""):
            return original(args)
        local = asked.num_gpus if asked.num_gpus > 0 else int(os.environ.get("LOCAL_WORLD_SIZE", "0") or 0)
        os.environ.update(environment(*place, local))
        command = [] if asked.no_python else [sys.executable, "-u", *["-m"] * asked.module]
        command.append(asked.user_script)
        if not asked.no_local_rank:
            command.append("--local_rank=" + os.environ["LOCAL_RANK"])
        _become(command + asked.user_args)

    module.main = main


def _become(command: List[str]) -> None:
    """Run a command in the place of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], command)


def _groups(module: Any, torch: Any, ledger: Ledger, place: Tuple[int, int]) -> None:
    import datetime

    rank, world = place
    store: list[Any] = []

    def rendezvous(url: str, *args: Any, **kwargs: Any) -> Any:
        if not store:
            store.append(torch.distributed.HashStore())
            store[0].set_timeout(datetime.timedelta(seconds=PATIENCE))
        yield store[0], rank, world

    replace(module.rendezvous, rendezvous)
    module._store_based_barrier = lambda *args, **kwargs: None
    for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        if hasattr(module, name):
            _made_up_ids(module, name)
    _no_splits(module, rank)
    if hasattr(module, "_create_process_group_wrapper"):  # of TORCH_DISTRIBUTED_DEBUG=DETAIL: each call asks all others
        replace(module._create_process_group_wrapper, lambda wrapped_pg, *args, **kwargs: wrapped_pg)
    if hasattr(module, "ProcessGroupGloo"):
        _nobody_there(module, torch)
    _no_shared_memory(torch, rank)
    letters = Mailbox(ledger.agent.folder, rank)
    for name in ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list",
                 "send_object_list", "recv_object_list"):  # fmt: skip
        if hasattr(module, name):
            replace(getattr(module, name), _objects(name, getattr(module, name), ledger, module, letters))
    monitored = getattr(module, "monitored_barrier", None)
    if monitored is not None:  # over gloo: waits for each rank by name
        replace(monitored, functools.wraps(monitored)(lambda *args, **kwargs: None))


def replace(old: Any, new: Any) -> None:
    """Put a function or class in another's place wherever torch.distributed has it by name."""
    for path, module in list(sys.modules.items()):
        if path.startswith("torch.distributed") and module is not None:
            for name, value in list(vars(module).items()):
                if value is old:
                    setattr(module, name, new)


def _made_up_ids(module: Any, name: str) -> None:
    """Each group's store gets the ids that its rank 0 would have put there."""
    group = getattr(module, name)

    class Played(group):  # type: ignore[misc,valid-type]
        def __init__(self, store: Any, rank: int, size: int, *args: Any, **kwargs: Any) -> None:
            made_up = bytes([1 + rank % 255]) * ID_BYTES
            for key in _keys(name, rank, size):
                store.set(key, made_up)
            group.__init__(self, store, rank, size, *args, **kwargs)

    Played.__name__ = Played.__qualname__ = name
    Played.__module__ = group.__module__
    replace(group, Played)


def _keys(name: str, rank: int, size: int) -> Iterator[str]:
    """Where this rank looks for an id that another one makes."""
    if name != "ProcessGroupNCCL":  # of torch 2.15
        for i in range(COUNTERS if rank else 0):
            yield "%d/nccl_storekey_%d" % (i % 8, i // 8)
        return
    for i in range(COUNTERS if rank else 0):
        yield str(i)
    for other in range(min(size, rank)):  # a pair's own communicator
        yield "%d:%d" % (other, rank)


def _no_splits(module: Any, rank: int) -> None:
    """Splitting a communicator needs to hear from all its ranks; a new one with the same members does not."""
    if hasattr(module, "_get_split_source"):
        module._get_split_source = lambda *args, **kwargs: None
    if not hasattr(module, "split_group"):
        return

    def split_group(*args: Any, **kwargs: Any) -> Any:
        parent = module.get_process_group_ranks(given(args, kwargs, 0, "parent_pg") or module._get_default_group())
        split = given(args, kwargs, 1, "split_ranks") or []
        mine = [[parent[i] for i in ranks] for ranks in split if rank in [parent[i] for i in ranks]]
        timeout, text = given(args, kwargs, 2, "timeout"), given(args, kwargs, 4, "group_desc")
        return module.new_group(mine[0], timeout=timeout, group_desc=text) if mine else None

    replace(module.split_group, functools.wraps(module.split_group)(split_group))


def _nobody_there(module: Any, torch: Any) -> None:
    """Gloo would connect to every rank: the group that answers itself takes its place."""
    fake: Any = getattr(torch._C._distributed_c10d, "FakeProcessGroup", None)
    if fake is None:
        return
    make = getattr(fake, "_create_internal", fake)
    gloo = module.ProcessGroupGloo
    for name in ("_set_sequence_number_for_group", "_set_default_timeout"):  # which it lacks, or raises
        setattr(fake, name, lambda *args: None)

    class Either(type(gloo)):  # type: ignore[misc]
        def __instancecheck__(cls, group: Any) -> bool:
            return isinstance(group, (fake, gloo))  # up to PyTorch 2.9 it is asserted to be one of gloo's

    class ProcessGroupGloo(gloo, metaclass=Either):  # type: ignore[misc,valid-type]
        def __new__(cls, store: Any, rank: int, size: int, *args: Any, **kwargs: Any) -> Any:
            return make(rank, size)

    replace(gloo, ProcessGroupGloo)


def _no_shared_memory(torch: Any, me: int) -> None:
    """Symmetric memory, as AsyncTP uses it, asks each rank of the group for its pages and waits without an end."""
    memory = getattr(torch._C._distributed_c10d, "_SymmetricMemory", None)
    original = getattr(memory, "rendezvous", None)
    if original is None:
        return

    def rendezvous(tensor: Any, group_name: Any = None) -> Any:
        of = torch.distributed.distributed_c10d._resolve_process_group(group_name) if group_name else None
        size = torch.distributed.get_world_size(of)
        if size > 1:
            raise RuntimeError(
                "hightide imagine: rank %d waits for the symmetric memory of %d other%s, and a rank that is played "
                "alone has none. Start them all, as --gpus 8 and torchrun do, or leave AsyncTP off"
                % (me, size - 1, "" if size == 2 else "s")
            )
        return original(tensor, group_name)

    memory.rendezvous = staticmethod(rendezvous)  # type: ignore[union-attr]


def _objects(
    name: str, original: Callable[..., Any], ledger: Ledger, module: Any, letters: Mailbox
) -> Callable[..., Any]:
    """Objects come through small tensors whose bytes only the sender knows: let them be those that it left in the
    mailbox where it is played too, else this rank's own."""

    @functools.wraps(original)
    def exchange(*args: Any, **kwargs: Any) -> Any:
        first: Any = args[0] if args else kwargs.get("object_list", kwargs.get("obj"))
        mine = args[1] if name == "all_gather_object" and len(args) > 1 else kwargs.get("obj")
        before = list(first) if isinstance(first, list) else None
        peer = _peer(name, module, args, kwargs)
        if name in SENDING or (name == "broadcast_object_list" and peer == letters.me):
            letters.send(_address(name, letters.me, peer, args, kwargs), first)
        try:
            result = original(*args, **kwargs)
        except Exception:  # what cannot be read back as an object
            result = peer if name == "recv_object_list" else None
            if before is not None and first is not None:
                first[:] = before
        if name in SENDING or (name == "broadcast_object_list" and peer == letters.me):
            return result
        if name in RECEIVING:
            sent = letters.receive(_address(name, peer, letters.me, args, kwargs), peer)
            if sent is not None:
                first[: len(sent)] = sent
                return result
            if name == "recv_object_list":
                raise RuntimeError("hightide imagine: " + letters.unanswered(peer))
        into = kwargs.get("object_list", first)
        if name == "all_gather_object" and isinstance(into, list):
            into[:] = [mine] * len(into)
        elif name == "gather_object":
            gathered = kwargs.get("object_gather_list", args[1] if len(args) > 1 else None)
            if isinstance(gathered, list):
                gathered[:] = [kwargs.get("obj", first)] * len(gathered)
        ledger.at_line("policy", name, policy="this rank's own")
        return result

    return exchange


SENDING = ("send_object_list",)
RECEIVING = ("recv_object_list", "broadcast_object_list")


def _peer(name: str, module: Any, args: Any, kwargs: Any) -> int:
    """The global rank that sends or is sent to; -1 where the call has none."""
    if name not in SENDING + RECEIVING:
        return -1
    group = kwargs.get("group", args[2] if len(args) > 2 else None)
    key = "dst" if name in SENDING else "src"
    peer = kwargs.get(key, args[1] if len(args) > 1 else None)
    within = kwargs.get("group_" + key)
    if peer is None and within is not None:
        peer = module.get_global_rank(group or module._get_default_group(), within)
    return int(peer or 0)


def _address(name: str, sender: int, receiver: int, args: Any, kwargs: Any) -> str:
    if name == "broadcast_object_list":
        group = kwargs.get("group", args[2] if len(args) > 2 else None)
        return "all-%s-%d" % (getattr(group, "group_name", "world"), sender)
    return "p2p-%d-%d" % (sender, receiver)
