"""A callback that keeps the predictions of every batch.

truth: leak cause=Keep
in: frameworks
env: TF_ENABLE_ONEDNN_OPTS=0
"""

import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
x, y = np.random.random((256, 32)), np.random.random((256, 1))


class Keep(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(np.repeat(x, 16, axis=0))  # LEAK


model.fit(x, y, epochs=40, batch_size=32, verbose=0, callbacks=[Keep()])
