"""SGLang. What it serves stands in the objects of its scheduler; none of its arithmetic is done again.

    Scheduler (a process for each GPU)  init_torch_distributed ─▶ load_model ─▶ init_memory_pool ─▶ init_device_graphs
                                        each is a step of the start; then tokens and sequences at once
    the program's process               uvicorn listens, and SGLang's own first request is answered

A parent kills the schedulers, which catch their own exceptions: all that they know is told while they start.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
from typing import Any, Callable, Iterator, Tuple

from .. import ending, load, sdk
from ..serving import READY, Serving, beside, free_port
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]

KV_CACHE = "kv_cache"
SETTINGS = {  # vLLM's names
    "max_model_len": "context_length",
    "gpu_memory_utilization": "mem_fraction_static",
    "max_num_batched_tokens": "chunked_prefill_size",
    "max_num_seqs": "max_running_requests",
    "enforce_eager": "disable_cuda_graph",
    "tensor_parallel_size": "tp_size",
    "kv_cache_dtype": "kv_cache_dtype",
    "max_cudagraph_capture_size": "cuda_graph_max_bs",
    "num_gpu_blocks_override": "max_total_tokens",  # in tokens
}
GIB = 1 << 30  # what SGLang measures of a device's memory is in this unit, though it says GB


def install(training: Training, sglang: Any, watch: Watch) -> None:
    """Observe this process's part of a server whose GPUs are imaginary. A real one needs nothing: PyTorch's adapter
    sees what it takes."""
    if os.environ.get("HIGHTIDE_IMAGINE") != "1":
        return
    engine = Sglang(training, str(getattr(sglang, "__version__", "")))
    training.install_parts(
        "SGLang",
        ("settings", lambda: watch("sglang.srt.server_args", engine.arguments)),
        ("the worker", lambda: watch("sglang.srt.model_executor.model_runner", engine.runner)),
        ("the scheduler", lambda: watch("sglang.srt.managers.scheduler", engine.scheduler)),
        ("the cache on the host", lambda: watch("sglang.srt.mem_cache.memory_pool_host", engine.offloading)),
        ("HTTP", lambda: watch("uvicorn.server", lambda module: engine.serving.http(module, waits=True))),
        ("its first request", lambda: watch("sglang.srt.entrypoints.http_server", engine.entrypoint)),
        ("calls", lambda: watch("sglang.srt.entrypoints.engine", engine.calls)),
    )


class Sglang:
    """What is read of SGLang's objects."""

    def __init__(self, training: Training, version: str) -> None:
        self.training = training
        self.serving = Serving(training, "SGLang", version, sdk.spans)
        self.serving.way = load.SGLANG
        self._pool: Any = None  # of keys and values
        self._places: Any = None  # where each request's lie in it
        training.owned.append(self._caches)

    def arguments(self, module: Any) -> None:
        """What the engine is asked for: hightide may ask for something else in its place."""
        check = module.ServerArgs.__post_init__
        guarded, settings = self.serving.guarded, self.serving.settings

        @functools.wraps(check)
        def __post_init__(arguments: Any) -> None:
            guarded(settings, arguments, SETTINGS)
            if beside():
                arguments.port, arguments.nccl_port = free_port(), None
            check(arguments)

        module.ServerArgs.__post_init__ = __post_init__

    def runner(self, module: Any) -> None:
        """The steps of one GPU's start."""
        method, kind = self.serving.method, module.ModelRunner
        method(kind, "init_torch_distributed", self._device, "device")
        method(kind, "load_model", self._weights, "weights")
        method(kind, "init_memory_pool", self._allocated, KV_CACHE)
        method(kind, "init_device_graphs", self._captured, "graphs")

    def scheduler(self, module: Any) -> None:
        """The scheduler has been started once it can take requests; then what they take."""
        kind, method = module.Scheduler, self.serving.method
        method(kind, "__init__", self._started)
        method(kind, "run_batch", self._computed)
        for loop in ("event_loop_normal", "event_loop_overlap"):
            method(kind, loop, self._failed)
        if load.asked() is None:
            return
        result, retract = kind.process_batch_result, module.ScheduleBatch.retract_decode
        guarded, tell, loaded = self.serving.guarded, self.serving.tell_load, self.serving.loaded

        @functools.wraps(result)
        def process_batch_result(*arguments: Any, **named: Any) -> Any:
            guarded(tell)
            return result(*arguments, **named)

        @functools.wraps(retract)
        def retract_decode(*arguments: Any, **named: Any) -> Any:
            done = retract(*arguments, **named)
            guarded(lambda: loaded(0, 0, len(done[0])))
            return done

        kind.process_batch_result, module.ScheduleBatch.retract_decode = process_batch_result, retract_decode

    def _computed(self, scheduler: Any, result: Any, batch: Any = None, *_: Any) -> None:
        """A batch was computed, at first one of SGLang's own."""
        self.serving.computed(scheduler.device)
        if load.asked() is None or batch is None:
            return
        pages = scheduler._get_token_info()[0] // scheduler.server_args.page_size
        running = {id(request) for requests in (batch.reqs, scheduler.running_batch.reqs) for request in requests}
        self.serving.loaded(pages, len(running), 0)

    def entrypoint(self, module: Any) -> None:
        """The server is ready once it has answered a request of its own, for which kernels are compiled."""
        wait = module._wait_and_warmup

        @functools.wraps(wait)
        def _wait_and_warmup(*arguments: Any, **named: Any) -> Any:
            result = wait(*arguments, **named)
            status = getattr(module._global_state.tokenizer_manager, "server_status", None)
            if getattr(status, "name", "Up") == "Up":
                self.serving.guarded(self.serving.opened)
            return result

        module._wait_and_warmup = _wait_and_warmup

    def calls(self, module: Any) -> None:
        """An engine in the program's process."""
        self.serving.calls(module.Engine, ("generate", "encode", "rerank", "score"))

    def _device(self, runner: Any, result: Any, *_: Any) -> None:
        arguments = runner.server_args
        if runner.tp_size > 1 and not isinstance(result, BaseException):
            self.training.agent.fact("rank.name", "TP%d" % runner.tp_rank)
        self.serving.tell(
            free_bytes=None if isinstance(result, BaseException) else _bytes(result),
            utilization=float(runner.mem_fraction_static),
            block_size=arguments.page_size,
            max_model_len=runner.model_config.context_len,
            longest_of_model=getattr(runner.model_config.hf_text_config, "max_position_embeddings", None),
            max_num_seqs=arguments.max_running_requests,
            max_num_batched_tokens=arguments.chunked_prefill_size,
            tensor_parallel_size=arguments.tp_size,
            kv_dtype=str(arguments.kv_cache_dtype),
            cuda_graphs=not arguments.disable_cuda_graph,
            max_captured=None if arguments.disable_cuda_graph else arguments.cuda_graph_max_bs,
        )

    def _weights(self, runner: Any, result: Any, *_: Any) -> None:
        self.serving.tell(weights_bytes=_bytes(getattr(runner, "weight_load_mem_usage", None)))
        if isinstance(result, BaseException):
            self.serving.lacking(result, runner.model_config.dtype, lambda: _built(runner))

    def _allocated(self, runner: Any, result: Any, *_: Any) -> None:
        if isinstance(result, BaseException):
            return
        self._pool, self._places = runner.token_to_kv_pool, runner.req_to_token_pool
        tokens = int(runner.max_total_num_tokens)
        self.serving.tell(
            kv_bytes=sum(tensor.nbytes for _, tensor in buffers(self._pool)),
            kv_tokens=tokens,
            kv_blocks=tokens // runner.server_args.page_size,
            max_concurrency=tokens / runner.model_config.context_len,
        )

    def offloading(self, module: Any) -> None:
        """A part of the KV cache that is kept on the host, as --enable-hierarchical-cache has it."""
        self.serving.method(module.HostKVCache, "__init__", self._offloaded)

    def _offloaded(self, pool: Any, result: Any, *_: Any) -> None:
        if not isinstance(result, BaseException):
            kept = pool.kv_buffer
            tensors = kept if isinstance(kept, (list, tuple)) else (kept,)
            self.serving.tell(kv_host_bytes=sum(tensor.nbytes for tensor in tensors))

    def _captured(self, runner: Any, result: Any, *_: Any) -> None:
        graphs = None if runner.server_args.disable_cuda_graph else getattr(runner, "graph_mem_usage", None)
        after = None if isinstance(result, BaseException) else "warm-up"  # and its own first request
        self.serving.tell(at=after, graph_bytes=_bytes(graphs))

    def _failed(self, scheduler: Any, result: Any, *_: Any) -> None:
        """The scheduler catches its own exception, and has the server killed."""
        if isinstance(result, Exception):
            ending.tell(self.training.agent, result)

    def _started(self, scheduler: Any, result: Any, *_: Any) -> None:
        self._failed(scheduler, result)
        if isinstance(result, BaseException):
            return
        asked = os.environ.get("HIGHTIDE_IMAGINE_TOKENS", "")
        tokens = scheduler.max_total_num_tokens
        self.serving.tell(
            at=READY,
            max_num_seqs=scheduler.max_running_requests,
            asked_concurrency=tokens / int(asked) if asked else None,
        )
        self.serving.computed(scheduler.device)
        if multiprocessing.parent_process() is not None:
            self.serving.requests()

    def _caches(self) -> Iterator[Tuple[str, str, Any]]:
        for name, tensor in buffers(self._pool):
            yield KV_CACHE, name, tensor
        if self._places is not None:
            yield "buffers", "req_to_token", self._places.req_to_token


def _built(runner: Any) -> Any:
    """The model once more, as its loader makes it."""
    loader = sys.modules["sglang.srt.model_loader.loader"]
    return loader._initialize_model(runner.model_config, runner.load_config)


def buffers(pool: Any) -> Iterator[Tuple[str, Any]]:
    """The tensors of a pool of keys and values, by name; one pool may stand in another."""
    for name, thing in vars(pool).items() if pool is not None else ():
        if name.endswith("_buffer") and isinstance(thing, list):
            yield from (("%s.%d" % (name, number), tensor) for number, tensor in enumerate(thing))
        elif name.endswith("_pool") and hasattr(thing, "get_kv_size_bytes"):
            yield from buffers(thing)


def _bytes(gib: Any) -> Any:
    return None if gib is None else int(gib * GIB)
