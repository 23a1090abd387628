"""The pytest plugin: tests with a budget of memory, and what each test took.

    @pytest.mark.hightide(peak="2GiB", leak="1MiB/step")   the engine records the test alone; beyond it, the test fails
    @pytest.mark.hightide(gpu="a10")                       the test runs once more, on a GPU that is not there
    pytest --hightide-report                               each test is a span of one recording; a table at the end

The lines that hold the memory stand in the failure. Without a mark or the option nothing is imported, and nothing runs.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, Generator, List, NamedTuple, Optional

import pytest

if TYPE_CHECKING:
    from ._moments import Peak
    from ._runs import Report

INSIDE = "HIGHTIDE_PYTEST_IMAGINED"  # set where a test runs on an imaginary GPU already
UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*(?:/\s*(step))?\s*$")


class Budget(NamedTuple):
    """What a test may take."""

    peak: Optional[int]
    """bytes of host memory beyond what was resident as the test began"""
    allocated: Optional[int]
    """bytes of the framework's allocator on the device"""
    leak: Optional[int]
    """bytes a step"""
    gpu: str
    """a name as in `hightide gpus`, or empty"""
    memory: str
    """another size of its memory"""

    @classmethod
    def of(cls, mark: Any) -> Budget:
        """Read a mark. Raises ValueError."""
        given = dict(mark.kwargs)
        if mark.args:
            raise ValueError('give it by name, as @pytest.mark.hightide(peak="2GiB")')
        budget = cls(
            _bytes(given.pop("peak", None)), _bytes(given.pop("allocated", None)),
            _bytes(given.pop("leak", None), "step"), str(given.pop("gpu", "")), str(given.pop("memory", "")),
        )  # fmt: skip
        if given:
            raise ValueError(f"there is no {', '.join(given)}; there are peak, allocated, leak, gpu and memory")
        return budget


def _bytes(text: Any, per: str = "") -> Optional[int]:
    if text is None or isinstance(text, int):
        return text
    found = _SIZE.match(str(text))
    unit = found.group(2).lower() if found else ""
    if found is None or unit not in UNITS or not unit or (found.group(3) or "") != per:
        such = "1MiB/step" if per else "2GiB"
        raise ValueError(f"{text!r} is not a size: write it as {such!r}")
    return int(float(found.group(1)) * UNITS[unit])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --hightide-report."""
    group = parser.getgroup("hightide", "memory, by hightide")
    group.addoption("--hightide-report", action="store_true", help="record all tests, and show what each took")


def pytest_configure(config: pytest.Config) -> None:
    """Announce the mark."""
    config.addinivalue_line(
        "markers",
        "hightide(peak='2GiB', allocated='1GiB', leak='1MiB/step', gpu='a10', memory='24GiB'): "
        "what the test may take; beyond it, it fails with the lines that hold it",
    )
    config.stash[_RUNS] = []


_RUNS = pytest.StashKey[List[str]]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Record the call of a test, where that is asked for, and hold it against its budget."""
    mark = item.get_closest_marker("hightide")
    everything = item.config.getoption("--hightide-report")
    if os.environ.get(INSIDE) or (mark is None and not everything):
        yield
        return
    try:
        budget = Budget.of(mark) if mark is not None else None
    except ValueError as error:
        pytest.fail(f"hightide mark of {item.nodeid}: {error}", pytrace=False)
    recording = _Recording(item, budget)
    outcome = yield
    faults = recording.end()
    if outcome.excinfo is None and budget is not None and budget.gpu:
        faults += _imagined(item, budget)
    if outcome.excinfo is None and faults:
        outcome.force_exception(pytest.fail.Exception("\n".join(faults), pytrace=False))


class _Recording:
    """One test while it runs."""

    def __init__(self, item: pytest.Item, budget: Optional[Budget]) -> None:
        from . import _moments, _session, _spans

        self.item, self.budget = item, budget
        whole = bool(item.config.getoption("--hightide-report"))
        self.alone = budget is not None and budget.leak is not None  # what grows is told of a whole run
        if self.alone and _session.recorded():
            _session.stop()
        self.mine = not _session.recorded()
        if self.mine and (whole or budget is not None):
            run = _session.init(item.nodeid if self.alone or not whole else _worker_name(item.config))
            if run is not None and whole:
                item.config.stash[_RUNS].append(run)
        self.rss = _moments._status().get("VmRSS", 0)
        self.span = _spans.span(item.nodeid) if budget is None else None
        self.peak: Peak = _moments.Peak(item.nodeid)
        (self.span or self.peak).__enter__()

    def end(self) -> List[str]:
        """What is beyond the budget."""
        from . import _runs, _session

        (self.span or self.peak).__exit__()
        if self.budget is None:
            return []
        faults = self._peaks()
        if self.alone and self.mine:
            _session.stop()
        if self.budget.leak is not None:
            faults += self._leaks(_runs.report() if self.alone and self.mine else None)
        elif self.mine and not self.item.config.getoption("--hightide-report"):
            _session.stop()
        return faults

    def _peaks(self) -> List[str]:
        assert self.budget is not None
        faults = []
        for what, held, limit in (
            ("host memory rose by", None if self.peak.rss is None else self.peak.rss - self.rss, self.budget.peak),
            ("on the device were allocated", self.peak.allocated, self.budget.allocated),
        ):
            if limit is not None and held is not None and held > limit:
                faults.append(f"{what} {_size(held)}, beyond {_size(limit)}; held by")
                faults += [f"    {_size(n.bytes):>10}  {n.file}:{n.line} {n.function}" for n in self.peak.lines or []]
                if not self.peak.lines:
                    faults.append("    no line is known")
            elif limit is not None and held is None:
                _warn(self.item, f"{what}: not known here, so the limit of {_size(limit)} was not looked at")
        return faults

    def _leaks(self, found: Optional[Report]) -> List[str]:
        assert self.budget is not None and self.budget.leak is not None
        if found is None:
            _warn(self.item, "leaks were not looked for: this process is recorded as one run with other tests")
            return []
        beyond = [f for f in found.findings if (f.bytes_per_step or 0) > self.budget.leak]
        faults = []
        for finding in beyond:
            faults.append(
                f"memory grows by {_size(finding.bytes_per_step or 0)} a step, beyond {_size(self.budget.leak)}"
            )
            faults.append(f"    {finding}")
            if finding.advice:
                faults.append(f"    {finding.advice}")
        growth = found.data["headline"].get("growth_bytes_per_step")
        why = found.data["headline"].get("not_looked_for")
        if not beyond and why:
            _warn(self.item, f"leaks were not looked for: {why}")
        elif not beyond and growth is not None and growth > self.budget.leak:
            faults.append(f"memory grows by {_size(growth)} a step, beyond {_size(self.budget.leak)}; no line is known")
        if not beyond and not why and not faults:
            self._too_short(found.data["headline"])
        if faults:
            faults.append(f"    hightide show {found.id}")
        return faults

    def _too_short(self, headline: Dict[str, Any]) -> None:
        """Warn where a leak beyond the budget could have stayed below what is told of so few steps."""
        assert self.budget is not None and self.budget.leak is not None
        steps = headline.get("steps") or 0
        looked = headline.get("looked_for") or "How much was looked for is not known."
        least = headline.get("growth_least_bytes")
        if headline.get("growth_bytes_per_step") is None or least is None:
            _warn(self.item, f"the growth of the whole process is not known after {steps} steps. {looked}")
        elif steps * self.budget.leak < least:
            enough = -(-least // max(self.budget.leak, 1))
            _warn(
                self.item,
                f"a leak of {_size(self.budget.leak)} a step may not be seen in {steps} steps: of the whole process "
                f"growth is told from {_size(least)} on, which takes {enough} steps. {looked}",
            )


def _imagined(item: pytest.Item, budget: Budget) -> List[str]:
    """Run the test once more on an imaginary GPU: why it does not fit there."""
    import hightide

    from ._imagine import run_imagined

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    command += ["--rootdir", str(item.config.rootpath), "-c", str(item.config.inipath or os.devnull)]
    path, _, rest = item.nodeid.partition("::")
    command.append(f"{item.config.rootpath / path}::{rest}")
    try:
        found = run_imagined(command, budget.gpu, 1, budget.memory, {INSIDE: "1"})
    except (hightide._engine.Failed, ValueError, RuntimeError, OSError) as error:
        return [f"on an imaginary {budget.gpu}: {error}"]
    if found.verdict == "unused":
        return [f"on an imaginary {budget.gpu}: the test uses no GPU"]
    if found.verdict == "conditional":
        _warn(item, f"it fits on an imaginary {budget.gpu} if {', '.join(found.conditions)}: that was not computed")
    if found or found.verdict == "conditional":
        return []
    faults = [f"does not fit on {found.data.get('gpu_name') or budget.gpu} (imagined); held at the peak by"]
    faults += [f"    {_size(n.bytes):>10}  {n.file}:{n.line} {n.function}" for n in found.lines[:8]]
    return [*faults, f"    hightide show {found.run}"]


def _size(count: float) -> str:
    from ._picture import size

    return size(count)


def _warn(item: pytest.Item, text: str) -> None:
    item.warn(pytest.PytestWarning(f"hightide: {text}"))


def _worker_name(config: pytest.Config) -> str:
    worker: Optional[Dict[str, Any]] = getattr(config, "workerinput", None)
    return f"pytest {worker['workerid']}" if worker else "pytest"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the recording of this process, and let the process that started it know."""
    if session.config.getoption("--hightide-report") and not os.environ.get(INSIDE):
        from . import _session

        if session.config.stash[_RUNS] and _session.recorded():
            _session.stop()
        output: Optional[Dict[str, Any]] = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["hightide"] = session.config.stash[_RUNS]


@pytest.hookimpl(optionalhook=True)  # without xdist pytest knows no such hook, and would refuse to run
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Called by xdist when a worker has ended."""
    node.config.stash[_RUNS] += getattr(node, "workeroutput", {}).get("hightide", [])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show what each test took, most first."""
    found = config.stash[_RUNS]
    if not config.getoption("--hightide-report") or not found:
        return
    from ._runs import report

    rows, reports = [], []
    for run in dict.fromkeys(found):
        one = report(run)
        reports.append(one)
        rows += one.spans
    rows.sort(key=lambda row: -(row.get("rss_rise") or 0))
    terminalreporter.section("memory of tests (hightide)")
    terminalreporter.line(f"{'rise':>10} {'peak':>10} {'left':>10}  test")
    for row in rows[:40]:
        cells = [_size(row[name]) if name in row else "" for name in ("rss_rise", "rss_peak", "rss_net")]
        terminalreporter.line("{:>10} {:>10} {:>10}  {}".format(*cells, row["span"]))
    for one in reports:
        terminalreporter.line(f"hightide report {one.id} --open")
