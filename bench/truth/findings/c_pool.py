"""A C library that keeps a pool of buffers, full after half of the time.

truth: innocent
"""

import ctypes
import pathlib
import subprocess
import tempfile
import time

SOURCE = """
#include <stdlib.h>
#include <string.h>
static char *pool[200];
int use(int n) {
    if (!pool[n % 200]) pool[n % 200] = malloc(1 << 20);
    memset(pool[n % 200], n, 1 << 20);
    return n;
}
"""

with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder) / "pool.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-xc", "-", "-o", library], input=SOURCE.encode(), check=True)
    use = ctypes.CDLL(str(library)).use

for n in range(420):
    use(n)
    time.sleep(0.018)
