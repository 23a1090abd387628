"""Settings of the commands that the package passes on: keywords, and flags made of them."""

from __future__ import annotations

import inspect

import pytest

import hightide
from hightide import _engine, _settings


def test_each_setting_has_a_keyword() -> None:
    fit = inspect.signature(hightide.fit).parameters
    assert set(fit) - {"step", "steps"} == set(
        _settings.FIT
    )  # a step, and how often it runs: the commands have neither
    init = set(inspect.signature(hightide.init).parameters)
    assert init - {"folder"} == set(_settings.RUN)  # the folder of the recordings: of all commands
    assert {"gpu", "gpus", "memory", "settings"} < set(inspect.signature(hightide.imagine).parameters)
    assert set(_settings.ImagineSettings.__annotations__) == set(_settings.IMAGINE)


def test_flags() -> None:
    given = {"vary": True, "suggest": False, "world_size": 8, "tags": {"a": "b=c"}, "until": ["epoch", "checkpoint"]}
    assert _engine.flags(_settings.IMAGINE, {**given, "name": "", "play": None}) == [
        "--vary", "--suggest=false", "--world-size=8", "--tag=a=b=c", "--until=epoch", "--until=checkpoint",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="there is no setting worldsize; there are alloc_conf, "):
        _engine.flags(_settings.IMAGINE, {"worldsize": 8})
