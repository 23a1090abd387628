"""The same models in every framework: what a cell of `hightide bench` runs where it names no command.

    hightide bench (Go: plans) ──options──▶ main.py ──▶ of_pytorch.py, of_tensorflow.py, … ──▶ step(batch)
                                              │             models.py: the numbers that all of them build from
                                              └──▶ the recording: steps, spans, the count of parameters

Each framework builds with its own layers, in its own way, from the same numbers; so the count of parameters is the same
in all of them. Nothing here measures: the run that this is part of does.
"""
