"""An ordinary training with Keras on TensorFlow.

truth: innocent
in: frameworks
env: TF_ENABLE_ONEDNN_OPTS=0
"""

import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
x, y = np.random.random((512, 256)), np.random.random((512, 1))
model.fit(x, y, epochs=60, batch_size=32, verbose=0)
