"""Sixteen forked workers of 5 MiB each."""

from kernel import MiB, pool

if __name__ == "__main__":
    pool("fork", 16, 5 * MiB)
