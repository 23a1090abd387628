"""The parts of the PyTorch adapter, one file for each thing that is observed.

None of these imports torch: each is given the module that the script has imported.
"""
