import time

import toy

model = toy.Model(toy.Layer("encoder", 1 << 30), toy.Layer("head", 1 << 28))
optimizer = toy.Optimizer(model)
history = []
while True:  # until the device is full
    batch = toy.load(1 << 28)
    loss = model(batch)
    time.sleep(0.02)
    toy.backward(loss)
    optimizer.step()
    history.append(loss)  # LEAK
