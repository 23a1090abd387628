"""Keras 3 on its own backend: a compiled model's train_on_batch and predict_on_batch.

The backend is the one that KERAS_BACKEND or Keras's own file of settings names; else the first one that is installed.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from . import keras_layers, own
from .models import MODELS, batches
from .options import DTYPES, Built, Options, Unavailable

PACKAGE = "keras"
BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}  # as Keras calls it: what programs import


def build(options: Options) -> Built:
    """Make the model and its step.

    Raises:
        Unavailable: no backend is installed, or it reaches no GPU and one is asked for.
        Unknown: there is no such model.
    """
    _choose_backend(options)
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow

        from . import of_tensorflow

        of_tensorflow.need_device(tensorflow, options)
    elif options.device == "cuda" and not _reaches_a_gpu(keras.backend.backend()):
        raise Unavailable(f"Keras {keras.__version__} on {keras.backend.backend()} reaches no GPU here")
    keras.utils.set_random_seed(options.seed)
    if options.model not in MODELS:
        return own.build(options)
    keras.config.set_dtype_policy(DTYPES[options.dtype])
    model = keras_layers.model_of(keras, options.model, options.seq_len)
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    draw = batches(MODELS[options.model], options.seq_len, options.seed, channels_first=False)

    def step(n: int) -> None:
        inputs, wanted = draw(n)
        if options.train:
            model.train_on_batch(inputs, wanted)
        else:
            model.predict_on_batch(inputs)

    return Built(step, keras_layers.count(model))


def _choose_backend(options: Options) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if options.device == "cpu":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ.setdefault("KERAS_TORCH_DEVICE", "cpu")
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    if "KERAS_BACKEND" in os.environ or os.path.isfile(os.path.join(home, "keras.json")):
        return
    installed = [name for name, package in BACKENDS.items() if find_spec(package) is not None]
    if not installed:
        raise Unavailable(f"Keras has no backend here: install one of {', '.join(BACKENDS.values())}")
    os.environ["KERAS_BACKEND"] = installed[0]


def _reaches_a_gpu(backend: str) -> bool:
    if backend == "torch":
        import torch

        return bool(torch.cuda.is_available())
    import jax

    return bool(jax.default_backend() == "gpu")
