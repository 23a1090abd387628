"""A list of byte arrays that only grows: kept from each step, read by nobody."""

from _training import SIZE, training

kept = []
for _step, _images in training():
    kept.append(bytearray(SIZE))  # LEAK
