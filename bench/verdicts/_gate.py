"""The other file of kept_elsewhere.py."""


class Gate:
    """Opens where a score is high."""

    score = 0.0

    def opens(self) -> bool:
        return self.score > 0.5
