"""Runs Python programs of the tests in forks of a process that has imported PyTorch already.

    interpreter, imports ─▶ server ──fork──▶ the program, as if Python had been started on it
                              ▲
                run() ────────┴─ arguments, environment, folder, output; back comes the exit status

An import of PyTorch takes seconds of computing, most programs of the tests tenths. There is one server for each
interpreter and for what is preloaded into it; programs may run at the same time. A fork gets all else anew:
environment, folder, output, the sitecustomize that PYTHONPATH leads to, sys.argv, sys.path, the module __main__.

What happens before a program's first line cannot be tested here. That is options of the interpreter, variables that libraries
read when they are loaded, an import of PyTorch under the eyes of the agent. Nor can what happens after its last: Python's
exit handlers run, those of C do not. Such tests start Python themselves.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

# With what an optimizer imports at its first step.
MODULES = (
    "numpy",
    "torch",
    "torch._dynamo",
    "torch.utils.data",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
)
# Of a program's environment, what acts when a process starts: programs that differ here have different servers.
AT_START = ("LD_PRELOAD", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")

# ---- the side of the tests


class Program:
    """A program that was started. Its output goes to `out` and `err`, files that can be read while it runs."""

    def __init__(self, command: list[str], done: int) -> None:
        self.command, self.done = command, done
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.pid = 0

    def word(self, timeout: float) -> int:
        """The server's next word on it: its pid, then its exit status.

        Raises:
            subprocess.TimeoutExpired: there was none in this time, in seconds.
        """
        if not select.select([self.done], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.command, timeout)
        data = os.read(self.done, 8)
        if len(data) < 8:
            raise RuntimeError(f"the fork server of {self.command[0]} ended")
        return int.from_bytes(data, "little", signed=True)

    def ended(self, timeout: float) -> bool:
        """Whether it has ended, waiting so many seconds for it; its exit status is still to be asked for."""
        return bool(select.select([self.done], [], [], timeout)[0])

    def wait(self, timeout: float = 600) -> int:
        """Exit status; negative: the signal that ended it. One that takes too long is killed."""
        try:
            return self.word(timeout)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self.word(60)
            raise
        finally:
            os.close(self.done)

    def printed(self) -> tuple[str, str]:
        """What it wrote so far, to its standard output and to its standard error."""
        out, err = (os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")
                    for file in (self.out, self.err))  # fmt: skip
        return out, err

    def completed(self, status: int) -> subprocess.CompletedProcess[str]:
        """Its result, of which nothing more is to be asked."""
        result = subprocess.CompletedProcess(self.command, status, *self.printed())
        for file in (self.out, self.err):
            file.close()
        return result


_servers: dict[tuple[str, ...], tuple[socket.socket, subprocess.Popen[bytes]]] = {}


@atexit.register
def _end_servers() -> None:
    for requests, process in _servers.values():
        requests.close()
        process.wait()


def _server(python: str, env: Mapping[str, str]) -> socket.socket:
    """The socket of a server; started at its first use, it ends with this process."""
    start = {name: env[name] for name in AT_START if name in env}
    key = (python, *(f"{name}={value}" for name, value in sorted(start.items())))
    if key not in _servers:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        shared = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        # Threads do not survive a fork.
        one_thread = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        with its:
            process = subprocess.Popen(
                [python, __file__, str(its.fileno()), *MODULES],
                env={**shared, **one_thread, **start}, pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        _servers[key] = ours, process
    return _servers[key][0]


def start(command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None = None) -> Program:
    """Start `python script.py …`, `python -c code …` or `python -m module …` in a fork."""
    words = [str(word) for word in command]
    done, told = os.pipe()
    program = Program(words, done)
    try:
        request = json.dumps({"command": words, "env": dict(env), "cwd": str(cwd or Path.cwd())}).encode()
        files = array.array("i", [program.out.fileno(), program.err.fileno(), told])
        _server(words[0], env).sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    finally:
        os.close(told)
    program.pid = program.word(600)
    return program


def run(
    command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run with its output captured as text."""
    program = start(command, env, cwd)
    return program.completed(program.wait(timeout))


def run_ranks(
    count: int, command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None = None, timeout: float = 600
) -> list[subprocess.CompletedProcess[str]]:
    """As torchrun on one machine: ranks 0 to count, all at once. Where one fails, the others are killed."""
    world = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
    }
    programs = [
        start(command, {**env, **world, "RANK": str(rank), "LOCAL_RANK": str(rank)}, cwd) for rank in range(count)
    ]
    running, statuses = {program.done: program for program in programs}, {}
    while running:
        ready = select.select(list(running), [], [], timeout)[0]
        for done in ready:
            program = running.pop(done)
            statuses[program.pid] = program.wait()
        if not ready or any(statuses[program.pid] for program in programs if program.pid in statuses):
            for program in running.values():
                os.kill(program.pid, signal.SIGKILL)
    return [program.completed(statuses[program.pid]) for program in programs]


def free_port() -> str:
    """Not torchrun's usual one, which may be another test's. Nor one of those that the kernel hands out to anybody
    who asks for any, as it may do so before it is taken."""
    for port in range(20_000 + os.getpid() % 10_000, 32_768):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return str(port)
    raise AssertionError("no port is free")


# ---- the server


def serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns in the forks alone, with the request. Ends when nobody can ask any more."""
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        sys.exit(f"forkserver: {len(threads)} threads run after the imports, and would be missing in the forks")
    running: dict[int, int] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    while True:
        ready = select.select([requests, woken], [], [])[0]
        if woken in ready:
            woken.recv(4096)
            bury(running)
        if requests not in ready:
            continue
        data, files, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not data:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for mine in (requests, woken, wake):
                mine.close()
            for told in running.values():
                os.close(told)
            return {**json.loads(data), "files": files}
        for file in files[:2]:
            os.close(file)
        running[pid] = files[2]
        tell(running[pid], pid)


def bury(running: dict[int, int]) -> None:
    """Tell the exit status of each fork that has ended."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            told = running.pop(pid)
            tell(told, os.waitstatus_to_exitcode(status))
            os.close(told)


def tell(pipe: int, number: int) -> None:
    try:
        os.write(pipe, number.to_bytes(8, "little", signed=True))
    except BrokenPipeError:  # who asked has ended
        pass


def become(request: dict[str, Any]) -> None:
    """Be a process that Python was just started in."""
    silence = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate([silence, *request["files"]]):
        if number < 3:
            os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    random.seed()
    for name in ("__main__", "sitecustomize"):
        sys.modules.pop(name, None)
    sys.modules["__main__"] = ModuleType("__main__")
    sys.path[:1] = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path_importer_cache.clear()
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise


def execute(command: list[str]) -> None:
    """Run what stands behind the interpreter's name, as __main__."""
    main = sys.modules["__main__"].__dict__
    sys.orig_argv = list(command)
    if command[1] == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = command[2:]
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
        return
    if command[1] == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *command[3:]]
        exec(compile(command[2], "<string>", "exec"), main)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(command[1])))
    sys.argv = command[1:]
    main["__file__"] = command[1]
    exec(compile(Path(command[1]).read_bytes(), command[1], "exec"), main)


def status_of(error: BaseException) -> int:
    """What Python would exit with where nothing catches this. Shows it as Python does, without the frames of this file."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>", runpy.__file__):
        trace = trace.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error.with_traceback(trace), trace
    sys.excepthook(sys.last_type, sys.last_value, trace)
    return 1


def end(status: int) -> NoReturn:
    """As Python ends, but that nothing is taken apart: with PyTorch in a fork that would copy all of its memory."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as at the end of main
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


def main() -> None:
    gc.disable()  # an import makes a million objects that stay
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.enable()
    gc.collect()
    gc.freeze()  # else each fork's collector looks through it, and copies all of its memory
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request)
    status = 0
    try:
        execute(request["command"])
    except BaseException as error:
        status = status_of(error)
    end(status)


if __name__ == "__main__":
    main()
