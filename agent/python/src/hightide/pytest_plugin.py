"""The pytest plugin: tests with a budget of memory, and what each test took.

    @pytest.mark.hightide(peak="2GiB", leak="1MiB/step")   the engine records the test alone; beyond it, the test fails
    @pytest.mark.hightide(gpu="a10")                       the test runs on a GPU that is not there, and only there
    pytest --hightide-report                               each test is a span of one recording; a table at the end

The lines that hold the memory stand in the failure. Without a mark or the option nothing is imported, and nothing runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, Generator, List, NamedTuple, Optional

import pytest

if TYPE_CHECKING:
    from ._moments import Peak
    from ._runs import Report

OUTCOME = "hightide-outcome "  # begins the line in which an imagined test says how it ended
TEXT = 20_000  # characters of what an imagined test said that are passed on
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
    group.addoption("--hightide-outcome", action="store_true", help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """Announce the mark."""
    config.addinivalue_line(
        "markers",
        "hightide(peak='2GiB', allocated='1GiB', leak='1MiB/step', gpu='a10', memory='24GiB'): "
        "what the test may take; beyond it, it fails with the lines that hold it",
    )
    config.stash[_RUNS] = []


_RUNS = pytest.StashKey[List[List[str]]]()  # the id of each recording, and the worker that made it


def _imaginary() -> bool:
    from ._engine import imaginary

    return imaginary()


def _nothing() -> None:
    pass


def _asked(item: pytest.Item) -> Optional[Budget]:
    """The budget of a marked test; None: it has no mark.

    Raises:
        pytest.fail.Exception: the mark is wrong.
    """
    mark = item.get_closest_marker("hightide")
    try:
        return Budget.of(mark) if mark is not None else None
    except ValueError as error:
        pytest.fail(f"hightide mark of {item.nodeid}: {error}", pytrace=False)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, None]:
    """A test for a GPU that is not there does not run in this process, and neither do its fixtures."""
    mark = item.get_closest_marker("hightide")
    if mark is not None and mark.kwargs.get("gpu") and not _imaginary():
        for part, instead in (("setup", _nothing), ("runtest", lambda: _imagined(item)), ("teardown", _nothing)):
            setattr(item, part, instead)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Record the call of a test, where that is asked for, and hold it against its budget."""
    budget = _asked(item)
    here = _imaginary()
    if (budget.gpu and not here) if budget is not None else (here or not item.config.getoption("--hightide-report")):
        yield
        return
    recording = _Recording(item, budget)
    outcome = yield
    faults = recording.end()
    if outcome.excinfo is None and faults:
        outcome.force_exception(pytest.fail.Exception("\n".join(faults), pytrace=False))


class _Recording:
    """One test while it runs."""

    def __init__(self, item: pytest.Item, budget: Optional[Budget]) -> None:
        from . import _moments, _session, _spans

        self.item, self.budget = item, budget
        whole = bool(item.config.getoption("--hightide-report")) and not _imaginary()
        # What grows is told of a whole run; who imagines this one looks for it.
        self.alone = budget is not None and budget.leak is not None and not _imaginary()
        if self.alone and _session.recorded():
            _session.stop()
        self.mine = not _session.recorded()
        if self.mine and (whole or budget is not None):
            run = _session.init(item.nodeid if self.alone or not whole else _worker_name(item.config))
            if run is not None and whole:
                item.config.stash[_RUNS].append([run, _worker(item.config)])
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
        if self.alone:
            faults += _leaks(self.item, self.budget, _runs.report() if self.mine else None)
        elif self.mine and not self.item.config.getoption("--hightide-report"):
            _session.stop()
        return faults

    def _peaks(self) -> List[str]:
        assert self.budget is not None
        faults = []
        for what, held, limit in (
            ("host memory rose by", None if self.peak.rss is None else self.peak.rss - self.rss, self.budget.peak),
            ("on the device were allocated", self.peak.allocated, None if _imaginary() else self.budget.allocated),
        ):
            if limit is not None and held is not None and held > limit:
                faults.append(f"{what} {_size(held)}, beyond {_size(limit)}; held by")
                faults += [f"    {_size(n.bytes):>10}  {n.file}:{n.line} {n.function}" for n in self.peak.lines]
                if not self.peak.lines:
                    faults.append("    no line is known")
            elif limit is not None and held is None:
                _note(self.item, f"{what}: not known here, so the limit of {_size(limit)} was not looked at")
        return faults


def _leaks(item: pytest.Item, budget: Budget, found: Optional[Report]) -> List[str]:
    """How the growth of a recorded test is beyond its budget."""
    assert budget.leak is not None
    if found is None:
        _note(item, "leaks were not looked for: this process is recorded as one run with other tests")
        return []
    beyond = [f for f in found.findings if (f.bytes_per_step or 0) > budget.leak]
    faults = []
    for finding in beyond:
        faults.append(f"memory grows by {_size(finding.bytes_per_step or 0)} a step, beyond {_size(budget.leak)}")
        faults.append(f"    {finding}")
        if finding.advice:
            faults.append(f"    {finding.advice}")
    growth = found.data["headline"].get("growth_bytes_per_step")
    why = found.data["headline"].get("not_looked_for")
    if not beyond and why:
        _note(item, f"leaks were not looked for: {why}")
    elif not beyond and growth is not None and growth > budget.leak:
        faults.append(f"memory grows by {_size(growth)} a step, beyond {_size(budget.leak)}; no line is known")
    if not beyond and not why and not faults:
        _too_short(item, budget, found.data["headline"])
    if faults:
        faults.append(f"    hightide show {found.id}")
    return faults


def _too_short(item: pytest.Item, budget: Budget, headline: Dict[str, Any]) -> None:
    """Say where a leak beyond the budget could have stayed below what is told of so few steps."""
    assert budget.leak is not None
    steps = headline.get("steps") or 0
    looked = headline.get("looked_for") or "How much was looked for is not known."
    least = headline.get("growth_least_bytes")
    if headline.get("growth_bytes_per_step") is None or least is None:
        _note(item, f"the growth of the whole process is not known after {steps} steps. {looked}")
    elif steps * budget.leak < least:
        enough = -(-least // max(budget.leak, 1))
        _note(
            item,
            f"a leak of {_size(budget.leak)} a step may not be seen in {steps} steps: of the whole process "
            f"growth is told from {_size(least)} on, which takes {enough} steps. {looked}",
        )


def _imagined(item: pytest.Item) -> None:
    """Run the test on an imaginary GPU, and end it here as it ended there, or as one that does not fit."""
    import hightide

    budget = _asked(item)
    assert budget is not None
    from ._imagine import ask
    from ._runs import report

    try:
        found, out, err = ask(_command(item), budget.gpu, 1, budget.memory, {"PYTHONPATH": _path()}, ("--steps", "0"))
    except (hightide._engine.Failed, ValueError, RuntimeError, OSError) as error:
        problem = f"on an imaginary {budget.gpu}: {error}"
    else:
        problem = ""
    if problem:
        pytest.fail(problem, pytrace=False)
    said = (line[len(OUTCOME) :] for line in out.splitlines() if line.startswith(OUTCOME))
    ended: Dict[str, str] = json.loads(next(said, "{}"))
    gpu, verdict = found.get("gpu_name") or budget.gpu, found.get("verdict")
    if verdict == "oom":
        pytest.fail(f"does not fit on {gpu} (imagined)\n{_held(found)}", pytrace=False)
    allocated = found.get("peak_allocated_bytes")
    if budget.allocated is not None and allocated is not None and allocated > budget.allocated:
        beyond = f"on {gpu} were allocated {_size(allocated)} (imagined), beyond {_size(budget.allocated)}"
        pytest.fail(f"{beyond}\n{_held(found)}", pytrace=False)
    if ended.get("outcome") == "skipped":
        pytest.skip(ended["text"])
    if ended.get("outcome") != "passed":
        why = ended.get("text") or found.get("failure") or found.get("problem") or (err.strip() or out)[-TEXT:]
        pytest.fail(f"on an imaginary {gpu}: {why}", pytrace=False)
    if verdict == "unused":
        pytest.fail(f"on an imaginary {gpu}: the test uses no GPU", pytrace=False)
    if verdict == "conditional":
        values = ", ".join(f"{one['file']}:{one['line']} is {one['value']}" for one in found.get("undecided") or [])
        _note(item, f"it fits on an imaginary {gpu} if {values}: that was not computed")
    faults = _leaks(item, budget, report(found["run_id"])) if budget.leak is not None else []
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def _held(found: Dict[str, Any]) -> str:
    """Of a verdict of out of memory, what was asked for and what held the memory then."""
    lines = [f"    {one['text']}" for one in found.get("findings") or [] if one.get("kind") == "oom"][:1]
    held = (found.get("peak_lines") or [])[:8]
    lines += ["    held at the peak by"] if held else []
    lines += [f"    {_size(n['bytes']):>10}  {n['file']}:{n['line']} {n.get('function') or ''}" for n in held]
    return "\n".join([*lines, f"    hightide show {found['run_id']}"])


def _command(item: pytest.Item) -> List[str]:
    """What runs one test in a process of its own, by the settings of the project's file."""
    config = item.config
    # By its module, whether it is installed here or only named by -p.
    command = [sys.executable, "-m", "pytest", "-p", "no:hightide", "-p", "hightide.pytest_plugin"]
    command += ["-q", "-p", "no:cacheprovider", "--no-header", "--runxfail", "--hightide-outcome"]
    command += ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    command += ["--no-cov"] if config.pluginmanager.hasplugin("_cov") else []
    command += ["--rootdir", str(config.rootpath), "-c", str(config.inipath or os.devnull)]
    path, _, rest = item.nodeid.partition("::")
    return [*command, f"{config.rootpath / path}::{rest}"]


def _path() -> str:
    """PYTHONPATH with this package, which may be none of the interpreter's own."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return os.pathsep.join(places if here.startswith(sys.prefix + os.sep) or here in places else [*places, here])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how the one test of an imagined process ended: badly, if any part of it did."""
    text = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else report.longreprtext
    for title, content in report.sections if report.failed else []:
        text += f"\n--- {title} ---\n{content}"
    if _ended.get("outcome") in (None, "passed"):
        _ended.update(outcome=report.outcome, text=text[-TEXT:])


_ended: Dict[str, str] = {}


def _size(count: float) -> str:
    from ._picture import size

    return size(count)


def _note(item: pytest.Item, text: str) -> None:
    """Say at the end what of a budget was not looked at. No warning: those fail healthy tests under -W error."""
    item.add_report_section("call", NOTE, text)


NOTE = "hightide"


def _worker_name(config: pytest.Config) -> str:
    return f"pytest {_worker(config)}".strip()


def _worker(config: pytest.Config) -> str:
    """The name of this process among those of pytest-xdist; empty: it is none."""
    given: Dict[str, Any] = getattr(config, "workerinput", {})
    return str(given.get("workerid", ""))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the recording of this process, and let the process that started it know."""
    if session.config.getoption("--hightide-report") and not _imaginary():
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
    """Show what each test took, most first; of an imagined test, how it ended."""
    if config.getoption("--hightide-outcome"):
        terminalreporter.line(OUTCOME + json.dumps(_ended))
    _show_notes(terminalreporter)
    found = config.stash[_RUNS]
    if not config.getoption("--hightide-report") or not found:
        return
    from ._runs import report

    rows, reports = [], []
    for run, worker in dict.fromkeys(map(tuple, found)):
        one = report(run)
        reports.append(f"hightide report {one.id} --open{f'    # {worker}' if worker else ''}")
        rows += one.spans
    rows.sort(key=lambda row: -(row.get("rss_rise") or 0))
    terminalreporter.section("memory of tests (hightide)")
    terminalreporter.line(f"{'rise':>10} {'peak':>10} {'left':>10}  test")
    for row in rows[:40]:
        cells = [_size(row[name]) if name in row else "" for name in ("rss_rise", "rss_peak", "rss_net")]
        terminalreporter.line("{:>10} {:>10} {:>10}  {}".format(*cells, row["span"]))
    for line in reports:
        terminalreporter.line(line)


def _show_notes(terminalreporter: Any) -> None:
    notes = {
        f"{report.nodeid}: {text}": None
        for reports in terminalreporter.stats.values() for report in reports
        for title, text in getattr(report, "sections", ()) if title == f"Captured {NOTE} call"
    }  # fmt: skip
    if notes:
        terminalreporter.section("not looked at (hightide)")
        for note in notes:
            terminalreporter.line(note)
