"""300 MiB that are freed, then 100: the mark is of the 300."""

from kernel import MiB, mark

held = b"x" * (300 * MiB)
del held
held = b"x" * (100 * MiB)
mark()
