"""hightide.runs() and report() of a server: the real one, one that is not there, and strangers in its place."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
sys.path.append(str(SOURCE))
import hightide  # noqa: E402
from hightide import _server  # noqa: E402
from test_sdk_engine import PROGRAM, environment  # noqa: E402


def served(env: Dict[str, str], *flags: str) -> Any:
    """A server on a free port, and the address that it printed."""
    process = subprocess.Popen([str(PROGRAM), "ui", "--addr", "127.0.0.1:0", *flags], env=env,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stderr is not None
    found = None
    while found is None:
        line = process.stderr.readline()
        assert line, "the server ended before it said its address"
        found = re.search(r"https?://\S+", line)
    return process, found.group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With three recorded runs."""
    place = tmp_path_factory.mktemp("served")
    program = [sys.executable, "-c", "held = b'x' * (64 << 20); import time; time.sleep(0.3)"]
    for name in ("first", "second", "third"):
        command = [str(PROGRAM), "run", "--quiet", "--name", name, "--tag", "model=bert", "--", *program]
        subprocess.run(command, env=environment(place), check=True)
    return place


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, folder: Path) -> pytest.MonkeyPatch:
    for name in ("HIGHTIDE_SERVER", "HIGHTIDE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment(folder).items():
        if name.startswith("HIGHTIDE"):
            monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    process, address = served(environment(folder))
    yield address
    process.terminate()
    process.wait()
    process.stderr.close()


def test_a_server_says_what_the_program_says(here: pytest.MonkeyPatch, server: str) -> None:
    runs, report = hightide.runs(), hightide.report("second")
    text, page = report.text, report.html
    here.setenv("HIGHTIDE_SERVER", server)
    here.setenv("HIGHTIDE_BINARY", "/nowhere/hightide")  # what is asked now is the server
    assert hightide.runs() == runs and [run.name for run in runs] == ["third", "second", "first"]
    assert hightide.runs(2) == runs[:2]
    asked = hightide.report("second")
    assert asked.data == report.data and asked.text == text and asked.id == runs[1].id
    assert len(asked.html) == len(page) and "<!doctype html>" in asked.html.lower()
    assert runs[0].report().data["run"]["name"] == hightide.report().data["run"]["name"] == "third"
    with pytest.raises(RuntimeError, match=r"no such run|there is no run") as said:
        hightide.report("no such run/..")
    assert "\n" not in str(said.value)


def test_more_runs_than_an_answer_holds(here: pytest.MonkeyPatch, server: str) -> None:
    here.setenv("HIGHTIDE_SERVER", server + "/")
    here.setattr(_server, "_PAGE", 1)
    assert [run.name for run in hightide.runs()] == ["third", "second", "first"]
    assert [run.name for run in hightide.runs(2)] == ["third", "second"]


def test_paths_are_of_this_machine(here: pytest.MonkeyPatch, server: str) -> None:
    file = hightide.runs()[0].data["file"]
    here.setenv("HIGHTIDE_SERVER", server)
    assert hightide.report(file).data["run"]["name"] == "third"


def test_the_token(here: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    held = tmp_path / "token"
    process, printed = served(environment(folder), "--token-file", str(held))
    try:
        token, address = held.read_text().strip(), printed.partition("#")[0]
        for known in (printed, address):  # the account's own server at this very address: nothing is to be set
            here.setenv("HIGHTIDE_SERVER", known)
            assert len(hightide.runs()) == 3
        here.setenv("HIGHTIDE_SERVER", address.replace("127.0.0.1", "localhost"))  # which another account may answer to
        with pytest.raises(RuntimeError, match=r"asks for a token: set HIGHTIDE_TOKEN to what is in its token file"):
            hightide.runs()
        here.setenv("HIGHTIDE_DATA", str(tmp_path / "elsewhere"))
        here.setenv("HIGHTIDE_SERVER", address)
        with pytest.raises(RuntimeError, match=r"asks for a token: set HIGHTIDE_TOKEN"):
            hightide.runs()
        here.setenv("HIGHTIDE_TOKEN", token[:-1])
        with pytest.raises(RuntimeError, match=r"refuses the token: set HIGHTIDE_TOKEN"):
            hightide.runs()
        here.setenv("HIGHTIDE_TOKEN", token + "\n")
        assert len(hightide.runs()) == 3
        here.setenv("HIGHTIDE_TOKEN", "two\nlines")
        with pytest.raises(RuntimeError, match="what no token can"):
            hightide.runs()
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def test_a_token_of_another_machine(here: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A data directory that several machines see: the loopback of each is its own."""
    other, address, handler = stranger(401, {"detail": "who asks is not known"})
    sent: List[Optional[str]] = []
    handler.do_GET = lambda self: (sent.append(self.headers["Authorization"]), Stranger.do_GET(self))
    (tmp_path / "ui").mkdir()
    here.setenv("HIGHTIDE_DATA", str(tmp_path))
    here.setenv("HIGHTIDE_SERVER", address)
    try:
        for where in ("another boot net:[1]", _server._network()):
            door = {"addresses": [address], "token": "secret", "where": where}
            (tmp_path / "ui" / "server-1.json").write_text(json.dumps(door))
            with pytest.raises(RuntimeError, match=r"(asks for a|refuses the) token"):
                hightide.runs()
    finally:
        other.shutdown()
    assert sent == [None, "Bearer secret"]


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_a_certificate(here: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-keyout", "key.pem", "-out", "cert.pem",
            "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    process, address = served(
        environment(folder), "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")
    )
    try:
        here.setenv("HIGHTIDE_SERVER", address)
        with pytest.raises(RuntimeError, match="cannot be verified; where it is your own, set SSL_CERT_FILE"):
            hightide.runs()
        here.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        assert len(hightide.runs()) == 3
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize("address", ["127.0.0.1:7333", "ftp://127.0.0.1", "http://", "http://127.0.0.1:port"])
def test_no_address(here: pytest.MonkeyPatch, address: str) -> None:
    here.setenv("HIGHTIDE_SERVER", address)
    with pytest.raises(RuntimeError, match=r"not an address of a server: as in http://127.0.0.1:7333"):
        hightide.runs()


def test_nobody_answers(here: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:  # and does not listen
        bound.bind(("127.0.0.1", 0))
        here.setenv("HIGHTIDE_SERVER", f"http://127.0.0.1:{bound.getsockname()[1]}")
        with pytest.raises(
            RuntimeError, match=r"no hightide server answers at http://127.0.0.1:.*; start one with hightide ui"
        ):
            hightide.report("last")


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers with what it was given, whatever is asked."""

    status, body, location = 200, b"", ""
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


def stranger(status: int, body: Any, location: str = "") -> Any:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler = type("Handler", (Stranger,), {"status": status, "body": text, "location": location})
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    return other, f"http://127.0.0.1:{other.server_port}", handler


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, {"version": 99, "run": {}}, "of another version: its reports are of form 99, this package reads form 2"),
        (200, b"<html>a router", "not a hightide server, or one of another version"),
        (200, ["runs"], "not a hightide server, or one of another version"),
        (404, b"not found", "not a hightide server, or one of another version .it answers 404."),
        (302, b"", "not a hightide server, or one of another version .it answers 302."),
        (503, {"detail": "the disk\nis full"}, "^the disk is full$"),
    ],
)
def test_a_stranger_answers(here: pytest.MonkeyPatch, status: int, body: Any, says: str) -> None:
    elsewhere, place, trap = stranger(200, {"runs": []})
    other, address, _ = stranger(status, body, location=place)
    here.setenv("HIGHTIDE_SERVER", address)
    here.setenv("HIGHTIDE_TOKEN", "secret")
    asked: Optional[RuntimeError] = None
    try:
        hightide.report("last")
    except RuntimeError as error:
        asked = error
    for one in (other, elsewhere):
        one.shutdown()
        one.server_close()
    assert asked is not None and re.search(says, str(asked)) and "\n" not in str(asked), asked
    assert trap.asked == 0, "a token goes nowhere but to the server that was named"
