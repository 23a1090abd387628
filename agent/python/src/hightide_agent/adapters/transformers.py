"""`transformers serve MODEL`, since its version 5: it loads the model, then listens for HTTP.

    ModelManager           ─▶ weights
    PagedAttentionCache    ─▶ the KV cache, with --continuous-batching; it is made for the first request
    uvicorn                ─▶ it answers

What a first request takes is not taken before, so one is sent where none are asked for. A program that generates by
itself needs nothing of this.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

from .. import sdk
from ..load import Load, Way, asked
from ..serving import READY, Serving
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]

BATCHING = "transformers.generation.continuous_batching"
GIB = 1 << 30
FIRST = (1, 16, 2)  # one request, of so many tokens, and so many to answer
UNNAMED = "no model was named, and it loads one when it is asked for it; transformers serve MODEL loads it at the start"


def install(training: Training, transformers: Any, watch: Watch) -> None:
    """Observe a server whose GPUs are imaginary."""
    if os.environ.get("HIGHTIDE_IMAGINE") != "1":
        return
    version = str(getattr(transformers, "__version__", ""))

    def command(_: Any) -> None:
        engine = Transformers(training, version)
        training.install_parts(
            "transformers",
            ("the model", lambda: watch("transformers.cli.serving.model_manager", engine.manager)),
            ("answers", lambda: watch("transformers.generation.utils", engine.answers)),
            ("the seed", lambda: watch(BATCHING + ".distributed", engine.seeds)),
            ("sampled tokens", lambda: watch(BATCHING + ".input_outputs", engine.outputs)),
            ("the batches", lambda: watch(BATCHING + ".continuous_api", engine.batches)),
            ("the KV cache", lambda: watch(BATCHING + ".cache", engine.cache)),
            ("HTTP", lambda: watch("uvicorn.server", engine.serving.http)),
        )

    watch("transformers.cli.serve", command)


class Transformers:
    """What is read of the server's objects."""

    def __init__(self, training: Training, version: str) -> None:
        self.serving = Serving(training, "transformers", version, sdk.spans)
        self.serving.way = Way("/v1/completions", self._request, named=False)
        self._tokenizer: Any = None
        self._cache: Any = None
        training.owned.append(self._caches)

    def manager(self, module: Any) -> None:
        """The model, which is loaded when this is made."""
        method = self.serving.method
        method(module.ModelManager, "__init__", self._named)
        method(module.ModelManager, "_load_model", self._loaded, "weights")
        method(module.ModelManager, "_load_processor", self._processed)

    def cache(self, module: Any) -> None:
        self.serving.method(module.PagedAttentionCache, "__init__", self._allocated, "kv_cache")

    def answers(self, module: Any) -> None:
        """Without --continuous-batching, one is computed after another."""
        self.serving.method(module.GenerationMixin, "generate", lambda model, *_: self.serving.computed(model.device))

    def seeds(self, module: Any) -> None:
        """A seed that nobody gives is drawn on the device, and decides no size."""
        original = module.DistributedHelper.set_tp_seed

        @functools.wraps(original)
        def set_tp_seed(helper: Any, seed: Any, *more: Any, **named: Any) -> Any:
            return original(helper, 0 if seed is None else seed, *more, **named)

        module.DistributedHelper.set_tp_seed = set_tp_seed

    def outputs(self, module: Any) -> None:
        """Which tokens were sampled decides no size: they go to a client."""
        original, guarded = module.ContinuousBatchingIOs.prepare_batch_update, self.serving.guarded

        @functools.wraps(original)
        def prepare_batch_update(batch: Any) -> Any:
            guarded(batch.output_ids.zero_)
            return original(batch)

        module.ContinuousBatchingIOs.prepare_batch_update = prepare_batch_update

    def batches(self, module: Any) -> None:
        """What a batch took, and requests take of the KV cache."""
        original, guarded, serving = module.ContinuousBatchProcessor.update_batch, self.serving.guarded, self.serving

        def taken(processor: Any) -> None:
            cache = processor.cache
            used = (cache.num_sectors - cache.pool.num_free_sectors) * cache.num_blocks // cache.num_sectors
            serving.computed(cache.cache_tensor.device)
            if asked() is not None:
                serving.loaded(used, len(processor.scheduler.active_requests), None)
                serving.tell_load()

        @functools.wraps(original)
        def update_batch(processor: Any) -> Any:
            guarded(taken, processor)
            return original(processor)

        module.ContinuousBatchProcessor.update_batch = update_batch

    def _named(self, manager: Any, result: Any, *_: Any) -> None:
        if isinstance(result, BaseException):
            return
        if manager.force_model is None:
            self.serving.tell(load_refused=UNNAMED)
        else:
            self.serving.first = Load(*FIRST)
            if asked() is None:
                how = "one, of %d tokens and %d to answer, as it takes memory for that" % FIRST[1:]
                self.serving.agent.record({"type": "condition", "name": "requests", "value": how})

    def _processed(self, manager: Any, result: Any, *_: Any) -> None:
        if not isinstance(result, BaseException):
            self._tokenizer = getattr(result, "tokenizer", result)

    def _loaded(self, manager: Any, result: Any, model: str = "", *_: Any) -> None:
        if isinstance(result, BaseException):
            self._lacking(manager, result, model.partition("@")[0])
            return
        result.generation_config.eos_token_id = None  # no kernel chooses a token: answers are as long as asked
        longest = getattr(result.config.get_text_config(), "max_position_embeddings", None)
        parts = {id(tensor): tensor for tensor in (*result.parameters(), *result.buffers())}.values()
        here, all_of_them = sum(t.nbytes for t in parts if t.is_cuda), sum(t.nbytes for t in parts)
        if here < all_of_them:
            how = "%.2f of %.2f GiB, where accelerate left them" % ((all_of_them - here) / GIB, all_of_them / GIB)
            self.serving.agent.record({"type": "condition", "name": "weights on the host", "value": how})
        self.serving.tell(
            at=READY,
            weights_bytes=here,
            max_model_len=longest,
            longest_of_model=longest,
        )

    def _lacking(self, manager: Any, error: BaseException, model: str) -> None:
        """What the weights take, where they did not all find memory. What was free for them: what is free now, and what
        PyTorch's allocator has, which had nothing before."""
        torch, transformers = sys.modules["torch"], sys.modules["transformers"]
        config = transformers.AutoConfig.from_pretrained(model, trust_remote_code=manager.trust_remote_code)
        dtype = manager.dtype if isinstance(manager.dtype, torch.dtype) else config.dtype or torch.float32
        kind = getattr(transformers, config.architectures[0])
        free, _ = torch.cuda.mem_get_info()
        self.serving.tell(free_bytes=free + torch.cuda.memory_reserved())
        self.serving.lacking(error, dtype, lambda: kind._from_config(config, dtype=dtype))

    def _allocated(self, cache: Any, result: Any, *_: Any) -> None:
        if isinstance(result, BaseException):
            return
        blocks = int(cache.num_blocks)  # of all layers
        block = int(next(iter(cache.cache_allocators.values())).tokens_per_page)
        tokens, longest = blocks * block, getattr(cache.config, "max_position_embeddings", None)
        asked = os.environ.get("HIGHTIDE_IMAGINE_TOKENS", "")
        self._cache = cache
        self.serving.tell(
            at=READY,
            kv_bytes=cache.cache_tensor.nbytes,
            kv_blocks=blocks,
            block_size=block,
            kv_tokens=tokens,
            max_concurrency=tokens / longest if longest else None,
            asked_concurrency=tokens / int(asked) if asked else None,
            max_num_batched_tokens=int(cache.max_batch_tokens),
        )

    def _caches(self) -> Iterator[Tuple[str, str, Any]]:
        if self._cache is not None:
            yield "kv_cache", "cache_tensor", self._cache.cache_tensor

    def _request(self, _: str, prompt: List[int], output: int) -> Dict[str, Any]:
        return {"prompt": self._text(prompt[0], len(prompt)), "max_tokens": output}

    def _text(self, number: int, length: int) -> str:
        """A text of so many tokens, which begins with a number of its own."""

        def tokens(words: int) -> int:
            return len(self._tokenizer(text(words))["input_ids"])

        def text(words: int) -> str:
            return "%d%s" % (number, " a" * words)

        least, most = 0, length
        while least < most:
            words = (least + most + 1) // 2
            least, most = (words, most) if tokens(words) <= length else (least, words - 1)
        if tokens(least) == length:
            return text(least)
        for more in ("a", "1", ".", "\n"):  # a word may have several
            for count in range(1, 8):
                if len(self._tokenizer(text(least) + more * count)["input_ids"]) == length:
                    return text(least) + more * count
        raise ValueError("no text of %d tokens was found" % length)
