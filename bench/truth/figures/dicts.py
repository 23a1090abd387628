"""A hundred thousand dicts of lists."""

from kernel import mark

held = [{"a": [i] * 20, "b": str(i)} for i in range(100_000)]
mark()
