"""Six spawned workers of 100 MiB each."""

from kernel import MiB, pool

if __name__ == "__main__":
    pool("spawn", 6, 100 * MiB)
