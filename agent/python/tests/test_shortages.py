"""What TensorFlow says when memory runs out, as it says it: the operation, and its line where the graph knows it."""

from __future__ import annotations

from hightide_agent.adapters.tensorflow import _said

GRAPH = """Graph execution error:

Detected at node Gelu/Neg defined at (most recent call last):
  File "/home/me/train.py", line 19, in <module>

  File "/tmp/x/hightide_agent/adapters/tensorflow.py", line 119, in call

  File "/home/me/train.py", line 12, in step

  File "/venv/lib/python3.11/site-packages/keras/src/models/model.py", line 6, in call

  File "/home/me/model.py", line 6, in block

  File "/venv/lib/python3.11/site-packages/keras/src/activations.py", line 60, in gelu

failed to allocate memory
\t [[{{node Gelu/Neg}}]]
Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom.
 [Op:__inference_step_590]"""

EAGER = (
    "{{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:GPU:0}} OOM when allocating tensor "
    "with shape[268435456] and type float on /job:localhost/replica:0/task:0/device:GPU:0 "
    "by allocator GPU_0_bfc [Op:Fill] name: "
)


def test_operation_and_line() -> None:
    assert _said(MemoryError(GRAPH)) == {
        "text": "failed to allocate memory, in the operation Gelu/Neg",
        "file": "/home/me/model.py",
        "line": 6,
        "function": "block",
    }


def test_operation_without_a_graph() -> None:
    want = "OOM when allocating tensor with shape[268435456] and type float, in the operation Fill"
    assert _said(MemoryError(EAGER)) == {"text": want}


def test_other_words_stay() -> None:
    assert _said(MemoryError("Failed to fit")) == {} == _said(MemoryError("OOM when allocating tensor"))
