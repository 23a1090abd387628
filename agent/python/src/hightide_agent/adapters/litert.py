"""LiteRT (ai_edge_litert, once TensorFlow Lite): each call of an interpreter is a step, all of it the forward pass.

What its arena holds the runtime does not tell Python, but where each value lies: after the first call their places are
looked at once. Values inside of a delegate, as XNNPACK has them, have none.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from ..inference import Sessions
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, litert: Any, watch: Watch) -> None:
    """Observe this process's use of ai_edge_litert, which has just been imported."""
    training.agent.framework("ai_edge_litert", str(litert.__version__))
    sessions = Sessions(training, "litert")

    def loaded(module: Any) -> None:
        training.install_parts(
            "LiteRT",
            ("calls of interpreters", lambda: sessions.calls(module.Interpreter, ("invoke",))),
            ("calls of signatures", lambda: sessions.calls(module.SignatureRunner, ("__call__",))),
            ("places of values", lambda: sessions.at_first.append(lambda: _tell(sessions, module))),
            ("models", lambda: sessions.made(module.Interpreter, _model, _facts)),
        )

    watch("ai_edge_litert.interpreter", loaded)


def _model(model_path: Any = None, model_content: Any = None, *_: Any, **__: Any) -> Any:
    return model_content if model_path is None else model_path


def _facts(_: Any, *__: Any, num_threads: Any = None, **___: Any) -> Dict[str, Any]:
    return {"threads": num_threads or "as many as it chooses"}


def _tell(sessions: Sessions, module: Any) -> None:
    """Facts on what the interpreter that leads holds; none of a signature in another subgraph than the first."""
    session = sessions.leading()
    if isinstance(session, module.SignatureRunner):
        if session._subgraph_index:
            return
        session = session._interpreter
    for key, value in places(session).items():
        sessions.training.agent.fact("litert_" + key, value)


def places(interpreter: Any) -> Dict[str, Any]:
    """What the values that an interpreter is given and computes take, each byte counted once: many lie where others lay
    before. Its constants are not among them."""
    operators = interpreter._get_ops_details()
    alive = _alive([int(one["index"]) for one in interpreter.get_input_details()], operators)
    values = set().union(*alive)
    where: Dict[int, Tuple[int, int]] = {}
    for number in sorted(values):
        try:
            value = interpreter.tensor(number)()
        except ValueError:  # "Tensor data is null": a delegate has it
            continue
        where[number] = (value.__array_interface__["data"][0], value.nbytes)
        del value  # no call is allowed while somebody holds one
    facts: Dict[str, Any] = {"values": together(list(where.values()))}
    if len(where) < len(values):
        facts["not_told"] = "%d of %d values, which a delegate keeps" % (len(values) - len(where), len(values))
    elif where:
        most, at = max((together([where[n] for n in live]), -i) for i, live in enumerate(alive))
        name = operators[-at]["op_name"]
        facts["most_alive"] = "%d bytes at operator %d of %d, %s" % (most, 1 - at, len(operators), name)
    return facts


def _alive(given: List[int], operators: List[Dict[str, Any]]) -> List[List[int]]:
    """The values that are alive while each operator runs: those that it takes or makes, that later ones still take, and
    what the caller gives and asks for."""
    end = len(operators)
    first, last = dict.fromkeys(given, 0), dict.fromkeys(given, end)
    for i, one in enumerate(operators):
        for n in map(int, one["inputs"]):
            if n in first and n not in given:
                last[n] = i
        for n in map(int, one["outputs"]):
            first.setdefault(n, i)
            last.setdefault(n, end)
    return [[n for n, i in first.items() if i <= at <= last[n]] for at in range(end)]


def together(parts: List[Tuple[int, int]]) -> int:
    """Bytes that parts of memory take, of which some overlap: each is where it begins and its bytes."""
    total = end = 0
    for begin, size in sorted(parts):
        total += max(0, begin + size - max(begin, end))
        end = max(end, begin + size)
    return total
