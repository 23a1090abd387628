"""A linked list: every node keeps the one before it.

truth: leak cause=before|head
"""

import time


class Node:
    def __init__(self, before):
        self.before = before  # LEAK
        self.payload = bytearray(1 << 20)  # LEAK


head = None
for n in range(350):
    head = Node(head)  # LEAK
    time.sleep(0.02)
