"""A plan as code: for each lever the edits of the program's own files that do the same, or why there are none.

    Sites ─▶ Written ─▶ the fact "code": {lever: {"edits": [...]} or {"why": "..."}} ─▶ internal/patch: a unified diff

An edit puts `text` in place of a range: lines count from 1, columns from 0 in bytes of UTF-8. A keyword is put in as
the last argument of a call. BLOCKS, VALUE, BUDGET, PARTS and PART_OF_32 in a text are what the plan says. What is
written is imagined again by the engine before anybody sees it, so nothing here has to be sure of what memory it takes.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..places import is_library
from ..tracker import NEVER
from . import configured
from .found import Found, Refused
from .lora import RANK, adapted
from .sites import ACCELERATOR, ARGUMENTS, LIGHTNING, TRANSFORMERS, Site, Sites
from .twins import TWINS, look

Edit = Dict[str, Any]
FACT, FILES = "code", "sources"
KNOWN = ("params", "lr", "betas", "eps", "weight_decay")  # arguments of bitsandbytes' that are those of PyTorch's
BF16 = ("bf16", "enabled")  # of DeepSpeed's file
MOST_PARTS = 16  # of a batch, in which all fewer are that tune tries
STEP = 2  # by its end each statement of the loop has run


class Unwritten(Exception):
    """A lever that cannot be written for this code; the text says why."""


def install(training: Any, found: Found, sites: Sites) -> None:
    """Tell the edits at the end of the second step."""

    def ended(step: int) -> int:
        if step < STEP:
            return step + 1
        found.agent.fact(FACT, Written(found, sites).levers())
        found.agent.fact(FILES, sorted(sites.files()))
        return NEVER

    training.at_step_end(ended)


class Source:
    """A file of the program's own."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.lines = self.bytes.split(b"\n")
        self.tree = ast.parse(self.bytes)

    def statement(self, line: int) -> Any:
        """The innermost statement at a line, alone on its lines."""
        around = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and _covers(n, line)]
        if not around:
            raise Unwritten("no statement stands at %s:%d" % (self.path, line))
        found = max(around, key=lambda n: (n.lineno, n.col_offset))
        if self.lines[found.lineno - 1][: found.col_offset].strip():
            raise Unwritten("the line %s:%d has more than one statement" % (self.path, found.lineno))
        return found

    def call(self, line: int, name: str) -> Any:
        """The one call of a name in the statement at a line."""
        calls = [n for n in ast.walk(self.statement(line)) if isinstance(n, ast.Call) and _called(n) == name]
        if len(calls) != 1:
            raise Unwritten("%s:%d does not call %s by its name, once" % (self.path, line, name))
        return calls[0]

    def keyword(self, call: Any, name: str, value: str) -> Edit:
        """Give a call a keyword, or the one that it has another value."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return _edit(self.path, _range(keyword.value), value)
        end = self._end(call)
        return dict(_edit(self.path, end + end, "%s=%s" % (name, value)), keyword=True)

    def _end(self, call: Any) -> Tuple[int, int]:
        """Behind the last argument of a call, and behind the parentheses around that."""
        arguments = [*call.args, *(k.value for k in call.keywords)]
        last = call.end_lineno, call.end_col_offset - 1
        if not arguments:
            return last
        line, column = max(_range(a)[2:] for a in arguments)
        if (line, column) > last:
            raise Unwritten("%s:%d gives a generator without parentheses" % (self.path, line))
        while True:
            rest = self.lines[line - 1][column : last[1] if line == last[0] else None]
            if rest.strip()[:1] == b")":
                column += rest.index(b")") + 1
            elif rest.strip() or line == last[0] or not self._closes(line + 1, last):
                return line, column
            else:
                line, column = line + 1, 0

    def _closes(self, line: int, last: Tuple[int, int]) -> bool:
        """Whether a line begins with a parenthesis of an argument."""
        return self.lines[line - 1][: last[1] if line == last[0] else None].strip()[:1] == b")"

    def before(self, statement: Any, text: List[str]) -> Edit:
        """Lines in front of a statement, as far in as it."""
        indent = self.lines[statement.lineno - 1][: statement.col_offset].decode()
        line = min([statement.lineno] + [d.lineno for d in getattr(statement, "decorator_list", [])])
        return _edit(self.path, (line, 0, line, 0), "".join((indent + part).rstrip() + "\n" for part in text))

    def imports(self, *names: str) -> List[Edit]:
        """Imports at the top of the file, of what it has not imported by that name."""
        have = {a.name for n in self.tree.body if isinstance(n, ast.Import) for a in n.names if a.asname is None}
        missing = [name for name in names if name not in have]
        return [self.before(self.top(), ["import " + name]) for name in missing]

    def top(self) -> Any:
        """The first statement that is no docstring and no __future__."""
        for statement in self.tree.body:
            text = isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)
            if not text and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
                return statement
        raise Unwritten("%s has no statement" % self.path)


class Written:
    """The levers of one program as code."""

    def __init__(self, found: Found, sites: Sites) -> None:
        self.found = found
        self.sites = sites
        self._sources: Dict[str, Source] = {}

    def levers(self) -> Dict[str, Any]:
        """By lever: its edits, or why there are none."""
        said: Dict[str, Any] = {}
        for name, write in (
            ("allocator", self._allocator), ("set_to_none", self._set_to_none), ("foreach", self._foreach),
            ("step_in_backward", self._step_in_backward), ("checkpoint", self._checkpoint),
            ("offload", self._offload), ("bf16", self._bf16), ("states_on_host", self._states_on_host),
            ("compile_budget", self._compile_budget), ("micro_batch", self._micro_batch),
            ("chunked_loss", self._chunked_loss), ("states_8bit", self._states_8bit), ("lora", self._lora),
        ):  # fmt: skip
            try:
                said[name] = {"edits": list(write())}
            except (Unwritten, Refused) as error:
                said[name] = {"why": str(error)}
            except (OSError, SyntaxError, ValueError, RecursionError) as error:
                said[name] = {"why": "its source cannot be read: %s" % error}
        return said

    def _source(self, path: str) -> Source:
        if path not in self._sources:
            if path.startswith("<"):
                raise Unwritten("the program has no file")
            self._sources[path] = Source(path)
        return self._sources[path]

    def _made(self) -> Tuple[Source, Site, Any]:
        """Where the model's optimizer is made: the file, the place, the optimizer."""
        optimizers = self.found.optimizers()
        if len(optimizers) != 1:
            raise Unwritten("%s has %d optimizers" % (self.found.name, len(optimizers)))
        site = self.sites.of(optimizers[0])
        if site is None:
            raise Unwritten("a library makes the optimizer")
        if site.times > 1:
            raise Unwritten("%s:%d makes several optimizers" % (site.file, site.line))
        return self._source(site.file), site, optimizers[0]

    def _by_trainer(self) -> bool:
        """Whether the Trainer of transformers makes the model's optimizer: no statement of the program's own does."""
        optimizers = self.found.optimizers()
        if len(optimizers) != 1 or ARGUMENTS not in self.sites.makers:
            return False
        site = self.sites.of(optimizers[0])
        try:
            return site is None or not self._source(site.file).call(site.line, type(optimizers[0]).__name__)
        except Unwritten:
            return True

    def _at_model(self, text: List[str], *imports: str) -> Iterator[Edit]:
        """Lines where the optimizer is made; MODEL in them is the model there."""
        source, site, _ = self._made()
        name = site.named(self.found.model)
        if name is None:
            raise Unwritten("no variable has the %s where its optimizer is made" % self.found.name)
        yield from source.imports(*imports)
        yield source.before(source.statement(site.line), [line.replace("MODEL", name) for line in text])

    def _setting(self, maker: str, **keywords: str) -> Optional[List[Edit]]:
        """Keywords of a trainer's settings; None where the program makes none."""
        if maker not in self.sites.makers:
            return None
        call = self._maker(maker)
        site = self.sites.makers[maker]
        return [self._source(site.file).keyword(call, name, value) for name, value in keywords.items()] if site else []

    def _maker(self, maker: str) -> Any:
        """The call that makes a trainer's settings."""
        site = self.sites.makers[maker]
        if site is None or site.times > 1:
            raise Unwritten("%s is not made at one place of the program" % maker)
        source = self._source(site.file)
        calls = [n for n in ast.walk(source.statement(site.line)) if isinstance(n, ast.Call) and _covers(n, site.line)
                 and (_called(n) or "").endswith(maker)]  # fmt: skip
        if len(calls) != 1:
            raise Unwritten("%s:%d makes the %s, but not by its name" % (site.file, site.line, maker))
        return calls[0]

    def _spread_settings(self) -> Optional[List[Edit]]:
        """Checkpointing as a setting of FSDP, which knows what it gathers; None where neither Accelerate nor
        the Trainer has spread the model."""
        if not self.found.sharded:
            return None
        arguments = self.sites.owners.get(ARGUMENTS)
        if getattr(arguments, "fsdp", None):
            return self._of_arguments(arguments)
        if os.environ.get("ACCELERATE_USE_FSDP") != "true":
            return None
        path = configured.launched()
        if path is None:
            raise Unwritten("give accelerate launch --fsdp_activation_checkpointing true")
        return self._put(path, ("fsdp_config", "fsdp_activation_checkpointing"), True)

    def _of_arguments(self, arguments: Any) -> List[Edit]:
        """The same where TrainingArguments spread the model: in fsdp_config, as a dict or a file."""
        key = "activation_checkpointing"
        site = self.sites.makers[ARGUMENTS]
        if site is None:  # of the command line
            words = [word for argument in sys.argv for word in argument.split("=", 1)]
            path = words[words.index("--fsdp_config") + 1] if "--fsdp_config" in words[:-1] else ""
            if not path.endswith(".json"):
                raise Unwritten("give the command --fsdp_config with a file that has %s" % key)
            return self._put(os.path.abspath(path), (key,), True)
        call = self._maker(ARGUMENTS)
        value = next((k.value for k in call.keywords if k.arg == "fsdp_config"), None)
        source = self._source(site.file)
        if value is None:
            return [source.keyword(call, "fsdp_config", '{"%s": True}' % key)]
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return self._put(os.path.abspath(value.value), (key,), True)
        if not isinstance(value, ast.Dict):
            raise Unwritten("%s:%d has fsdp_config from elsewhere: give it %s" % (site.file, site.line, key))
        for name, has in zip(value.keys, value.values):
            if isinstance(name, ast.Constant) and name.value in (key, "fsdp_" + key):
                return [_edit(source.path, _range(has), "True")]
        line, column = value.lineno, value.col_offset + 1
        return [_edit(source.path, (line, column) * 2, '"%s": True%s' % (key, ", " if value.keys else ""))]

    def _arguments_precision(self) -> Optional[List[Edit]]:
        """TrainingArguments, and DeepSpeed's file where that says another precision than they would."""
        edits = self._setting(ARGUMENTS, bf16="True")
        engine = getattr(self.sites.owners.get(ARGUMENTS), "deepspeed", None)
        if edits and isinstance(engine, str) and configured.value_of(engine, BF16) is False:
            edits += self._put(os.path.abspath(engine), BF16, True)
        return edits

    def _launched_precision(self) -> Optional[List[Edit]]:
        """The precision in the file of accelerate launch, where the program leaves it to that."""
        path = configured.launched()
        if path is None or ACCELERATOR not in self.sites.makers:
            return None
        if any(k.arg == "mixed_precision" for k in self._maker(ACCELERATOR).keywords):
            return None
        engine = os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "none")
        if engine != "none":  # which alone says the precision then
            return self._put(os.path.abspath(engine), BF16, True)
        return self._put(path, ("mixed_precision",), "bf16")

    def _put(self, path: str, keys: Tuple[str, ...], value: Any) -> List[Edit]:
        """An edit of a file of settings, which has to stand with the program to be tried."""
        if not path.startswith(os.getcwd() + os.sep):
            raise Unwritten("set %s to %s in %s" % (".".join(keys), json.dumps(value), path))
        self.sites.settings.add(path)
        try:
            return configured.put(path, keys, value)
        except configured.Unknown as error:
            raise Unwritten("set %s to %s in %s: %s" % (".".join(keys), json.dumps(value), path, error)) from None

    def _allocator(self) -> Iterator[Edit]:
        path = getattr(sys.modules.get("__main__"), "__file__", None)
        if path is None or is_library(path):
            raise Unwritten("the program that is started is not a file of your own; set PYTORCH_CUDA_ALLOC_CONF")
        source = self._source(os.path.abspath(path))
        text = 'os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", VALUE)  # before PyTorch is imported'
        yield from source.imports("os")
        yield source.before(source.top(), [text])

    def _set_to_none(self) -> Iterator[Edit]:
        if not self.sites.zeroing:
            raise Unwritten("no call of zero_grad(set_to_none=False) was seen in the program's own files")
        for site in self.sites.zeroing.values():
            source = self._source(site.file)
            call = source.call(site.line, "zero_grad")
            if call.args:
                yield _edit(source.path, _range(call.args[0]), "True")
            else:
                yield source.keyword(call, "set_to_none", "True")

    def _foreach(self) -> Iterator[Edit]:
        source, site, optimizer = self._made()
        yield source.keyword(source.call(site.line, type(optimizer).__name__), "foreach", "False")

    def _step_in_backward(self) -> Iterator[Edit]:
        raise Unwritten("an optimizer for each parameter is more than a change of some lines")

    def _checkpoint(self) -> Iterator[Edit]:
        edits = self._spread_settings()
        if edits is not None:
            yield from edits
            return
        edits = self._setting(ARGUMENTS, gradient_checkpointing="True",
                              gradient_checkpointing_kwargs='{"use_reentrant": False}')  # fmt: skip
        if edits is not None:
            yield from edits
            return
        for name, block in self.found.blocks().items():
            if any(getattr(m, "track_running_stats", False) for m in block.modules()):
                raise Unwritten("block %s has running statistics, which a second forward pass would count again" % name)
        if getattr(self.found.model, "supports_gradient_checkpointing", False):
            yield from self._at_model(['MODEL.gradient_checkpointing_enable({"use_reentrant": False})'])
            return
        yield from self._at_model([
            "for _name in BLOCKS:  # their activations are computed again in the backward pass",
            "    _block = MODEL.get_submodule(_name)",
            "    _block.forward = functools.partial(",
            "        torch.utils.checkpoint.checkpoint, _block.forward, use_reentrant=False",
            "    )",
        ], "functools", "torch.utils.checkpoint")  # fmt: skip

    def _states_on_host(self) -> Iterator[Edit]:
        raise Unwritten("a step for each parameter is more than a change of some lines")

    def _micro_batch(self) -> Iterator[Edit]:
        by_hand = "divide the batch size of your trainer, and multiply its accumulated steps by the same"
        arguments = self.sites.owners.get(ARGUMENTS)
        size = getattr(arguments, "per_device_train_batch_size", None)
        if not size or size % MOST_PARTS or getattr(arguments, "gradient_accumulation_steps", 1) != 1:
            raise Unwritten(by_hand)
        yield from (
            self._setting(
                ARGUMENTS, per_device_train_batch_size="PART_OF_%d" % size, gradient_accumulation_steps="PARTS"
            )
            or []
        )

    def _chunked_loss(self) -> Iterator[Edit]:
        raise Unwritten("a loss of its own is more than a change of some lines")

    def _compile_budget(self) -> Iterator[Edit]:
        source, site, _ = self._made()
        yield from source.imports("torch._functorch.config")
        yield source.before(source.statement(site.line), ["torch._functorch.config.activation_memory_budget = BUDGET"])

    def _offload(self) -> Iterator[Edit]:
        if self.sites.makers.get(ARGUMENTS):
            raise Unwritten("the Trainer has no setting for it")
        yield from self._at_model([
            "def _on_host(*args, _forward=MODEL.forward, **kwargs):",
            "    with torch.autograd.graph.save_on_cpu(pin_memory=True):",
            "        return _forward(*args, **kwargs)",
            "",
            "MODEL.forward = _on_host",
        ], "torch")  # fmt: skip

    def _states_8bit(self) -> Iterator[Edit]:
        for optimizer in self.found.optimizers():
            look(self.found, optimizer)
        if self._by_trainer():
            yield from self._setting(ARGUMENTS, optim='"adamw_bnb_8bit"') or []
            return
        source, site, optimizer = self._made()
        name = type(optimizer).__name__
        call = source.call(site.line, name)
        unknown = [k.arg for k in call.keywords if k.arg not in KNOWN]
        if unknown or len(call.args) > len(KNOWN):
            raise Unwritten("%s of bitsandbytes has no %s" % (TWINS[name], unknown[0] if unknown else "such argument"))
        yield from source.imports("bitsandbytes")
        yield _edit(source.path, _range(call.func), "bitsandbytes.optim." + TWINS[name])

    def _lora(self) -> Iterator[Edit]:
        layers = _pattern(self.found, adapted(self.found))
        config = ["peft.LoraConfig(r=%d, lora_alpha=%d, target_modules=%s)" % (RANK, 2 * RANK, layers)]
        if not self._by_trainer():
            source, site, optimizer = self._made()
            made = ast.walk(source.call(site.line, type(optimizer).__name__))
            if not {_called(n) for n in made if isinstance(n, ast.Call)} & {"parameters", "named_parameters"}:
                raise Unwritten("%s:%d lists the parameters before it makes the optimizer" % (site.file, site.line))
            text = ["peft.inject_adapter_in_model(  # trained in place of the weights", *_in(config, ", MODEL"), ")"]
            yield from self._at_model(text, "peft")
            return
        trainer = self.sites.makers.get(TRANSFORMERS)
        name = trainer and trainer.named(self.found.model)
        if trainer is None or trainer.times > 1 or name is None:
            raise Unwritten("no variable has the %s where its Trainer is made" % self.found.name)
        source = self._source(trainer.file)
        yield from source.imports("peft")
        text = ["%s = peft.get_peft_model(  # adapters are trained in place of the weights" % name]
        yield source.before(source.statement(trainer.line), [*text, "    %s," % name, *_in(config, ","), ")"])

    def _bf16(self) -> Iterator[Edit]:
        edits = (
            self._arguments_precision()
            or self._setting(LIGHTNING, precision='"bf16-mixed"')
            or self._launched_precision()
            or self._setting(ACCELERATOR, mixed_precision='"bf16"')
        )
        if edits is not None:
            yield from edits
            return
        kind = next((p.device.type for p in self.found.model.parameters()), "cuda")
        text = "MODEL.forward = torch.autocast(%r, dtype=torch.bfloat16)(MODEL.forward)" % kind
        yield from self._at_model([text.replace("'", '"')], "torch")


def _in(lines: List[str], end: str) -> List[str]:
    return ["    " + line + end for line in lines]


def _pattern(found: Found, layers: Dict[str, Any]) -> str:
    """An expression of Python that names these layers for peft: a pattern for blocks that are alike, else a list."""
    parts: Dict[str, Dict[str, None]] = {}
    for name in layers:
        block = re.match(r"(.*?\.)?\d+\.", name)
        begin, rest = (re.escape(block[1] or "") + r"\d+\.", name[block.end() :]) if block else ("", name)
        parts.setdefault(begin, {})[re.escape(rest)] = None
    pattern = "|".join("%s(%s)" % (begin, "|".join(rest)) for begin, rest in parts.items())
    names = {name for name, module in found.model.named_modules() if name and re.fullmatch(pattern, name)}
    return 'r"%s"' % pattern if names == set(layers) else json.dumps(list(layers))


def _covers(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or node.lineno))


def _called(call: Any) -> Optional[str]:
    """The last name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def _range(node: Any) -> Tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _edit(path: str, where: Tuple[int, int, int, int], text: str) -> Edit:
    line, column, end_line, end_column = where
    return {"file": path, "line": line, "column": column, "end_line": end_line, "end_column": end_column, "text": text}
