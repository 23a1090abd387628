"""The core of all callbacks, without any framework: what begins and ends runs, and what goes wrong."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest

import hightide
from test_sdk_engine import recorded  # noqa: F401


def test_runs_begin_and_end_with_trainings(recorded: Any) -> None:  # noqa: F811
    done = recorded(
        """
        import os, time
        import hightide
        from hightide._trainer import Trainer, harmless

        class Callback:
            def __init__(self, **given):
                self.trainer = Trainer(**given)
            @harmless
            def fails(self):
                raise KeyError("ours")

        callback = Callback(tags={"model": "bert", "lr": 0.5, "layers": [1]}, alerts="rss > 5")
        trainer = callback.trainer
        trainer.leave("epoch")
        trainer.enter("outside")                # of no training: nothing begins
        assert not trainer.running and hightide.runs() == []
        trainer.begin("second rank", {}, first=False)
        assert not trainer.running and hightide.runs() == []
        trainer.begin("dies", {"model": "mine"})
        trainer.enter("epoch")
        trainer.enter("validation")
        assert callback.fails() is None and callback.fails() is None
        pid = os.fork()
        if pid == 0:                            # a worker: the training is its parent's
            trainer.leave("epoch")
            trainer.end()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        trainer.begin("follows", {})            # the one before never ended
        for step in range(1, 6):
            time.sleep(0.01)
            trainer.step(step)
            trainer.step(step)                  # as with gradients of several batches
        hightide.step()                         # the program's own
        trainer.step(6)
        hightide.stop()                         # by the program, before its trainer
        trainer.end()
        trainer.end()
        trainer.alone("evaluation", "evaluated", {})
        trainer.leave("evaluation")
        evaluated, follows, dies = hightide.runs()
        assert [run.name for run in (dies, follows, evaluated)] == ["dies", "follows", "evaluated"]
        assert dies.tags == {"model": "bert", "lr": "0.5"}, dies.tags
        assert {row["span"]: row["count"] for row in dies.report().spans} == {"epoch": 1, "validation": 1}
        assert follows.steps == 6, follows
        """,
        under=[],
    )
    assert done.code == 0, done.err
    lines = [line.partition(" (hightide report ")[0] for line in done.err.splitlines()]
    alert = (
        "hightide: alert not watched: 'rss > 5' is not a limit that hightide can watch; write it as 'rss > 2GiB' or "
        "'rss > 50MiB/step'"
    )
    fails = "hightide: Callback.fails failed, the training goes on: KeyError: 'ours'"
    assert [line for line in lines if not line.startswith("hightide: Peak ")] == [alert, fails, alert, alert]
    assert len(lines) == 7, lines


class Jax:
    """JAX, and its bridge to devices, which answer as documented for a GPU."""

    started = False
    stats = {"bytes_in_use": 7, "peak_bytes_in_use": 9, "pool_bytes": 20, "peak_pool_bytes": 20, "num_allocs": 4}

    def backends_are_initialized(self) -> bool:
        return self.started

    def local_devices(self) -> List[Any]:
        return [SimpleNamespace(memory_stats=lambda: self.stats)]


class Tensorflow:
    """TensorFlow, its context and its config, in the same way."""

    config = experimental = property(lambda self: self)
    started = _initialized = False

    def context_safe(self) -> Any:
        self._initialized = self.started
        return self

    def list_logical_devices(self, kind: str) -> List[str]:
        return [kind]

    def get_memory_info(self, name: str) -> Dict[str, int]:
        return {"current": 3, "peak": 5}


@pytest.mark.parametrize(
    "framework, names, expected",
    [
        (
            Jax(),
            ("jax", "jax._src.xla_bridge"),
            {"allocated": 7, "peak_allocated": 9, "reserved": 20, "peak_reserved": 20},
        ),
        (Tensorflow(), ("tensorflow", "tensorflow.python.eager.context"), {"allocated": 3, "peak_allocated": 5}),
        (SimpleNamespace(), ("jax", "jax._src.xla_bridge"), {}),  # another version
    ],
)
def test_figures_of_devices(framework: Any, names: Any, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that the program has not started is not asked."""
    for name in names:
        monkeypatch.setitem(sys.modules, name, framework)
    host = {"hightide/rss", "hightide/peak_rss"}
    assert set(hightide.figures()) == host
    framework.started = True
    found = {name.rpartition("/")[2]: value for name, value in hightide.figures().items() if name not in host}
    assert found == expected


def test_a_run_that_something_else_records_goes_on(recorded: Any) -> None:  # noqa: F811
    """Under `hightide run`, and after the program's own init()."""
    done = recorded(
        """
        import hightide
        from hightide._trainer import Trainer
        trainer = Trainer()
        for name in ("first", "second"):
            trainer.begin(name, {"trainer": name})
            trainer.enter("epoch")
            trainer.end()
        with hightide.span("afterwards"):
            pass
        """
    )
    assert done.code == 0 and not done.err, done.err
    assert done.report()["run"]["name"] == "first" and done.report()["run"]["tags"] == {"trainer": "first"}
    assert {row["span"]: row["count"] for row in done.rows("spans")} == {"epoch": 2, "afterwards": 1}


def test_without_the_program(recorded: Any) -> None:  # noqa: F811
    done = recorded(
        """
        import os
        os.environ["HIGHTIDE_BINARY"] = "/nowhere/hightide"
        import hightide
        from hightide._trainer import Trainer
        trainer = Trainer(alerts=["rss > 1GiB"])
        for _ in range(2):
            trainer.begin("none", {})
            trainer.enter("epoch")
            trainer.step(1)
            assert trainer.figures()["hightide/peak_rss"] > 1 << 20
            trainer.tag({"loss": 1.0})
            trainer.leave("epoch")
            trainer.end()
        """,
        under=[],
    )
    assert done.code == 0, done.err
    each = "hightide: this program is not recorded: [Errno 2] No such file or directory: '/nowhere/hightide'"
    assert done.err.splitlines() == [each, each]


def test_the_engine_dies_in_a_training(recorded: Any) -> None:  # noqa: F811
    done = recorded(
        """
        import os, signal, time
        import hightide
        from hightide import _engine, _session
        from hightide._trainer import Trainer
        trainer = Trainer()
        trainer.begin("cut", {})
        trainer.enter("epoch")
        engine = _session._began.pid
        os.kill(engine, signal.SIGKILL)
        while _engine.alive(engine):            # it may be gone between two looks: who began it was not this process
            time.sleep(0.01)
        trainer.step(1)
        trainer.end()
        trainer.begin("next", {})
        trainer.enter("epoch")
        trainer.end()
        (following, _) = hightide.runs()
        assert following.name == "next" and [row["span"] for row in following.report().spans] == ["epoch"]
        """,
        under=[],
    )
    assert done.code == 0, done.err
    gone, verdict = done.err.splitlines()
    assert gone.endswith("is gone; what it recorded is kept") and verdict.startswith("hightide: Peak ")
