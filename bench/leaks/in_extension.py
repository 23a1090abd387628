"""A C library that keeps a buffer of each call and never frees it; nothing of Python's holds it."""

import ctypes
import pathlib
import subprocess
import tempfile

from _training import SIZE, training

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

for _step, _images in training():
    remember(SIZE)  # LEAK
