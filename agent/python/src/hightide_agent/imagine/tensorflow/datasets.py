"""Arrays of the program that a tf.data.Dataset is made of: it reads what the program wrote.

    from_tensor_slices(array), from_tensors(array) ─▶ TensorFlow puts it on the GPU ─▶ kept as long as the dataset
                                                                                    └▶ the dataset copies it back

The imaginary device keeps no bytes of large copies, so that a dataset would read zeros, and a filter by value might let
nothing through. Here it is given the array itself; the GPU holds its copy all the same.

A dataset for several GPUs adds up on one of them how many have a batch: that is counted on the host instead.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, List

from ...agent import Agent
from ..device import MOST

_MADE = (("from_tensor_slices_op", "_TensorSliceDataset"), ("from_tensors_op", "_TensorDataset"))


class Datasets:
    """Those that are made from here on."""

    def __init__(self, agent: Agent, tensorflow: Any) -> None:
        self.agent = agent
        self.tensorflow = tensorflow

    def install(self) -> None:
        """With tensorflow imported."""
        for module, name in _MADE:
            kind = getattr(importlib.import_module("tensorflow.python.data.ops." + module), name)
            kind.__init__ = self._wrapped(kind.__init__)
        self._counted(importlib.import_module("tensorflow.python.distribute.input_lib"))

    def _counted(self, module: Any) -> None:
        original = module._calculate_replicas_with_values

        @functools.wraps(original)
        def counted(strategy: Any, workers: Any, batches: Any) -> Any:
            if not self.tensorflow.executing_eagerly() or strategy.extended._in_multi_worker_mode():
                return original(strategy, workers, batches)
            return sum(bool(one.has_value()) for of_worker in batches for one in of_worker)

        module._calculate_replicas_with_values = counted

    def _wrapped(self, original: Any) -> Any:
        @functools.wraps(original)
        def made(dataset: Any, element: Any, *args: Any, **kwargs: Any) -> None:
            kept: List[Any] = []
            try:
                element = self._on_host(element, kept)
            except Exception as error:
                self.agent.log("could not keep what a dataset is made of", error)
            original(dataset, element, *args, **kwargs)
            dataset._hightide_kept = kept

        return made

    def _on_host(self, element: Any, kept: List[Any]) -> Any:
        """The element, whose large arrays are on the host; their copies on a GPU are added to `kept`."""
        if not self.tensorflow.executing_eagerly():
            return element
        array = getattr(sys.modules.get("numpy"), "ndarray", ())

        def moved(leaf: Any) -> Any:
            if not isinstance(leaf, array) or leaf.nbytes <= MOST:
                return leaf
            tensor = self.tensorflow.convert_to_tensor(leaf)
            if "GPU" not in tensor.device:
                return tensor
            kept.append(tensor)
            with self.tensorflow.device("CPU:0"):
                return self.tensorflow.convert_to_tensor(leaf)

        nest = sys.modules["tensorflow.python.data.util.nest"]
        return nest.map_structure(moved, element)
