"""The models in Keras's layers, for Keras on any backend and for tf.keras. Images are (height, width, colour)."""

from __future__ import annotations

from typing import Any

from .models import CLASSES, COLOURS, MODELS, PIXELS, STAGES, VOCABULARY, Model


def model_of(keras: Any, name: str, seq_len: int) -> Any:
    """The model, in the type that Keras's policy says."""
    numbers = MODELS[name]
    return {"lenet": lenet, "resnet18": resnet18, "transformer": transformer}[numbers.build](keras, numbers, seq_len)


def count(model: Any) -> int:
    """Numbers that are trained."""
    total = 0
    for weight in model.trainable_weights:
        size = 1
        for length in weight.shape:
            size *= int(length)
        total += size
    return total


def lenet(keras: Any, _: Model, __: int) -> Any:
    """LeNet-5 for colour images."""
    layers = keras.layers
    return keras.Sequential([
        keras.Input((PIXELS, PIXELS, COLOURS)),
        layers.Conv2D(6, 5, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(16, 5, activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(120, activation="relu"), layers.Dense(84, activation="relu"),
        layers.Dense(CLASSES),
    ])  # fmt: skip


def resnet18(keras: Any, _: Model, __: int) -> Any:
    """ResNet-18, with its stem for large images."""
    layers = keras.layers
    inputs = keras.Input((PIXELS, PIXELS, COLOURS))
    x = _normed(keras, inputs, STAGES[0], 7, 2)
    x = layers.MaxPooling2D(3, 2, "same")(layers.ReLU()(x))
    for i, channels in enumerate(STAGES):
        for stride in (2 if i else 1, 1):
            y = layers.ReLU()(_normed(keras, x, channels, 3, stride))
            y = _normed(keras, y, channels, 3, 1)
            x = layers.ReLU()(layers.Add()([y, _normed(keras, x, channels, 1, stride) if stride > 1 else x]))
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))


def _normed(keras: Any, x: Any, channels: int, kernel: int, stride: int) -> Any:
    y = keras.layers.Conv2D(channels, kernel, stride, "same", use_bias=False)(x)
    return keras.layers.BatchNormalization()(y)


def transformer(keras: Any, numbers: Model, seq_len: int) -> Any:
    """Blocks of MultiHeadAttention over tokens and learned positions, and the mean's class."""
    layers = keras.layers

    class Positions(layers.Layer):  # type: ignore[misc,name-defined]  # keras is not there when types are checked
        def build(self, _: Any) -> None:
            self.table = self.add_weight(shape=(seq_len, numbers.width), initializer="random_normal", name="table")

        def call(self, x: Any) -> Any:
            return x + self.table

    ids = keras.Input((seq_len,), dtype="int32")
    x = Positions()(layers.Embedding(VOCABULARY, numbers.width)(ids))
    for _ in range(numbers.blocks):
        attended = layers.MultiHeadAttention(numbers.heads, numbers.width // numbers.heads)(x, x)
        x = layers.LayerNormalization(epsilon=1e-5)(layers.Add()([x, attended]))
        inner = layers.Dense(numbers.width)(layers.Dense(numbers.inner, activation="relu")(x))
        x = layers.LayerNormalization(epsilon=1e-5)(layers.Add()([x, inner]))
    x = layers.LayerNormalization(epsilon=1e-5)(layers.GlobalAveragePooling1D()(x))
    return keras.Model(ids, layers.Dense(CLASSES)(x))
