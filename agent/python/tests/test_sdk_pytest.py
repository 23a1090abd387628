"""The pytest plugin, with the engine and with pytest's workers."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hightide._picture import size
from test_sdk_engine import environment
from test_sdk_notebook import PYTHON

TESTS = """
import time, warnings
import pytest, hightide

@pytest.mark.hightide(peak="64MiB")
def test_takes_too_much():
    held = b"x" * (96 << 20)            # line 7
    time.sleep(0.3)

@pytest.mark.hightide(peak="64MiB")
def test_takes_little():
    held = b"x" * (8 << 20)
    time.sleep(0.1)

@pytest.mark.hightide(leak="100KiB/step")
def test_leaks():
    kept = []
    for _ in range(120):
        kept.append(b"x" * (1 << 20))   # line 19
        time.sleep(0.02)
        hightide.step()

@pytest.mark.hightide(leak="100KiB/step")
def test_leaks_nothing():
    for _ in range(120):
        held = b"x" * (1 << 20)
        time.sleep(0.02)
        hightide.step()

@pytest.mark.hightide(peak="64 parsecs")
def test_is_marked_wrongly():
    pass

@pytest.mark.hightide(peak="64MiB")
def test_fails_for_itself():
    held = b"x" * (96 << 20)
    assert not held

def test_plain():
    assert hightide.stop() is None
"""


@pytest.fixture
def tests(tmp_path: Path) -> Any:
    """tests(text, options…) runs pytest on a file of tests."""
    if not PYTHON.exists():
        pytest.skip("no notebook environment: scripts/setup notebook makes one")

    def run(text: str, *options: str) -> str:
        (tmp_path / "test_mine.py").write_text(textwrap.dedent(text))
        command = [
            str(PYTHON),
            "-m",
            "pytest",
            "-p",
            "hightide.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-rA",
            *options,
        ]
        done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True,
                              timeout=300, check=False)  # fmt: skip
        return done.stdout + done.stderr

    return run


def test_without_warnings(tests: Any) -> None:
    """Nothing of ours warns in healthy tests, and what was not looked at is said at the end."""
    says = tests(
        """
        import subprocess, sys, threading, time
        import pytest, torch, hightide
        @pytest.mark.hightide(peak="4GiB")
        def test_autocast():
            model = torch.nn.Linear(10, 10)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with torch.autocast("cpu"):
                for _ in range(5):
                    model(torch.ones(2, 10)).sum().backward()
                    optimizer.step()
        @pytest.mark.hightide(leak="10MiB/step")
        def test_short():
            thread = threading.Thread(target=time.sleep, args=(0.2,))
            thread.start()
            subprocess.run([sys.executable, "-c", "pass"])
            for _ in range(5):
                hightide.step()
            thread.join()
        """,
        "-W", "error",
    )  # fmt: skip
    assert "2 passed" in says, says
    _, _, notes = says.partition("not looked at (hightide)")
    assert re.search(r"^test_mine.py::test_short: .*(not known|not looked for)", notes, re.MULTILINE), says


@pytest.mark.parametrize(
    "count, text",
    [(1000, "1000 B"), (1 << 20, "1 MiB"), (1_048_000, "1023 KiB"), (1_000_000, "977 KiB"), (5000 << 30, "5000 GiB")],
)
def test_sizes_as_people_read_them(count: int, text: str) -> None:
    assert size(count) == text


def test_budgets(tests: Any) -> None:
    says = tests(TESTS)
    assert "4 failed, 3 passed" in says, says
    outcomes = dict(re.findall(r"^(PASSED|FAILED) test_mine.py::(\w+)", says, re.MULTILINE)[i][::-1] for i in range(7))
    assert {name for name, how in outcomes.items() if how == "FAILED"} == {
        "test_takes_too_much", "test_leaks", "test_is_marked_wrongly", "test_fails_for_itself"
    }, says  # fmt: skip
    assert re.search(
        r"host memory rose by 9[5-9](\.\d+)? MiB, beyond 64 MiB; held by\n +96 MiB  \S+test_mine.py:7 ", says
    )
    assert (
        re.search(r"memory grows by (1(\.\d+)? MiB|9\d\d(\.\d)? KiB|10\d\d KiB) a step, beyond 100 KiB", says)
        and "test_mine.py:1" in says
    )
    # 120 steps at 100 KiB are 11.7 MiB, less than what is told of a process: the test passed, and that says little
    assert re.search(r"a leak of 100 KiB a step may not be seen in 120 steps: .*from \d+ MiB on, which takes \d+ "
                     r"steps. Looked for steady growth: 4.00 MiB or more kept by lines", says), says  # fmt: skip
    assert "'64 parsecs' is not a size: write it as '2GiB'" in says
    assert "AssertionError: assert not" in says and not re.search(r"test_fails_for_itself - .*host memory", says)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_report_of_all(tests: Any, workers: str) -> None:
    says = tests(
        """
        import time
        def test_large():
            held = b"x" * (80 << 20)
            time.sleep(0.3)
        def test_small():
            time.sleep(0.01)
        """,
        "--hightide-report", *(["-n", workers] if workers != "0" else ["-p", "no:xdist"]),  # it may not be installed
    )  # fmt: skip
    assert "2 passed" in says, says
    _, _, table = says.partition("memory of tests (hightide)")
    assert re.search(r"^ +(80|8[0-3]\.\d) MiB .* test_mine.py::test_large$", table, re.MULTILINE), says
    assert "test_mine.py::test_small" in table
    reports = re.findall(r"^hightide report \w+ --open(?:    # (gw\d))?$", table, re.MULTILINE)
    assert sorted(reports) in {"0": [[""]], "2": [["gw0"], ["gw1"], ["gw0", "gw1"]]}[workers], table


def test_on_a_gpu_that_is_not_there(tests: Any) -> None:
    """The test and its fixtures run there alone, to their end, and end here as they ended there."""
    says = tests(
        """
        import pytest, torch
        @pytest.fixture
        def model():
            return torch.nn.Linear(1000, 1000).cuda()
        def train(model, batch, steps):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(steps):
                model(torch.ones(batch, 1000, device="cuda")).sum().backward()      # line 9
                optimizer.step()
            return step
        @pytest.mark.hightide(gpu="a10", memory="2GiB")
        def test_large(model):
            train(model, 8 << 20, 1)
        @pytest.mark.hightide(gpu="a10", allocated="64MiB", peak="8GiB")
        def test_small(model):
            assert train(model, 8, 40) == 39
        @pytest.mark.hightide(gpu="a10", allocated="1MiB")
        def test_more_than_allowed(model):
            pass
        @pytest.mark.hightide(gpu="a10")
        def test_wrong():
            print("as it said")
            assert torch.ones(2).cuda().shape[0] == 3
        @pytest.mark.hightide(gpu="a10")
        def test_skipped():
            pytest.skip("for a reason of its own")
        @pytest.mark.xfail(strict=True, reason="not yet")
        @pytest.mark.hightide(gpu="a10")
        def test_expected():
            assert torch.ones(2).cuda().shape[0] == 3
        @pytest.mark.hightide(gpu="a10")
        def test_of_the_host():
            torch.ones(2)
        """,
        "-W", "error", "-k", "not test_no_such",
    )  # fmt: skip
    assert "4 failed, 1 passed, 1 skipped, 1 xfailed" in says, says
    assert re.search(r"does not fit on NVIDIA A10 \(imagined\)\n +Out of memory: .* at test_mine.py:9", says), says
    assert "on NVIDIA A10 were allocated 3.82 MiB (imagined), beyond 1 MiB" in says, says
    assert re.search(r"held at the peak by\n +3.82 MiB  \S+test_mine.py:5 model", says.partition("beyond 1 MiB")[2]), (
        says
    )
    assert "--- Captured stdout call ---\nas it said" in says and "assert 2 == 3" in says, says
    assert "Skipped: for a reason of its own" in says, says
    assert "on an imaginary NVIDIA A10: the test uses no GPU" in says, says
