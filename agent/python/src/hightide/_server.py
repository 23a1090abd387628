"""A server, `hightide ui`, asked over HTTP in the place of the program that is installed here."""

from __future__ import annotations

import http.client
import json
import os
import socket
from glob import escape as glob_escape
from glob import glob
from typing import Any, Dict, List, Optional
from urllib.parse import quote, urlencode, urlsplit

from ._engine import Failed

_ROOT = "/api/v1"
_REPORT = 2  # the version of the report's form that this package knows: docs/formats/json.md
_PAGE = 1000
_PATIENCE = 60.0  # seconds: a report of a long recording takes a few


class ServerError(Failed):
    """A server cannot be asked, or says that it cannot; one line with what to do."""


class Server:
    """A server as its address and token say. It is asked directly: no proxy, no redirection."""

    def __init__(self, address: str, token: str = "") -> None:
        parts = urlsplit(address)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise ServerError(
                f"HIGHTIDE_SERVER is {address!r}, which is not an address of a server: as in http://127.0.0.1:7333"
            )
        self._address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._https, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path = parts.path.rstrip("/") + _ROOT
        self._token = token or _left(self._address)

    def runs(self, limit: int = 0) -> List[Dict[str, Any]]:
        """The rows of its runs, newest first; at most `limit`, 0: all."""
        rows: List[Dict[str, Any]] = []
        before = ""
        while True:
            page = min(_PAGE, limit - len(rows)) if limit else _PAGE
            query = {"limit": str(page), **({"before": before} if before else {})}
            found = self._json("/runs?" + urlencode(query))
            if not isinstance(found, dict) or not isinstance(found.get("runs"), list):
                raise self._stranger()
            rows += found["runs"]
            before = found.get("next") or ""
            if not before or (limit and len(rows) >= limit):
                return rows

    def report(self, run: str) -> Dict[str, Any]:
        """A run's report."""
        found = self._json(f"/runs/{quote(run, safe='')}/report")
        version = found.get("version") if isinstance(found, dict) else None
        if not isinstance(version, int):
            raise self._stranger()
        if version != _REPORT:
            raise ServerError(
                f"the server at {self._address} is of another version: its reports are of form {version}, this package "
                f"reads form {_REPORT}; install the hightide that the server has"
            )
        report: Dict[str, Any] = found
        return report

    def text(self, run: str) -> str:
        """A run's report as the terminal shows it."""
        return self._ask(f"/runs/{quote(run, safe='')}/report.txt").decode(errors="replace")

    def html(self, run: str) -> str:
        """A run's report as one page."""
        return self._ask(f"/runs/{quote(run, safe='')}/report.html").decode(errors="replace")

    def _json(self, path: str) -> Any:
        try:
            return json.loads(self._ask(path))
        except ValueError as error:
            raise self._stranger() from error

    def _ask(self, path: str) -> bytes:
        headers = {"Accept": "application/json, */*"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connect = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        connection = connect(self._host, self._port, timeout=_PATIENCE)
        try:
            connection.request("GET", self._path + path, headers=headers)
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            if type(error).__name__ == "SSLCertVerificationError":
                raise ServerError(
                    f"the certificate of {self._address} cannot be verified; where it is your own, "
                    "set SSL_CERT_FILE to its file"
                ) from error
            raise ServerError(
                f"no hightide server answers at {self._address} ({error or type(error).__name__}); "
                "start one with hightide ui, or leave HIGHTIDE_SERVER out"
            ) from error
        except ValueError as error:  # of a header
            raise ServerError(
                "HIGHTIDE_TOKEN holds what no token can: a line break, or a letter outside of ASCII"
            ) from error
        finally:
            connection.close()
        if status != 200:
            raise self._refused(status, body)
        return body

    def _refused(self, status: int, body: bytes) -> ServerError:
        if status == 401:
            what = "refuses the token" if self._token else "asks for a token"
            return ServerError(
                f"the server at {self._address} {what}: set HIGHTIDE_TOKEN to what is in its token file, "
                "which hightide ui --token-file names"
            )
        said = _detail(body)
        if said is None:
            return self._stranger(status)
        return ServerError(said)

    def _stranger(self, status: int = 200) -> ServerError:
        answered = f" (it answers {status})" if status != 200 else ""
        return ServerError(
            f"what answers at {self._address} is not a hightide server, or one of another version{answered}; "
            "install the hightide that the server has"
        )


def _left(address: str) -> str:
    """The token that a server of this account left in the data directory; "": none listens at that very address.

    A name, as localhost, may lead to the server of another account, and so may the loopback of another machine.
    """
    for path in glob(os.path.join(glob_escape(_data_folder()), "ui", "server-*.json")):
        try:
            with open(path, encoding="utf-8") as file:
                door = json.load(file)
            if address in door["addresses"] and door["where"] == _network():
                return str(door["token"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # it has ended, or is not ours
    return ""


def _data_folder() -> str:
    home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.environ.get("HIGHTIDE_DATA") or os.path.join(home, "hightide")


def _network() -> str:
    """This machine's network, as the server names it: cmd/hightide/uidoor.go."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/net')}"
    except OSError:
        return socket.gethostname()


def _detail(body: bytes) -> Optional[str]:
    """What a server of ours says of an error, in one line."""
    try:
        said = json.loads(body).get("detail")
    except (ValueError, AttributeError):
        return None
    return " ".join(said.split()) if isinstance(said, str) else None


def server() -> Optional[Server]:
    """The server that HIGHTIDE_SERVER names; None: it names none, and the installed program is asked."""
    address = os.environ.get("HIGHTIDE_SERVER", "")
    return Server(address, os.environ.get("HIGHTIDE_TOKEN", "").strip()) if address else None
