"""Two million small objects."""

from kernel import mark

held = [str(i) for i in range(2_000_000)]
mark()
