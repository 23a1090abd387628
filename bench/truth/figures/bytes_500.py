"""One process that holds 500 MiB of bytes."""

from kernel import MiB, mark

held = b"x" * (500 * MiB)
mark()
