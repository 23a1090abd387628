"""numpy alone: most of what its BLAS reserves is never touched."""

import numpy  # noqa: F401
from kernel import mark

mark()
