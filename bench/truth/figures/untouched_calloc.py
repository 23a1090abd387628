"""calloc of 1 GiB that nobody touches, and 100 MiB that are held."""

from kernel import MiB, libc, mark, say, touched

empty = libc.calloc(1, 1024 * MiB)
held = touched(100 * MiB)
mark()
say(held=100 * MiB)
