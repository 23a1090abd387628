"""Have PyTorch's own tools read a snapshot and one written again, and compare what they say."""

import pickle
import sys

from torch.cuda import _memory_viz as viz


def memory(snapshot):
    """Its folded stacks but for inactive blocks; the drawing itself is a script that it would download."""
    lines = viz.memory(snapshot, format_flamegraph=lambda lines: lines).splitlines()
    return [line for line in lines if "active_" in line]


old, new = (pickle.load(open(path, "rb")) for path in sys.argv[1:3])
for tool in (viz.segsum, viz.trace, memory):
    before, after = tool(old), tool(new)
    if before != after or len(before) < 100:
        sys.exit(f"{tool.__name__} says something else of it ({len(before)} and {len(after)} items)")
page = viz.trace_plot(new)
if len(page) < 10000 or "<html" not in page.lower() and "<!doctype" not in page.lower():
    sys.exit("trace_plot makes no page")
