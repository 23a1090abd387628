"""One process that does next to nothing: its mark."""

from kernel import mark

mark()
