"""A C library that keeps a buffer of each call.

truth: leak cause=extension
"""

import ctypes
import pathlib
import subprocess
import tempfile
import time

SOURCE = """
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char data[]; };
static struct node *kept;
int remember(size_t size) {
    struct node *node = malloc(sizeof *node + size);
    if (!node) return -1;
    memset(node->data, 1, size);
    node->next = kept;
    kept = node;
    return 0;
}
"""

with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder) / "remember.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-xc", "-", "-o", library], input=SOURCE.encode(), check=True)
    remember = ctypes.CDLL(str(library)).remember
remember.argtypes = [ctypes.c_size_t]

for _ in range(400):
    remember(1 << 20)  # LEAK
    time.sleep(0.018)
