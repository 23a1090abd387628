"""Requests that are played to an imagined server: here to a server of the standard library's."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator, List

import pytest

from hightide_agent import load

ASKED: List[Any] = []
TOGETHER = threading.Barrier(3, timeout=30)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "a model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ASKED.append({**body, "path": self.path})
        if len(body.get("prompt", ())) > 100:
            self.answer(400, {"error": "too long"})
            return
        TOGETHER.wait()  # none is answered before all have come
        self.answer(200, {})

    def answer(self, status: int, told: Any) -> None:
        text = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ASKED.clear()
        yield server.server_address[:2]
        server.shutdown()


def test_requests_come_at_once(address: Any) -> None:
    played = load.Load(3, 40, 8)
    played.run(address)
    assert (played.answered, played.refused) == (3, "")
    assert {(body["model"], len(body["prompt"]), body["max_tokens"]) for body in ASKED} == {("a model", 40, 8)}
    assert len({body["prompt"][0] for body in ASKED}) == 3, "no prompt begins as another does"


def test_requests_of_an_engines_own(address: Any) -> None:
    """SGLang takes tokens in place of text where it has no tokenizer, at another path."""
    played = load.Load(3, 40, 8)
    played.run(address, load.SGLANG)
    assert (played.answered, played.refused) == (3, "")
    assert {body["path"] for body in ASKED} == {"/generate"}
    assert {(len(body["input_ids"]), body["sampling_params"]["max_new_tokens"]) for body in ASKED} == {(40, 8)}


def test_a_refusal_is_told(address: Any) -> None:
    played = load.Load(2, 101, 8)
    played.run(address)
    assert played.answered == 0 and played.refused.startswith('400 Bad Request: {"error": "too long"}')


def test_no_server(address: Any) -> None:
    played = load.Load(1, 8, 8)
    played.run(("127.0.0.1", 1))
    assert played.answered == 0 and played.refused.startswith("it does not name its models: ")


@pytest.mark.parametrize("text, tokens", [("8x512+128", (8, 512, 128)), ("", None), ("8x512", None)])
def test_what_was_asked_for(text: str, tokens: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHTIDE_IMAGINE_LOAD", text)
    found = load.asked()
    assert tokens == (None if found is None else (found.sequences, found.prompt, found.output))
