"""Eight forked workers of 150 MiB each."""

from kernel import MiB, pool

if __name__ == "__main__":
    pool("fork", 8, 150 * MiB)
