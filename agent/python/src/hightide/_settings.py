"""The settings of the commands that this package passes on.

Written by: go test ./cmd/hightide -run Doors -update, from the lists in Go: change those.
"""

from __future__ import annotations

from typing import Dict, List, TypedDict


class ImagineSettings(TypedDict, total=False):
    """What imagine() can be told besides."""

    # settings of PyTorch's allocator, as expandable_segments:True
    alloc_conf: str
    # a file with more GPUs, TOML or CSV; may be given several times
    catalogue: List[str]
    # size of device memory that a process takes beside PyTorch's allocator, as 900MiB; hightide info --calibrate
    # measures it
    context: str
    # sizes that depend on data: upper (their upper bound), zero, or a fraction of the bound (default upper)
    data_sizes: str
    # stop after that time, as in 90s or 2h
    duration: str
    # where weights are not on this machine, make up some of the right shapes
    fake_weights: bool
    # name of a GPU as in hightide gpus, several with commas, or all (default h100-sxm)
    gpu: str
    # number of these GPUs in the machine (default 1)
    gpus: int
    # of an LLM server: before it ends, have it answer requests over HTTP, as 8x512+128: 8 at once, of 512 tokens
    # and 128 of answer each
    load: str
    # put the largest sample of a data set into the first batch
    longest: bool
    # size of the GPU's memory in place of the catalogue's, as 24GiB
    memory: str
    # name of the run, for later commands
    name: str
    # which ranks to play, as 0,1,127, 0-15, 0-120/8 or all; each kind once, at most 64 (default all of up to eight,
    # else the first two, a middle one and the last)
    play: str
    # value that the program reads where a GPU would have computed it: a number for all lines, or LINE=VALUE; may be
    # given several times
    read_value: List[str]
    # let the program write into a folder that is deleted afterwards
    sandbox: bool
    # also sample the host heap with Python stacks
    stacks: bool
    # stop after this number of optimizer steps; auto: once the peak is steady; 0: run to the end (default auto)
    steps: str
    # where it does not fit, try what would make it fit (default true)
    suggest: bool
    # tag as key=value; may be given several times
    tags: Dict[str, str]
    # number of tokens of each of them, prompt and answer together (default: the longest that the engine takes)
    tokens: int
    # do not stop before this part of the training: evaluation, checkpoint, epoch, several with commas; data loaders
    # are cut short to get there early; ready: stop an LLM server once its engine has started; load: once it has
    # answered load
    until: List[str]
    # of an LLM server: the number of sequences that it is to run at once; of several GPUs the cheapest that does is
    # looked for
    users: int
    # also run with other settings that change the peak: allocator, attention, compile caches, data-dependent sizes,
    # a GPU that is behind the host; of an LLM server: its settings, one at a time
    vary: bool
    # imagine a cluster of this number of ranks and play some of them, a process each
    world_size: int


IMAGINE: Dict[str, str] = {
    "alloc_conf": "--alloc-conf",
    "catalogue": "--catalogue",
    "context": "--context",
    "data_sizes": "--data-sizes",
    "duration": "--duration",
    "fake_weights": "--fake-weights",
    "gpu": "--gpu",
    "gpus": "--gpus",
    "load": "--load",
    "longest": "--longest",
    "memory": "--memory",
    "name": "--name",
    "play": "--play",
    "read_value": "--read-value",
    "sandbox": "--sandbox",
    "stacks": "--stacks",
    "steps": "--steps",
    "suggest": "--suggest",
    "tags": "--tag",
    "tokens": "--tokens",
    "until": "--until",
    "users": "--users",
    "vary": "--vary",
    "world_size": "--world-size",
}

FIT: Dict[str, str] = {
    "current": "--current",
    "first": "--start",
    "grad_accum": "--grad-accum",
    "granularity": "--step",
    "headroom": "--headroom",
    "most": "--most",
    "price": "--price",
}

RUN: Dict[str, str] = {
    "interval": "--interval",
    "name": "--name",
    "tags": "--tag",
}
