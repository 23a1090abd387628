import sys
import time

import toy

model = toy.Model(toy.Layer("encoder", 1 << 30), toy.Layer("head", 1 << 28))
optimizer = toy.Optimizer(model)
history = []
for step in range(int(sys.argv[1])):
    batch = toy.load(1 << 28)
    loss = model(batch)
    time.sleep(0.01)
    toy.backward(loss)
    optimizer.step()
    history.append(loss)  # LEAK
