"""Five workers of a fork server, 100 MiB each."""

from kernel import MiB, pool

if __name__ == "__main__":
    pool("forkserver", 5, 100 * MiB)
