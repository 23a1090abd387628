"""A cache of images by name, without a bound.

truth: leak cause=cache
"""

import time

import numpy as np


class Loader:
    def __init__(self):
        self.cache = {}

    def get(self, name):
        if name not in self.cache:
            self.cache[name] = np.random.default_rng(0).random((256, 256, 3))  # LEAK
        return self.cache[name]


def main():
    loader = Loader()
    for n in range(300):
        loader.get(f"image-{n}").mean()
        time.sleep(0.02)


main()
