"""Grows while its interpreter ends: an object's last act takes 300 MiB."""

from kernel import MiB, mark


class Late:
    def __init__(self):
        self.write, self.size = mark, 300 * MiB
        self.held = b'x' * (200 * MiB)

    def __del__(self, bytes=bytes):
        late = b'y' * self.size
        self.write()
        del late


late = Late()
