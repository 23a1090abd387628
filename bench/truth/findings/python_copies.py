"""A copy of the whole state is kept at each turn, to be undone: each makes lists that grow, and much that goes at once.

truth: leak cause=undo
"""

import copy
import time

state = {"board": [[0] * 200 for _ in range(50)], "score": 0}
undo = []
for turn in range(500):
    undo.append(copy.deepcopy(state))  # LEAK
    state["board"][turn % 50][turn % 200] += 1
    time.sleep(0.015)
