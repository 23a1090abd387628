"""Objects that a linked list keeps, beside more of them that are let go at another line, which asks for the memory.

truth: leak cause=small.objects
"""

import time


class Node:
    head = None

    def __init__(self, value):
        self.value, self.before = str(value) * 2, Node.head  # LEAK
        Node.head = self


def parse(rows):
    return [{"id": row, "text": str(row) * 3} for row in range(rows)]


for n in range(900):
    number = len(parse(4000))
    for i in range(400):
        Node(n * 1000 + i)  # LEAK
    time.sleep(0.005)
