"""Objects that register themselves when they are made, and are never taken off the list.

truth: leak cause=sessions
"""

import time

import numpy as np


class Server:
    def __init__(self):
        self.sessions = []


class Session:
    def __init__(self, server):
        self.buffer = np.ones(1 << 17)  # LEAK
        server.sessions.append(self)  # LEAK


def main():
    server = Server()
    for _ in range(350):
        Session(server)
        time.sleep(0.02)


main()
