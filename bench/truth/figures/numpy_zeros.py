"""zeros of 1 GiB, a tenth written."""

import numpy
from kernel import MiB, mark, say

block = numpy.zeros(1024 * MiB, dtype=numpy.uint8)
block[: 100 * MiB] = 1
mark()
say(held=100 * MiB)
