"""Sizes of the workloads: as people train them, or so small that all of them run in CI."""

import os

SMALL = os.environ.get("FIDELITY_SMALL") == "1"


def pick(full, small):
    return small if SMALL else full
