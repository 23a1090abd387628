"""A Ray cluster on this machine: a head that runs no tasks, and two nodes for one each. Says the address; each line of
its input ends a node at once, the one whose name begins so."""

import sys
import time

from ray._private import services
from ray.cluster_utils import Cluster

ask = services.get_node


def patient(*node):
    """Ray gives a node 30 s to register, which is its own constant; on a busy machine it takes longer."""
    until = time.monotonic() + 240
    while True:
        try:
            return ask(*node)
        except RuntimeError:
            if time.monotonic() > until:  # it has ended
                raise
            time.sleep(1)


services.get_node = patient
small = {"object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
nodes = [cluster.add_node(num_cpus=1, **small) for _ in range(2)]
print(cluster.address, flush=True)
for line in sys.stdin:
    node = next(node for node in nodes if node.node_id.startswith(line.strip()))
    cluster.remove_node(node, allow_graceful=False)
    print("removed", flush=True)
cluster.shutdown()
