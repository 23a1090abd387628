"""python ray_tasks.py: hands scripts to a Ray cluster as tasks, and tells how they stand.

    hightide bench (Go) ──{"op": "submit", …}──▶ this ──▶ Keeper, a detached actor ──▶ tasks, on the nodes
                        ◀──{"result": …}────────

A line of JSON in, a line out, until the input ends. Ray ends the tasks of a program that ends. So an actor that
outlives this one submits them: a bench that was killed finds them again by their handles. RAY_ADDRESS says which one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, List

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

HEAD = "node:__internal_head__"  # a resource that Ray gives the node which has the cluster's state
NAME = "hightide-keeper-1"  # the number changes with what the actor understands


def work(keeper: Any, handle: str, script: str) -> int:
    """The task: run a script of the shell to its end, in a group of processes that ends with the task."""
    import signal
    import socket
    import subprocess

    node = f"{socket.gethostname()}:{ray.get_runtime_context().get_node_id()[:8]}"
    keeper.began.remote(handle, node)  # not waited for: a task that waits for Ray lends its processors to others
    command = subprocess.Popen(
        ["/bin/sh", script],
        env={**os.environ, "TRIAL_NODE": node},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return command.wait()
    except BaseException:  # cancelled
        os.killpg(command.pid, signal.SIGTERM)
        try:
            command.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(command.pid, signal.SIGKILL)
        raise


class Keeper:
    """What was submitted, by handle."""

    def __init__(self) -> None:
        self.tasks: Dict[str, Any] = {}
        self.nodes: Dict[str, str] = {}

    def submit(self, itself: Any, scripts: List[str], options: Dict[str, Any]) -> List[str]:
        """Submit a task for each script; their handles."""
        import uuid

        task = ray.remote(work).options(max_retries=0, **options)
        handles = [uuid.uuid4().hex for _ in scripts]
        for handle, script in zip(handles, scripts):
            self.tasks[handle] = task.remote(itself, handle, script)
        return handles

    def began(self, handle: str, node: str) -> None:
        """A task runs now."""
        self.nodes[handle] = node

    def poll(self, handles: List[str]) -> Dict[str, List[str]]:
        """State, node and Ray's own word of each task that is known."""
        known = [handle for handle in handles if handle in self.tasks]
        over = set()
        if known:
            references = [self.tasks[handle] for handle in known]
            over = set(ray.wait(references, num_returns=len(references), timeout=0)[0])
        told = {}
        for handle in known:
            node = self.nodes.get(handle, "")
            reference = self.tasks[handle]
            told[handle] = [*(_end(reference) if reference in over else (("running" if node else "waiting"), "")), node]
        return told

    def cancel(self, handles: List[str]) -> None:
        """End tasks, and what they run."""
        for handle in handles:
            if handle in self.tasks:
                ray.cancel(self.tasks[handle])

    def idle(self) -> bool:
        """Whether all tasks are over."""
        references = list(self.tasks.values())
        return not references or not ray.wait(references, num_returns=len(references), timeout=0)[1]


def _end(reference: Any) -> Any:
    """How a task ended: state and word."""
    from ray import exceptions

    try:
        ray.get(reference)
    except exceptions.TaskCancelledError as error:
        return "killed", type(error).__name__
    except exceptions.OutOfMemoryError as error:
        return "killed", type(error).__name__
    except exceptions.RayTaskError as error:
        return "ended", str(error).strip().rpartition("\n")[2]
    except exceptions.RayError as error:  # the worker, its node, or who knew of it
        return "lost", type(error).__name__
    return "ended", ""


class Cluster:
    """The connection."""

    def __init__(self) -> None:
        ray.init(address="auto", namespace="hightide", log_to_driver=False, logging_level="ERROR")

    def keeper(self) -> Any:
        """The actor; where there is none, a new one beside the cluster's own head, which it cannot outlive anyway.

        Nowhere else: it would end with a node that ends, and its tasks with it. An old Ray names no head.
        """
        heads = [node["NodeID"] for node in ray.nodes() if node["Alive"] and HEAD in node["Resources"]]
        here = heads[0] if heads else ray.get_runtime_context().get_node_id()
        place = NodeAffinitySchedulingStrategy(here, soft=not heads)
        kept = {"name": NAME, "lifetime": "detached", "get_if_exists": True}
        return ray.remote(Keeper).options(num_cpus=0, scheduling_strategy=place, **kept).remote()

    def check(self) -> int:
        """The number of nodes that are up."""
        return sum(bool(node["Alive"]) for node in ray.nodes())

    def submit(self, scripts: List[str], options: Dict[str, Any]) -> List[str]:
        """As Keeper's."""
        keeper = self.keeper()
        handles: List[str] = ray.get(keeper.submit.remote(keeper, scripts, options))
        return handles

    def poll(self, handles: List[str]) -> Dict[str, List[str]]:
        """As Keeper's; nothing of those whose keeper is gone. One that cannot be reached for a moment is not gone."""
        for wait in (1, 2, 4, 8, 0):
            try:
                told: Dict[str, List[str]] = ray.get(self.keeper().poll.remote(handles))
                return told
            except ray.exceptions.ActorUnavailableError:
                if not wait:
                    raise
                time.sleep(wait)
            except ray.exceptions.RayActorError:
                break
        return {}

    def cancel(self, handles: List[str]) -> None:
        """As Keeper's."""
        ray.get(self.keeper().cancel.remote(handles))

    def close(self) -> None:
        """Leave. The keeper goes too, unless tasks of it go on."""
        try:
            keeper = ray.get_actor(NAME)
        except ValueError:
            return
        if ray.get(keeper.idle.remote()):
            ray.kill(keeper)


def main() -> int:
    """Answer until the input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    cluster = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            cluster = cluster or Cluster()
            answer = {"result": getattr(cluster, asked.pop("op"))(**asked)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"}
        out.write(json.dumps(answer) + "\n")
    if cluster is not None:
        cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
