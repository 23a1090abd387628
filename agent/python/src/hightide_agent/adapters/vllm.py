"""vLLM, its engine V1. What it serves stands in its own configuration objects; none of its arithmetic is done again.

    Worker (one for each GPU)   init_device ─▶ load_model ─▶ determine_available_memory ─▶ initialize_from_config
                                ─▶ compile_or_warm_up_model, capture_model          each is a step of the start
    EngineCore (a process of its own, or the program's)  ─▶ blocks, tokens, sequences at once
    uvicorn, or LLM.generate and its like (the program's process)  ─▶ it answers

What a version lacks is left out; each part is installed for itself.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import math
import os
import re
import shutil
import sys
from typing import Any, Callable, Dict, Iterator, Tuple

from .. import load, sdk
from ..imagine import copies
from ..serving import READY, Serving, beside
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]

CALLS = ("generate", "chat", "beam_search", "encode", "embed", "classify", "reward", "score")
KV_CACHE = "kv_cache"
PACKED = "vllm.model_executor.layers.quantization.utils.quant_utils"
PROMISED = re.compile(r"--kv-cache-memory=(\d+)")  # in its log, where no object has it


def install(training: Training, vllm: Any, watch: Watch) -> None:
    """Observe this process's part of a server whose GPUs are imaginary. A real one needs nothing: PyTorch's adapter
    sees what it takes."""
    if os.environ.get("HIGHTIDE_IMAGINE") != "1":
        return
    engine = Vllm(training, str(getattr(vllm, "__version__", "")))
    serving = engine.serving
    training.install_parts(
        "vLLM",
        ("the worker", lambda: watch("vllm.v1.worker.gpu_worker", engine.worker)),
        ("CUDA graphs", lambda: watch("vllm.v1.worker.gpu_model_runner", engine.runner)),
        ("CUDA graphs of the runner V2", lambda: watch("vllm.v1.worker.gpu.model_runner", engine.runner)),
        ("the engine's core", lambda: watch("vllm.v1.engine.core", engine.core)),
        ("the size of the KV cache", lambda: watch("vllm.v1.core.kv_cache_utils", engine.sizes)),
        ("the plan of the KV cache", lambda: watch("vllm.v1.core.kv_cache_planning", engine.sizes)),
        ("the cache on the host", lambda: watch("vllm.v1.kv_offload.worker.cpu_gpu", engine.offloading)),
        ("the cache on the host, since moved", lambda: watch("vllm.v1.kv_offload.cpu.gpu_worker", engine.offloading)),
        ("the sampler", lambda: watch("vllm.v1.sample.ops.topk_topp_sampler", engine.sampler)),
        ("requests", lambda: watch("vllm.v1.core.sched.scheduler", engine.scheduler)),
        ("settings", lambda: watch("vllm.engine.arg_utils", engine.arguments)),
        ("the command", lambda: watch("vllm.entrypoints.openai.cli_args", engine.command)),
        ("the command, since moved", lambda: watch("vllm.entrypoints.common.cli_args", engine.command)),
        ("compiled code", lambda: watch("vllm.compilation.decorators", engine.compiled)),
        ("packed weights", lambda: watch(PACKED, engine.packed)),
        ("HTTP", lambda: watch("uvicorn.server", serving.http)),
        ("calls", lambda: watch("vllm.entrypoints.llm", lambda module: serving.calls(module.LLM, CALLS))),
    )


class Vllm:
    """What is read of vLLM's objects."""

    def __init__(self, training: Training, version: str) -> None:
        self.training = training
        self.serving = Serving(training, "vLLM", version, sdk.spans)
        self._runner: Any = None
        self._counted = False  # whether it was said how sampled tokens are
        training.owned.append(self._caches)

    def arguments(self, module: Any) -> None:
        """What the engine is asked for: hightide may ask for something else in its place."""
        create = module.EngineArgs.create_engine_config
        guarded, settings = self.serving.guarded, self.serving.settings

        @functools.wraps(create)
        def create_engine_config(arguments: Any, *more: Any, **named: Any) -> Any:
            copies.here()
            guarded(settings, arguments)
            return create(arguments, *more, **named)

        module.EngineArgs.create_engine_config = create_engine_config

    def command(self, module: Any) -> None:
        """The server's arguments, of `vllm serve` and of `python -m vllm.entrypoints.openai.api_server`: its settings
        are made in an event loop, and it can be forked before that."""
        original = module.validate_parsed_serve_args

        @functools.wraps(original)
        def validate_parsed_serve_args(arguments: Any) -> Any:
            copies.here()
            if beside():
                arguments.port = 0  # any: requests that are played are to come to this start
            return original(arguments)

        module.validate_parsed_serve_args = validate_parsed_serve_args

    def worker(self, module: Any) -> None:
        """The steps of one GPU's start."""
        method = self.serving.method
        method(module.Worker, "init_device", self._device, "device")
        method(module.Worker, "load_model", self._weights, "weights")
        method(module.Worker, "determine_available_memory", self._profiled, "profiling")
        method(module.Worker, "initialize_from_config", self._allocated, KV_CACHE)
        method(module.Worker, "compile_or_warm_up_model", self._warm, "warm-up")
        if load.asked() is not None or copies.asked():
            method(module.Worker, "execute_model", self._executed)
        for name in ("debug", "info"):  # by version
            setattr(module.logger, name, self._reading(getattr(module.logger, name)))

    def _reading(self, log: Callable[..., Any]) -> Callable[..., Any]:
        """A method of a logger, read for the KV cache with which the engine promises to use all of the GPU."""

        def write(message: Any, *arguments: Any, **named: Any) -> Any:
            promised = [int(number) for number in PROMISED.findall(str(message))]
            if promised:
                self.serving.guarded(self.serving.tell, suggested_kv_bytes=max(promised))
            return log(message, *arguments, **named)

        return write

    def runner(self, module: Any) -> None:
        """CUDA graphs: what they took of the device, as vLLM measured it; and what a step samples."""
        self.serving.method(module.GPUModelRunner, "capture_model", self._captured, "graphs")
        if module.__name__.endswith(".gpu.model_runner"):
            self.serving.method(module.GPUModelRunner, "sample", self._sampled)
            self._logprobs(sys.modules["vllm.v1.outputs"].LogprobsTensors)

    def sampler(self, module: Any) -> None:
        """FlashInfer's is compiled with nvcc at the start; without one PyTorch's is taken, as on other devices."""
        original = getattr(module, "flashinfer_sampler_supported", None)
        if original is None or _compiles():
            return

        @functools.wraps(original)
        def supported() -> bool:
            if original():
                how = "PyTorch's: nvcc, which compiles FlashInfer's, is not here"
                self.training.agent.record({"type": "condition", "name": "sampler", "value": how})
            return False

        module.flashinfer_sampler_supported = supported

    def compiled(self, module: Any) -> None:
        """Whether this start compiles, as far as versions keep whole functions: torch.compile tries kernels within the
        pass by which vLLM measures, and what that takes is missing in the KV cache. A later start finds the code."""
        original = getattr(module, "_try_load_aot_compiled_fn", None)
        if original is None:
            return

        @functools.wraps(original)
        def load(*arguments: Any) -> Any:
            found = original(*arguments)
            how = "of vLLM's cache; a start that compiles takes memory for it, and may have less KV cache"
            if found is None:
                how = "made at this start, which takes memory; one that finds it in vLLM's cache may have more KV cache"
            self.training.agent.record({"type": "condition", "name": "compiled code", "value": how})
            return found

        module._try_load_aot_compiled_fn = load

    def _logprobs(self, kind: Any) -> None:
        """Which tokens were likely, of an answer or a prompt, decides no size: that goes to a client."""
        original, guarded = kind.to_cpu_nonblocking, self.serving.guarded

        @functools.wraps(original)
        def to_cpu_nonblocking(numbers: Any) -> Any:
            for tensor in (numbers.logprob_token_ids, numbers.selected_token_ranks):
                guarded(tensor.zero_)
            return original(numbers)

        kind.to_cpu_nonblocking = to_cpu_nonblocking

    def _sampled(self, runner: Any, result: Any, hidden: Any = None, batch: Any = None, *_: Any) -> None:
        """The runner V2 has a kernel count the tokens that each sequence was given, and the engine goes on until they
        are enough. They follow from the batch: none of a prompt that is not read to its end, else one; of more that
        were guessed how many are right is not known, and the least is taken."""
        if isinstance(result, BaseException) or batch is None or not batch.num_reqs:
            return
        torch = sys.modules["torch"]
        read = batch.num_computed_prefill_tokens_np + batch.num_scheduled_tokens
        ended = torch.from_numpy(read[: batch.num_reqs] >= batch.prefill_len_np[: batch.num_reqs])
        counts = result[1]
        counts[: batch.num_reqs].copy_(ended.to(counts.dtype))
        result[0].sampled_token_ids.zero_()  # which they are decides no size: they go to a client
        if not self._counted:
            self._counted = True
            how = "one a sequence, of number 0, as the runner V2 has them without speculation"
            self.training.agent.record({"type": "condition", "name": "sampled tokens", "value": how})

    def packed(self, module: Any) -> None:
        """The zeros of packed weights are put into another order on the host, and go back: none decides a size."""
        for name in ("pack_cols", "unpack_cols"):
            original = getattr(module, name, None)
            if original is not None:
                setattr(module, name, self._whatever(original))

    def _whatever(self, original: Callable[..., Any]) -> Callable[..., Any]:
        guarded = self.serving.guarded

        @functools.wraps(original)
        def reorder(packed: Any, *arguments: Any, **named: Any) -> Any:
            guarded(packed.zero_)
            return original(packed, *arguments, **named)

        return reorder

    def core(self, module: Any) -> None:
        """The engine's core: it has been started once it can schedule requests."""
        self.serving.method(module.EngineCore, "__init__", self._started)

    def scheduler(self, module: Any) -> None:
        """What requests take of the KV cache, where some are played."""
        if load.asked() is None and not copies.asked():
            return
        kind = module.Scheduler
        schedule, update = kind.schedule, kind.update_from_output
        guarded, loaded = self.serving.guarded, self._loaded

        @functools.wraps(schedule)
        def scheduled(scheduler: Any, *arguments: Any, **named: Any) -> Any:
            before = list(scheduler.running)
            result = schedule(scheduler, *arguments, **named)
            guarded(loaded, scheduler, before)
            return result

        @functools.wraps(update)
        def updated(scheduler: Any, *arguments: Any) -> Any:
            result = update(scheduler, *arguments)
            if not scheduler.running:
                guarded(self.serving.tell_load)
            return result

        kind.schedule, kind.update_from_output = scheduled, updated

    def _loaded(self, scheduler: Any, before: Any) -> None:
        pool = scheduler.kv_cache_manager.block_pool
        used = pool.num_gpu_blocks - 1 - pool.get_num_free_blocks()  # one is never given out
        preempted = sum(request.status.name == "PREEMPTED" for request in before)
        self.serving.loaded(used, len(scheduler.running), preempted)

    def _executed(self, worker: Any, result: Any, *_: Any) -> None:
        self.serving.computed(worker.device)

    def sizes(self, module: Any) -> None:
        """How much KV cache one sequence takes at most, and which is the longest that there is memory for. Of a module
        that checks that: from 0.12 on with both as calls, before with the layers."""
        guarded, needed = self.serving.guarded, self._needed
        if hasattr(module, "_check_enough_kv_cache_memory"):
            check_calls = module._check_enough_kv_cache_memory

            @functools.wraps(check_calls)
            def of_calls(available: int, get_needed: Any, longest: int, estimate: Any, *more: Any) -> Any:
                guarded(lambda: needed(get_needed(), available, estimate))
                return check_calls(available, get_needed, longest, estimate, *more)

            module._check_enough_kv_cache_memory = of_calls
        elif hasattr(module, "check_enough_kv_cache_memory"):
            check_layers = module.check_enough_kv_cache_memory

            @functools.wraps(check_layers)
            def of_layers(config: Any, specs: Any, available: int) -> Any:
                takes = module.max_memory_usage_bytes
                other = _apart(config)  # the estimate leaves the last length that it tried in the configuration
                longest = functools.partial(module.estimate_max_model_len, other, specs)
                guarded(lambda: needed(takes(config, specs.values()), available, longest))
                return check_layers(config, specs, available)

            module.check_enough_kv_cache_memory = of_layers

    def _needed(self, needed: int, available: int, longest: Callable[[int], int]) -> None:
        self.serving.tell(
            at=KV_CACHE,
            kv_needed_bytes=int(needed),
            kv_available_bytes=int(available),
            longest_model_len=int(longest(available)) if 0 < available < needed else None,
        )

    def _device(self, worker: Any, result: Any, *_: Any) -> None:
        if not isinstance(result, BaseException):
            self._named()
        snapshot, requested = getattr(worker, "init_snapshot", None), getattr(worker, "requested_memory", None)
        if requested is None and snapshot is not None:  # newer versions refuse before they keep it
            requested = math.ceil(snapshot.total_memory * worker.vllm_config.cache_config.gpu_memory_utilization)
        self.serving.tell(free_bytes=_whole(getattr(snapshot, "free_memory", None)), budget_bytes=_whole(requested),
                          **_settings(worker.vllm_config))  # fmt: skip

    def _named(self) -> None:
        """Which of the GPUs this process has that share a model, as vLLM's log names it."""
        state = sys.modules["vllm.distributed.parallel_state"]
        groups = (("PP", state.get_pp_group()), ("TP", state.get_tp_group()))
        name = "_".join("%s%d" % (kind, group.rank_in_group) for kind, group in groups if group.world_size > 1)
        if name:
            self.training.agent.fact("rank.name", name)

    def _weights(self, worker: Any, result: Any, *_: Any) -> None:
        self.serving.tell(weights_bytes=_whole(getattr(worker.model_runner, "model_memory_usage", None)))
        if isinstance(result, BaseException):
            config = worker.vllm_config
            self.serving.lacking(result, config.model_config.dtype, lambda: _built(config))

    def _profiled(self, worker: Any, result: Any, *_: Any) -> None:
        available = result if isinstance(result, int) else getattr(worker, "available_kv_cache_memory_bytes", None)
        activations, others = getattr(worker, "peak_activation_memory", None), getattr(worker, "non_torch_memory", None)
        consumed = getattr(worker, "total_consumed", None)  # from 0.24 on: weights, and what is beside the allocator
        if others is None and consumed is not None:
            others = max(0, consumed - worker.model_runner.model_memory_usage)
        reserved = _graphs_reserved(worker)
        self.serving.tell(
            activation_bytes=None if activations is None else int(activations) - (reserved or 0),
            non_torch_bytes=_whole(others),
            graph_reserved_bytes=reserved,
            kv_available_bytes=_whole(available),
        )

    def _allocated(self, worker: Any, result: Any, config: Any = None, *_: Any) -> None:
        if isinstance(result, BaseException):
            return
        self._runner = worker.model_runner
        self.serving.tell(
            kv_bytes=_kv_bytes(getattr(config, "kv_cache_tensors", ())),
            kv_blocks=_whole(getattr(config, "num_blocks", None)),
        )

    def offloading(self, module: Any) -> None:
        """Blocks of the KV cache that are kept on the host: a tensor there for each of the device."""
        for name in ("CpuGpuOffloadingHandler", "SingleDirectionOffloadingHandler"):  # by version
            if hasattr(module, name):
                self.serving.method(getattr(module, name), "__init__", self._offloaded)

    def _offloaded(self, handler: Any, result: Any, *_: Any) -> None:
        tensors = getattr(handler, "cpu_tensors", None)
        if tensors is None:
            both = *getattr(handler, "src_tensors", ()), *getattr(handler, "dst_tensors", ())
            tensors = [tensor for tensor in both if tensor.device.type == "cpu"]
        if tensors and not isinstance(result, BaseException):
            self.serving.tell(kv_host_bytes=sum(tensor.nbytes for tensor in tensors))

    def _captured(self, runner: Any, result: Any, *_: Any) -> None:
        if isinstance(result, (int, float)) and not self.serving.within("profiling"):  # from 0.21 on tried there too
            self.serving.tell(graph_bytes=int(result))

    def _warm(self, worker: Any, result: Any, *_: Any) -> None:
        if not isinstance(result, BaseException):
            self.serving.tell(at=READY)
            self.serving.computed(worker.device)

    def _started(self, core: Any, result: Any, *_: Any) -> None:
        if isinstance(result, BaseException):
            return
        config = core.vllm_config
        cache = getattr(core.scheduler, "kv_cache_config", None)
        self.serving.tell(at=READY, **{**_settings(config), **(_capacity(config, cache) if cache is not None else {})})

    def _caches(self) -> Iterator[Tuple[str, str, Any]]:
        for number, tensor in enumerate(getattr(self._runner, "kv_caches", ())):
            for part in tensor if isinstance(tensor, (list, tuple)) else (tensor,):
                yield KV_CACHE, "kv_caches.%d" % number, part


def _built(config: Any) -> Any:
    """The model once more; each of its layers has a name in the settings, where those of the first stand."""
    utils = sys.modules["vllm.model_executor.model_loader.utils"]
    other = copy.copy(config)
    other.compilation_config = copy.copy(config.compilation_config)
    other.compilation_config.static_forward_context = {}
    return utils.initialize_model(vllm_config=other, model_config=config.model_config)


def _settings(config: Any) -> Dict[str, Any]:
    """What decides the figures and what a user can set."""
    cache, model, scheduler = config.cache_config, config.model_config, config.scheduler_config
    return {
        "utilization": float(cache.gpu_memory_utilization),
        "block_size": cache.block_size,
        "max_model_len": model.max_model_len,
        "longest_of_model": _whole(getattr(model.hf_text_config, "max_position_embeddings", None)),
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
        "kv_dtype": str(cache.cache_dtype),
        "cuda_graphs": not model.enforce_eager,
        "max_captured": _captured(config.compilation_config),
    }


def _captured(config: Any) -> Any:
    """The largest batch of which a graph is captured; None: of none."""
    return max(getattr(config, "cudagraph_capture_sizes", None) or (), default=None)


def _kv_bytes(tensors: Any) -> int:
    """What the KV cache takes of the device. In later versions tensors are places in one allocation, and each has the
    size of that; kinds of layers with groups of their own lie in the same bytes."""
    sizes = [int(tensor.size) for tensor in tensors if not getattr(tensor, "host_resident", False)]
    places = any(hasattr(tensor, "layer_stride") for tensor in tensors)
    return max(sizes, default=0) if places else sum(sizes)


def _capacity(config: Any, cache: Any) -> Dict[str, Any]:
    """Blocks and tokens, as vLLM's log counts them (get_kv_cache_config_from_groups), and sequences at once."""
    groups = cache.kv_cache_groups
    if not groups:
        return {}
    block = min(group.kv_cache_spec.block_size for group in groups)
    tokens = cache.num_blocks // len(groups) * block
    for name in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        tokens *= getattr(config.parallel_config, name, 1)
    sizes = sys.modules["vllm.v1.core.kv_cache_utils"]
    at_once = sizes.get_max_concurrency_for_kv_cache_config
    counted = getattr(config.cache_config, "kv_cache_size_tokens", None)  # from 0.24 on: of the longest sequences
    told = {"kv_blocks": cache.num_blocks, "block_size": block, "kv_tokens": counted or tokens,
            "max_concurrency": float(at_once(config, cache))}  # fmt: skip
    asked = os.environ.get("HIGHTIDE_IMAGINE_TOKENS", "")
    if asked:
        other = _apart(config)
        other.model_config.max_model_len = int(asked)
        told["asked_concurrency"] = float(at_once(other, cache))
    return told


def _apart(config: Any) -> Any:
    """The configuration, in which another length may be set that the engine does not see."""
    other = copy.copy(config)
    other.model_config = copy.copy(config.model_config)
    return other


def _graphs_reserved(worker: Any) -> Any:
    """What profiling took out of the KV cache for CUDA graphs; None: a version before 0.21, or told not to."""
    estimate = getattr(worker, "cudagraph_memory_estimate", None)
    applied = getattr(sys.modules["vllm.envs"], "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", False)
    return int(estimate) if estimate is not None and applied else None


def _whole(number: Any) -> Any:
    return None if number is None else int(number)


def _compiles() -> bool:
    """Whether FlashInfer has a compiler of CUDA, by the places where it looks, or its kernels compiled."""
    places = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    found = any(places) or shutil.which("nvcc") or os.path.exists("/usr/local/cuda")
    return bool(found or importlib.util.find_spec("flashinfer_jit_cache"))
