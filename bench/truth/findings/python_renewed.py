"""A state that is never changed, only replaced: each has what the one before had, and one more.

truth: leak cause=history
"""

import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class State:
    history: tuple = ()
    last: int = 0


state = State()
for n in range(350):
    payload = bytearray(1 << 20)
    state = dataclasses.replace(state, history=(*state.history, payload), last=n)  # LEAK
    time.sleep(0.02)
