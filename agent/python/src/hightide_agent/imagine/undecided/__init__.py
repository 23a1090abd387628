"""Numbers that the host reads and nobody knows: what each decides, what is answered, and what the verdict rests on.

    .item(), if mask:, .tolist() ─▶ Reads: asked for by line? ─▶ that
        └ not ─▶ follow: the frames that run ─▶ uses: the source of one function ─▶ a Use
                                                   scopes: what names hold    checks: what only raises
                                                   comparison: which number turns it around    words: names of functions

The room has one interface: Reads, which sizes.py and known.py ask, and the policy of sizes. XLA's reads take its parts:
what was asked for by line, and what the lines make of a number.

What it promises:
- Nothing of the program is called, no object of it is kept alive, and no error of ours gets into it.
- A number that becomes a size, a range, a slice or a branch in the function that reads it, or in one that gets it back
  as a result, makes the verdict conditional on the line that reads.
- A whole number that goes where it cannot be followed does, too.
- The same element that is read twice is answered alike.

What it cannot see:
- Which function runs where a number comes back by a name that says little, as get(); and what that returns in turn.
- Functions of libraries, but for the names in words.py: what they do with a floating-point number decides nothing.
- Programs without source, for floating-point numbers: an interpreter's prompt, compiled modules, exec.
- Values that another thread or process takes out of a queue, and names that are set by setattr or in C.
"""

from .asked import Asked, typed
from .follow import followed
from .reads import Reads, bits, policy
from .uses import Use

__all__ = ["Asked", "Reads", "Use", "bits", "followed", "policy", "typed"]
