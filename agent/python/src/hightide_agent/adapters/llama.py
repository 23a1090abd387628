"""llama.cpp (through llama-cpp-python): each batch of tokens that a context computes is a step, all of it forward.

What the context holds llama.cpp says in its log while it is made: the cache of keys and values, and what is set aside
for computing. The log is listened to only then, and goes where it went.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, Dict, List, Optional

from ..inference import Sessions
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]
BUFFER = re.compile(r"(\S+)\s+(\w+) buffer size =\s*([\d.]+ \w+)")  # "CPU compute buffer size =    12.51 MiB"


def install(training: Training, llama_cpp: Any, watch: Watch) -> None:
    """Observe this process's use of llama_cpp, which has just been imported."""
    training.agent.framework("llama_cpp", str(llama_cpp.__version__))
    seen = _Seen(training, llama_cpp)
    internals = llama_cpp._internals
    training.install_parts(
        "llama.cpp",
        ("calls of contexts", lambda: seen.sessions.calls(internals.LlamaContext, ("decode", "encode"))),
        ("its log", seen.follow_log),
        ("models", lambda: seen.after_init(internals.LlamaModel, seen.model)),
        ("contexts", lambda: seen.after_init(internals.LlamaContext, seen.context)),
    )


class _Seen:
    """The models and contexts of a process. The largest model is told, and the newest of its contexts."""

    def __init__(self, training: Training, llama_cpp: Any) -> None:
        self.agent = training.agent
        self.sessions = Sessions(training, "llama")
        self.cpp = llama_cpp
        self._told: Optional[str] = None  # the path of the model that was told last
        self._weights: Dict[str, List[str]] = {}  # by the path of a model: its buffers
        self._log: Any = None  # where the log goes, once that is known
        self._with: Any = None  # what is handed over with it
        self._listener: Any = None
        self._set: Any = None

    def follow_log(self) -> None:
        """Know where the log goes, whoever leads it elsewhere."""
        self._log = self.cpp._logger.llama_log_callback
        original = self.cpp.llama_log_set

        @functools.wraps(original)
        def log_set(callback: Any, user_data: Any = None) -> Any:
            self._log, self._with = callback, user_data
            return original(callback, user_data)

        self._set = original
        self.cpp.llama_log_set = self.cpp.llama_cpp.llama_log_set = log_set

    def after_init(self, kind: Any, look: Callable[[Any, List[str]], None]) -> None:
        """Have what is made, and the buffers that the log told of meanwhile, be looked at."""
        original = kind.__init__

        @functools.wraps(original)
        def init(made: Any, *args: Any, **kwargs: Any) -> None:
            heard = self._listening()
            try:
                original(made, *args, **kwargs)
            finally:
                if heard is not None:
                    self._set(self._log, self._with)
            try:
                look(made, heard or [])
            except Exception as error:
                self.agent.log("what llama.cpp made was not seen", error)

        kind.__init__ = init

    def _listening(self) -> Optional[List[str]]:
        """From now on the buffers that the log tells of; None: nobody knows where the log goes."""
        heard: List[str] = []
        log = self._log
        if log is None:
            return None

        def listen(level: int, text: bytes, data: Any) -> None:
            found = BUFFER.search(text.decode("utf-8", "replace"))
            if found:
                where, what, size = found.groups()
                heard.append("%s %s in %s" % (what, size, where))
            log(level, text, data)

        self._listener = self.cpp.llama_log_callback(listen)  # ctypes does not keep it
        self._set(self._listener, self._with)
        return heard

    def model(self, model: Any, buffers: List[str]) -> None:
        """A model was loaded."""
        path = str(model.path_model)
        self._weights[path] = buffers

        def facts() -> Dict[str, Any]:
            self._told = path
            return {"buffers": ", ".join(buffers)} if buffers else {}

        self.sessions.loaded(lambda: path, facts)

    def context(self, context: Any, buffers: List[str]) -> None:
        """A context was made; what it takes is told beside what its model takes."""
        path = str(context.model.path_model)
        if path != self._told:
            return
        facts = {
            "threads": self.cpp.llama_n_threads(context.ctx),
            "threads_batch": self.cpp.llama_n_threads_batch(context.ctx),
            "context": context.n_ctx(),  # tokens
        }
        for key, value in facts.items():
            self.agent.fact("llama_" + key, value)
        if buffers:
            self.agent.fact("llama_buffers", ", ".join(self._weights[path] + buffers))
