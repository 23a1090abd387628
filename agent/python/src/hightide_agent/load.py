"""Requests that an imagined server answers before it ends: so many at once, each of so many tokens.

    HIGHTIDE_IMAGINE_LOAD=8x512+128 ─▶ asked ─▶ Load.run: a thread for each, POST by a Way ─▶ answered, refused

They come over the server's own port, as a client's do, and go through the engine's own scheduler. Prompts are numbers
of tokens that differ from the first on, so that no two share a part of the cache; no tokenizer is needed. The way is
the one that an engine takes such prompts by: most OpenAI's, SGLang its own, as the other wants a tokenizer of it.
"""

from __future__ import annotations

import json
import os
import re
import threading
from http.client import HTTPConnection
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple


class Way(NamedTuple):
    """How a server is asked."""

    path: str
    body: Callable[[str, List[int], int], Dict[str, Any]]  # of model, prompt, tokens to answer
    named: bool = True  # whether it is to be asked for the model's name; else that is empty


PATIENCE = 600.0  # seconds that an answer may take
VOCABULARY = 997  # numbers of tokens that any model has


def completion(model: str, prompt: List[int], output: int) -> Dict[str, Any]:
    return {"model": model, "prompt": prompt, "max_tokens": output, "ignore_eos": True, "temperature": 0}


def generation(_: str, prompt: List[int], output: int) -> Dict[str, Any]:
    return {"input_ids": prompt, "sampling_params": {"max_new_tokens": output, "ignore_eos": True, "temperature": 0}}


OPENAI = Way("/v1/completions", completion)
SGLANG = Way("/generate", generation)


class Load:
    """So many sequences at once, of so many tokens each."""

    def __init__(self, sequences: int, prompt: int, output: int) -> None:
        self.sequences, self.prompt, self.output = sequences, prompt, output
        self.answered = 0
        self.refused = ""
        self._lock = threading.Lock()

    def run(self, address: Tuple[str, int], way: Way = OPENAI) -> None:
        """Send all requests at once, and wait until each was answered or refused."""
        try:
            model = _ask(address, "GET", "/v1/models", None)["data"][0]["id"] if way.named else ""
        except Exception as error:
            self.refused = "it does not name its models: %s" % error
            return
        threads = [
            threading.Thread(target=self._one, args=(address, way, model, number), daemon=True)
            for number in range(self.sequences)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _one(self, address: Tuple[str, int], way: Way, model: str, number: int) -> None:
        prompt: List[int] = [1 + (number * 31 + place) % VOCABULARY for place in range(self.prompt)]
        try:
            _ask(address, "POST", way.path, way.body(model, prompt, self.output))
        except Exception as error:
            with self._lock:
                self.refused = self.refused or str(error)
            return
        with self._lock:
            self.answered += 1


def asked() -> Optional[Load]:
    """The load that was asked for; None: none."""
    found = re.fullmatch(r"(\d+)x(\d+)\+(\d+)", os.environ.get("HIGHTIDE_IMAGINE_LOAD", ""))
    return Load(*map(int, found.groups())) if found else None


def _ask(address: Tuple[str, int], method: str, path: str, body: Optional[Dict[str, Any]]) -> Any:
    connection = HTTPConnection(*address, timeout=PATIENCE)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = answer.read()
        if answer.status != 200:
            raise OSError("%d %s: %s" % (answer.status, answer.reason, told[:300].decode("utf-8", "replace")))
        return json.loads(told)
    finally:
        connection.close()
