"""The agent: observes a training from inside its process, and leaves no trace in it.

    sitecustomize ─▶ start ─▶ agent ─▶ channel ─▶ shared memory ─▶ engine
                       │        ▲
                       ▼        │ edges, steps, facts
                    imports ─▶ adapters/<framework> ─▶ training (tracker, steps, holders, allocators)

`start` opens the channel and says hello; `imports` waits until a framework has been imported and
only then loads its adapter; adapters tell all they see to `training`, which knows no framework. Standard library
only, Python 3.8 and later. The rules: never raise into the training, never block it (drop and
count), start no device the script did not start, import nothing the script may never need.
"""

__version__ = "0.1.0"
