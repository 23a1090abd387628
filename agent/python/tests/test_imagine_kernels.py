"""Which parameters a kernel may write to, told from its source."""

from __future__ import annotations

import pytest

from hightide_agent.imagine.kernels import written


@pytest.mark.parametrize(("body", "names"), [
    ("tl.store(out + tl.arange(0, 4), tl.load(x))", {"out"}),
    ("p = out + 4 * n\n    p += 1\n    tl.store(pointer=p, value=tl.load(x))", {"out", "n"}),
    ("i = tl.load(index)\n    tl.atomic_add(out + i, 1)", {"out"}),
    ("d = tl.make_block_ptr(base=out, shape=(n,))\n    tl.store(d, tl.load(x))", {"out", "n"}),
    ("d = tl.make_tensor_descriptor(out, [n])\n    d.store([0], tl.load(x))", {"out", "n"}),
    ("helper(x, n)", {"x", "n"}),
    ("v = tl.load(x).to(tl.int32)\n    for i in range(n):\n        v += min(i, 3)", set()),
])  # fmt: skip
def test_what_is_written(body: str, names: object) -> None:
    assert written("@triton.jit\ndef kernel(x, index, out, n):\n    %s\n" % body) == names


def test_what_cannot_be_told() -> None:
    assert written("def kernel(:") is None
    assert written("x = 3") is None
