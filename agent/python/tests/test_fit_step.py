"""Steps of `hightide fit`: what inference asks of a model, and what hightide.fit refuses at once."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

import hightide
from hightide._fit import training
from hightide._fit.names import Unknown


@pytest.mark.parametrize(
    "wrong",
    [
        {"granularity": -3},
        {"first": 0},
        {"most": -1},
        {"steps": 0},
        {"headroom": 1.0},
        {"headroom": -0.1},
        {"current": -1},
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(wrong: Dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="headroom a share of the device"):
        hightide.fit(lambda n: None, **wrong)


def test_inference_asks_for_the_last_logits_where_the_model_knows_how() -> None:
    class Knows:
        def forward(self, input_ids: Any, logits_to_keep: int = 0) -> None: ...

    class Compiled:
        _orig_mod = Knows()

        def forward(self, *args: Any) -> None: ...

    class Older:
        def forward(self, input_ids: Any) -> None: ...

    assert training._last_logits(Knows()) == {"logits_to_keep": 1}
    assert training._last_logits(Compiled()) == {"logits_to_keep": 1}
    assert training._last_logits(Older()) == {}


def test_a_step_of_ones_own_has_no_forward_pass_of_its_own() -> None:
    ran: List[int] = []
    step = training._own_step("own:make", ran.append)
    step(4, False)
    assert ran == [4]
    with pytest.raises(Unknown, match="cannot be told apart"):
        step(4, True)
