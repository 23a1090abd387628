"""Type the commands that the pages show: in README.md and docs/, each that stands in a block of `sh` or `console`. Those
of docs/tutorials are typed by scripts/site_test.py, which also looks at what they print.

    python3 scripts/pages_test.py                  (needs bin/hightide, PyTorch and scripts/setup team)
    python3 scripts/pages_test.py docs/plan.md     some pages

A command is run in a folder that has what the pages name: programs, snapshots, a model, runs, a team's server. So is a new
one, which has to end with 0. What cannot be run here, or is run by another test, stands below with the reason; the built
binary then reads its flags. It is a fault where no page has a command of these any more.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import features
import inturn
import teamserver
from torchversions import NEWEST, ROOT, python

PAGES = ("README.md", "docs/*.md", "docs/formats/*.md", "docs/decisions/*.md")
BLOCK = re.compile(r"^ *```([a-z]*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SECONDS = 600  # that one command may take
HERE = "http://127.0.0.1:7333"  # where pages say that a server answers

# By how a command begins, why it is not run here.
NOT_RUN = {
    "make": "builds, tests or measures all of the project",
    "scripts/new-pytorch": "installs a PyTorch",
    "python bench/": "measures for minutes or hours",
    "$PY bench/": "measures for minutes or hours",
    "HIGHTIDE_ORACLE_PROGRAMS": "takes hours; TestOracle has the same in a smaller size",
    "pip install": "installs into an environment: wheel_test.py does it, in one of its own",
    "docker": "needs Docker: deploy_test.py starts a server as compose.yaml and the Containerfile say",
    "kubectl": "needs a cluster",
    "helm": "needs a cluster: deploy_test.py reads the chart with Helm, and starts what it says",
    "claude": "a program of another vendor",
    "gh ": "asks GitHub",
    "jq '.state": "asks GitLab",
    "edit": "opens an editor",
    "sudo -u postgres": "makes a user and a database in the machine's own PostgreSQL; here they are the test's",
    "hightide fit --device cuda": "needs a GPU",
}
# By how a command begins, the test that runs such a one, as features.py names tests: it takes long, or an environment of
# its own.
ELSEWHERE = {
    "PYTHON=/path/to/python scripts/gpu": "py:test_on_an_imaginary_gpu",
    "go test ./internal/allocator -run Oracle": "go:TestOracle",
    "HIGHTIDE_STORE=postgres://…": "go:TestBackup",
    "HIGHTIDE_KEY=… hightide watch": "go:TestFleet",
    "hightide bench examples/matrix.yaml": "script:bench",
    "hightide fit --gpu": "script:fit",
    "hightide imagine --gpu a10 --load": "py:test_requests_are_answered",
    "hightide imagine --gpu a10 -- python -m sglang": "py:test_two_gpus_answer_requests",
    "hightide imagine --gpu a10 -- transformers serve": "py:test_transformers_serve",
    "hightide imagine --gpu a100-80g -- python my_script": "py:test_script_ends_once_it_has_generated",
    "hightide imagine --gpu all --users": "py:test_cheapest_gpu_for_so_many_users",
    "hightide imagine --gpu h100-sxm --gpus": "py:test_played_ranks_agree_with_started_ones",
    "hightide imagine --gpu h100-sxm --world-size": "script:imagine",
    "hightide imagine --gpu h100-sxm -- vllm": "py:test_server_ends_once_it_answers",
    "hightide imagine --gpu rtx4090 --plan": "script:tune-goals",
    "hightide plan ./Llama-3.1-8B --users 20 --imagine": "py:test_plan_has_the_engines_own_tokens",
    "hightide plan config.json --for lora": "py:test_a_training_takes_what_the_users_own_script_takes",
    "hightide run --plan": "script:tune-host",
    "hightide top last": "go:TestTop",  # on a terminal
    "hightide top snapshot.pickle": "go:TestTopOfASnapshot",
    "hightide tune --gpu a10 --host-memory": "script:tune-host",
    "hightide tune --gpu a10 --users": "py:test_settings_for_so_many_users",
    "hightide tune --gpu rtx4090": "script:tune",
}
GOES_ON = ("hightide ui", "hightide serve")  # until Ctrl-C, and ends with 0 then
OF_A_MEMBER = re.compile(
    r"^hightide (login|allow|run .*--push|(trend|check) .*--server)|^curl|^cat "
)  # in docs/team.md
TEAM_FILE = """
address = "127.0.0.1:0"
names = ["runs.example.org"]
admins = ["eve"]

[projects.ranker]
members = ["anna", "carol"]
"""
TRAIN = """
import argparse, os, time

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
options = parser.parse_args()
if os.environ.get("ON_A_GPU"):
    import torch

    model = torch.nn.Linear(512, 512, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(options.batch_size, 512, device="cuda")).sum().backward()
        optimizer.step()
held = [bytearray(8 << 20) for _ in range(options.batch_size)]
time.sleep(0.3)
"""
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
MATRIX = """
axes: {size: [10, 20]}
command: [python, -c, "held = bytearray({size} << 20)"]
repeats: 2
"""


def commands(page: Path) -> Iterator[str]:
    """What a page shows to be typed. A line that goes on in the next one is one command."""
    for language, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "sh":
            lines = text.replace("\\\n", " ").splitlines()
        elif language == "console":
            lines = [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("$ ")]
        else:
            typed = None if language else re.search(r"^(\$ .*|hightide [a-z]+ .*)$", text, re.MULTILINE)
            assert not typed, (
                f"{page.name}: what is typed stands in a block of sh or console, not in one of neither: {typed}"
            )
            continue
        yield from (line.strip() for line in lines if line.strip())


def prepared(folder: Path) -> None:
    """What the pages' commands name."""
    real = ROOT / "testdata" / "real"
    small, large = real / "h100-lm-ctx256-forward-bf16.pickle", real / "h100-lm-ctx128-train-step.pickle"
    for name, file in (("snapshot", small), ("before", small), ("after", large), ("oom", large)):
        shutil.copy(file, folder / f"{name}.pickle")
    for rank in (0, 1):
        (folder / f"rank{rank}.pickle.gz").write_bytes(gzip.compress(small.read_bytes(), 1))
    for name in ("snapshots", "elsewhere", "Llama-3.1-8B", "Llama-3.1-70B"):
        (folder / name).mkdir()
    for model in ("Llama-3.1-8B", "Llama-3.1-70B", "."):
        (folder / model / "config.json").write_text(json.dumps(LLAMA))
    shutil.copy(small, folder / "snapshots")
    shutil.copy(ROOT / "testdata" / "recording" / "v1-every-kind.hightide", folder / "elsewhere" / "run.hightide")
    shutil.copy(ROOT / "internal" / "modelfile" / "testdata" / "little.gguf", folder / "model-Q4_K_M.gguf")
    (folder / "memory.yaml").write_text("peak: 60GiB\n")
    (folder / "matrix.yaml").write_text(MATRIX)
    (folder / "infer.py").write_text(TRAIN)
    (folder / "password.txt").write_text("correct horse\n")
    for name in ("docs", "packaging"):
        shutil.copytree(ROOT / name, folder / name)


class Shell:
    """Where a page's commands are typed. What one exports stands for those behind it; what goes on ends with the page."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env, self.typed = folder, env, ""
        # what is the reader's own, and what it is here
        self.stands = {"/etc/prometheus/hightide.token": "hightide.token", "explain FILE": "explain snapshot.pickle"}
        self.running: list[subprocess.Popen[str]] = []

    def begins(self) -> None:
        """Make a repository of two commits, each run twice, and what the commands name."""
        prepared(self.folder)
        self.does("git init -q . && git config user.name a && git config user.email a@b")
        for number, name in enumerate(("baseline", "bigger-batch")):
            (self.folder / "train.py").write_text(f"{TRAIN}\n# {number}\n")
            self.does(f"git add train.py && git commit -qm {name}")
            for _ in range(2):
                self.does(f"hightide run -q --name {name} --tag project=ranker -- python train.py")
        self.does("git update-ref refs/remotes/origin/main HEAD~1; hightide run -q --name demo -- python train.py")

    def types(self, command: str) -> None:
        for what, here in self.stands.items():
            command = command.replace(what, here)
        if command.startswith("hightide attach"):
            self.attaches(command)
        elif command.startswith(GOES_ON):
            self.starts(command)
        else:
            self.does(command)

    def does(self, command: str) -> str:
        after = self.folder / ".env-after"
        own = {"ON_A_GPU": "1"} if command.startswith("hightide imagine") else {}
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{command}\ncode=$?; env -0 >{after}; exit $code"], cwd=self.folder,
            env={**self.env, **own}, text=True, input=self.typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{command} ends with {done.returncode}:\n{done.stdout}"
        if command.startswith("export "):
            self.env = dict(line.split("=", 1) for line in after.read_text().split("\0") if line)
        return done.stdout

    def starts(self, command: str) -> None:
        """What goes on is left to it, once it has said where it is."""
        command = command.replace("hightide ui", "hightide ui --addr 127.0.0.1:0", 1).removesuffix("&")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.env, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.running.append(process)
        assert process.stdout
        said = ""
        while not (address := re.search(r"https?://127\.0\.0\.1:\d+", said)):
            line = process.stdout.readline()
            assert line, f"{command} ended with {process.wait()}: {said}"
            said += line
        self.stands.setdefault(HERE, address[0])

    def attaches(self, command: str) -> None:
        """To a program that goes on until the run is listed."""
        with self.waiting(sys.executable, "-c", "print('runs', flush=True); input()") as program:
            assert program.stdout and program.stdout.readline() == "runs\n"
            runs = len(self.listed())
            with ThreadPoolExecutor() as pool:
                attached = pool.submit(self.does, command.replace("4711", str(program.pid)))
                while len(self.listed()) == runs and not attached.done():
                    time.sleep(0.05)
                program.communicate("\n")
                attached.result()

    def waiting(self, *words: str) -> subprocess.Popen[str]:
        """A program that ends once something is typed."""
        return subprocess.Popen(
            words, cwd=self.folder, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def listed(self) -> list[Any]:
        listed = subprocess.run(["hightide", "ls", "--json"], env=self.env, check=True, stdout=subprocess.PIPE)
        runs: list[Any] = json.loads(listed.stdout)["runs"]
        return runs

    def ends(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, f"{process.args!r} ends with {process.returncode}: {said}"


class Team(Shell):
    """The same with a team's database, and a server. Who sends runs, or asks the server, has a key and no password."""

    def __init__(self, folder: Path, env: dict[str, str], kept: teamserver.Database) -> None:
        objects = f"file://{folder}/objects"
        self.store = {"HIGHTIDE_STORE": kept.address, "PGPASSWORD": teamserver.PASSWORD, "HIGHTIDE_OBJECTS": objects}
        super().__init__(folder, env | self.store)
        self.begins()
        (folder / "team.toml").write_text(TEAM_FILE)
        (folder / "memory.yaml").write_text("host: 4GiB\n")
        leaks = ROOT / "examples" / "line_leak.py"
        self.does(f"hightide run -q --name bigger-batch --tag project=ranker -- python {leaks}")
        self.does("hightide share bigger-batch; hightide share bigger-batch")
        self.starts("hightide serve --config team.toml")
        server, self.key = self.stands[HERE], self.does("hightide key eve --may push").split()[-1]
        (folder / ".hightide.toml").write_text(f'server = "{server}"\nproject = "ranker"\n')
        (folder / "key.txt").write_text(self.key)
        self.stands |= {
            "https://runs.example.org:7333": server, "postgres://hightide@db.example.org/hightide": kept.address,
            "PGPASSWORD=…": f"PGPASSWORD={shlex.quote(teamserver.PASSWORD)}", "s3://our-runs": objects,
        }  # fmt: skip

    def types(self, command: str) -> None:
        if OF_A_MEMBER.search(command):
            self.typed, own = self.key, {"HIGHTIDE_KEY": self.key, "KEY": self.key, "SHA": "HEAD"}
            self.env = {key: value for key, value in self.env.items() if key not in self.store} | own
        else:
            self.typed, self.env = "yes\n", {**self.env, **self.store}
        super().types(command)


def machine(folder: Path) -> dict[str, str]:
    """The environment of who types: a home of its own, and the built hightide before all others."""
    left = {key: value for key, value in os.environ.items() if not key.startswith(("HIGHTIDE", "PYTHON", "XDG_", "PG"))}
    path = f"{ROOT / 'bin'}:{python(NEWEST).parent}:{os.environ['PATH']}"
    home = {"HOME": str(folder / "home"), "HIGHTIDE_DATA": str(folder / "data"), "PATH": path}
    return {**left, **home, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def is_there(command: str, env: dict[str, str]) -> None:
    """Of what is not run: the target, the file; and the built binary reads the flags."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"there is no {command}"
    for word in words:
        assert not word.startswith(("bench/", "scripts/")) or (ROOT / word).exists(), f"{command}: there is no {word}"
    if "hightide" in words and words[0] not in ("docker", "claude", "sudo"):
        words = words[words.index("hightide") :]
        at = words.index("--") if "--" in words else len(words)
        done = subprocess.run([*words[:at], "--help"], env=env, capture_output=True, text=True)
        assert done.returncode == 0 and "Usage:" in done.stdout, f"{command}: {done.stderr}"


def walk(page: Path, folder: Path, seen: set[str], kept: teamserver.Database) -> None:
    """Type the commands of a page one after the other; those that other pages have too, once."""
    env = machine(folder)
    with ExitStack() as stack:
        shell = Team(folder / "team", env, kept) if page.name == "team.md" else Shell(folder, env)
        stack.callback(shell.ends)
        if page.name == "metrics.md":  # what is asked for is there while a run is recorded
            recorded = stack.enter_context(shell.waiting("hightide", "run", "-q", "--", "head", "-n", "1"))
            assert recorded.stdin
            stack.callback(recorded.stdin.close)
        for command in commands(page):
            begin = re.sub(r"\s+# .*", "", command)
            if any(begin.startswith(start) for start in NOT_RUN | ELSEWHERE):
                is_there(command, env)
            elif page.name == "team.md" or begin not in seen:
                shell.types(command)
            seen.add(begin)


def tables(seen: set[str]) -> None:
    """Each line of the tables is of a command of some page, and each test that is named is there."""
    unused = [start for start in NOT_RUN | ELSEWHERE if not any(command.startswith(start) for command in seen)]
    assert not unused, f"no page has {unused}"
    gone = [test for test in ELSEWHERE.values() if not features.exists(test)]
    assert not gone, f"there is no test {gone}"


def main() -> int:
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern)) if list(commands(page))]
    names = {page.relative_to(ROOT).as_posix(): page for page in pages}
    only, seen = sys.argv[1:], set[str]()
    with teamserver.database() as kept, tempfile.TemporaryDirectory(prefix="hightide-pages-") as made:
        folder = Path(made)
        (folder / "team").mkdir()
        Shell(folder, machine(folder)).begins()
        tests = [
            (name, partial(walk, page, folder, seen, kept)) for name, page in names.items() if not only or name in only
        ]
        return inturn.run(tests if only else [*tests, ("tables", partial(tables, seen))])


if __name__ == "__main__":
    sys.exit(main())
