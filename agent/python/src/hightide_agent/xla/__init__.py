"""What XLA says of the programs that JAX compiles, and of the arrays on its devices. The adapter is adapters/jax.py.

a program was compiled ─▶ programs.py: its memory by kind ─▶ donation.py: arguments that could be donated
a function is jitted ─▶ donating.py: arguments that a lever or a what-if has it donate
what is repeated ─▶ again.py: computed again in the backward pass, by a lever or a what-if of imagine
a step, the end, out of memory ─▶ profiles.py: arrays that are alive, by line
"""
