"""What a program of programs.py asks of its allocator at most, on the CPU, by TensorFlow's own profile of it.

    TF_NUM_INTEROP_THREADS=1 TF_CPU_ALLOCATOR_USE_BFC=true requested.py NAME

Nothing in it knows of hightide. Blocks are counted as they were asked for, not as the allocator cut them.
"""

import glob
import sys
import tempfile

import programs
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2


def memory_events(space):
    """(time, whether it is an allocation, its statistics) of all threads, in order."""
    found = []
    for plane in space.planes:
        for line in plane.lines if plane.name == "/host:CPU" else ():
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                if name not in ("MemoryAllocation", "MemoryDeallocation"):
                    continue
                statistics = {}
                for one in event.stats:
                    value = getattr(one, one.WhichOneof("value"))
                    if one.WhichOneof("value") == "ref_value":
                        value = plane.stat_metadata[value].name
                    statistics[plane.stat_metadata[one.metadata_id].name] = value
                time = line.timestamp_ns * 1000 + event.offset_ps
                found.append((time, name == "MemoryAllocation", statistics))
    return sorted(found, key=lambda each: each[0])


def most(space):
    live, now, highest = {}, 0, 0
    for _, taken, statistics in memory_events(space):
        if not statistics["allocator_name"].startswith("bfc_cpu"):
            continue
        if taken:
            live[statistics["addr"]] = statistics["requested_bytes"]
            now += statistics["requested_bytes"]
            highest = max(highest, now)
        else:
            now -= live.pop(statistics["addr"], 0)
    return highest


def main():
    with tempfile.TemporaryDirectory() as folder:
        tf.config.list_logical_devices()  # which starts it
        tf.profiler.experimental.start(folder)
        getattr(programs, sys.argv[1])()
        tf.profiler.experimental.stop()
        (path,) = glob.glob(folder + "/plugins/profile/*/*.xplane.pb")
        space = xplane_pb2.XSpace()
        with open(path, "rb") as file:
            space.ParseFromString(file.read())
    print("requested", most(space))


if __name__ == "__main__":
    main()
