"""Grows while its interpreter ends: an object's last act takes 300 MiB."""

import os

from kernel import MiB


class Late:
    """Has all that it needs with it: modules are gone by then."""

    def __init__(self):
        self.open, self.read, self.write = os.open, os.read, os.write
        self.path, self.size = os.environ["TRUTH"], 300 * MiB
        self.held = b"x" * (200 * MiB)

    def __del__(self):
        late = b"y" * self.size
        status = self.read(self.open("/proc/self/status", 0), 4096)
        mark = int(status.partition(b"VmHWM:")[2].split()[0]) * 1024
        self.write(self.open(self.path, 0o2101, 0o600), b'{"maxrss": %d}\n' % mark)
        del late


late = Late()
