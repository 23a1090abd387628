"""Arrays of 20 MiB, all of them written."""

import numpy
from kernel import MiB, mark, say

held = [numpy.ones(20 * MiB, dtype=numpy.uint8) for _ in range(15)]
mark()
say(held=300 * MiB)
