"""Every second block of many is freed: the C library keeps the holes."""

from kernel import MiB, mark

held = [bytearray(60_000) for _ in range(4000)]
del held[::2]
later = b"x" * (30 * MiB)
mark()
