"""Sizes that are drawn from one choice: a routing that is made up, a mask and its opposite."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: scripts/setup puts one in place")
from hightide_agent.imagine.shares import Coin, Route, route  # noqa: E402


def topk(shape: tuple[int, ...], k: int, dim: int = -1, even: bool = False) -> tuple[Route, Any]:
    scores = torch.zeros(shape)
    result = torch.topk(scores, k, dim).indices
    made = route("topk", (scores, k, dim), {}, result, even)
    assert made is not None
    return made, result


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((6, 8), -1), ((2, 3, 8), 2), ((8, 6), 0), ((3, 8, 2), 1)])
def test_each_row_chooses_different_experts(shape: tuple[int, ...], dim: int, even: bool) -> None:
    made, result = topk(shape, 3, dim, even)
    indices = made.indices(torch, 6)
    assert indices.shape == result.shape and indices.dtype == result.dtype
    rows = indices.movedim(dim, -1).reshape(-1, 3).tolist()
    assert all(len(set(row)) == 3 and max(row) < 8 for row in rows)
    if even:
        counts = torch.bincount(indices.flatten(), minlength=8)
        assert counts.max() - counts.min() <= 1 and counts.sum() == 18
    else:
        assert all(row == [6, 7, 0] for row in rows)


def test_argmax_is_a_routing_of_one() -> None:
    scores = torch.zeros(5, 4)
    for keepdim in (False, True):
        result = scores.argmax(1, keepdim)
        made = route("argmax", (scores, 1), {"keepdim": keepdim}, result, False)
        assert made is not None and made.indices(torch, 2).tolist() == torch.full_like(result, 2).tolist()


def test_what_is_no_routing() -> None:
    vocabulary, one = torch.zeros(2, 5000), torch.zeros(7)
    assert route("topk", (vocabulary, 3), {}, torch.topk(vocabulary, 3).indices, False) is None
    assert route("argmax", (one, 0), {}, one.argmax(0), False) is None
    assert route("argmax", (torch.zeros(3, 4),), {}, torch.zeros(3, 4).argmax(), False) is None


def test_a_mask_and_its_opposite_share_their_elements() -> None:
    coin = Coin()
    assert (coin.count(False, 10, 10), coin.count(True, 10, 10), coin.count(False, 10, 10)) == (10, 0, 10)
    assert (coin.count(True, 0, 10), Coin().count(True, 3, 10)) == (0, 3)
