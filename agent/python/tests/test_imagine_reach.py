"""Getting to an evaluation, an epoch's end and the longest sample early: real loaders, without a device."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: scripts/setup puts one in place")
IMAGINE = {"HIGHTIDE_IMAGINE": "1", "HIGHTIDE_IMAGINE_STEPS": "0"}
TRAINING = """
    import torch
    from torch.utils.data import DataLoader
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def epoch():
        model.train()
        steps = 0
        for batch in DataLoader(torch.randn(400, 4), batch_size=4):
            model(batch).sum().backward()
            steps += 1
            if steps % EVERY == 0:
                optimizer.step()
        return steps
    def evaluate():
        model.eval()
        return len([model(batch) for batch in DataLoader(torch.randn(400, 4), batch_size=4)])
"""


def run(observe: Any, program: str, until: str, every: int = 1) -> Any:
    script = TRAINING.replace("EVERY", str(every)) + program
    return observe(script, env={**IMAGINE, "HIGHTIDE_IMAGINE_UNTIL": until})


def test_epochs_and_evaluations_are_cut_until_the_goal_is_reached(observe: Any) -> None:
    result = run(observe, "    print(evaluate(), epoch(), evaluate(), epoch())", "evaluation")
    before, first, evaluated, second = map(int, result.out.split())
    assert (first, second) == (8, 100)  # after the evaluation nothing is missing
    assert before == evaluated == 8  # it took no more with each batch
    told = [r["value"] for r in result.main.all("condition") if r["name"] == "cut short"]
    assert "training's loader after 8 of 100 batches" in told[-1]


def test_three_steps_are_taken_however_many_batches_that_needs(observe: Any) -> None:
    result = run(observe, "    print(epoch(), epoch())", "epoch", every=4)
    assert result.out.split() == ["12", "100"]


def test_without_a_goal_nothing_is_cut(observe: Any) -> None:
    assert run(observe, "    print(evaluate(), epoch(), evaluate())", "").out.split() == ["100", "100", "100"]


def test_the_longest_sample_stands_in_the_first_batch(observe: Any) -> None:
    result = observe(
        """
        import torch
        from torch.utils.data import DataLoader
        data = [{"ids": torch.zeros(3 + 50 * (n == 70))} for n in range(100)]
        shapes = [[len(sample["ids"]) for sample in batch]
                  for batch in DataLoader(data, batch_size=4, collate_fn=list, num_workers=0)]
        print([n for n, batch in enumerate(shapes) if 53 in batch], sum(map(len, shapes)))
        batches = [[0, 1], [2, 3], [70, 71, 72], [70, 5]]
        print([len(b) for b in DataLoader(data, batch_sampler=batches, collate_fn=list)])
        """,
        env={**IMAGINE, "HIGHTIDE_IMAGINE_LONGEST": "1"},
    )
    assert result.out.splitlines() == ["[0] 100", "[3, 2, 2, 2]"]
    told = [r["value"] for r in result.main.all("condition") if r["name"] == "longest first"]
    assert "batch 2 of 100 samples" in told or "sample 70 of 100 samples" in told
