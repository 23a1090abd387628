"""One batch size after the other: what runs the trials of `hightide fit`.

    hightide fit (Go: plans) ──ask──▶ worker.py ──fork──▶ trial.py ──▶ models.py, training.py
                             ◀─trial── (one JSON line each)

The worker imports the frameworks and builds the model once, on the CPU. Each trial is a fork of it
that moves the model to the device, so that nothing of one trial, least of all an out-of-memory, can
touch the next. `hightide.fit` speaks the same lines from inside a user's own program (sdk.py).
Standard library only, and whatever framework the interpreter has.
"""
