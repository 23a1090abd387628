"""Items that are allocated as zeros: their pages come to be used later, if at all, so their line grows unsteadily.

truth: leak cause=kept
"""

from _torch_steps import MiB, training

kept = []
for step, _ in training(work=1):
    batch = bytearray(8 * MiB)
    batch[::4096] = b"x" * len(batch[::4096])
    kept.append(bytes(MiB // 2))  # LEAK
