"""What a model's name can mean, told without importing a framework: a slip of the finger is answered at once.

    check(options) ──▶ Unknown, with what to do about it; or silence, where models.lookup may find it

torchvision and transformers are read, not imported: each registers its models in a way that plain text
shows. Where a version does it otherwise the names cannot be told, and only importing answers.
"""

from __future__ import annotations

import ast
import difflib
import glob
import importlib.util
import json
import os
import re
import sys
from typing import List, Optional, Set

from .options import Options
from .presets import ALIASES, PRESETS

BUILT_IN = ("bert", "gpt2", "resnet")


class Unknown(Exception):
    """There is no such model, or this environment cannot build it. The text, or hint, says what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


def check(options: Options) -> None:
    """Refuse a name that cannot be resolved.

    Raises:
        Unknown: no such model, size or file, or the package that would know it is not installed.
    """
    name = options.model
    _check_size(name, options.size)
    if name in BUILT_IN:
        need("transformers", name)
        return
    file = config_file(name)
    if file is not None:
        need("transformers", name)
        _check_config(file)
    elif ":" in name:
        _check_function(name)
    elif name in PRESETS or name in ALIASES:
        need("transformers", name)
    elif os.path.isdir(name) and "/" in name:
        raise Unknown(f"{name} has no config.json", "name a config.json of transformers, or a folder with one")
    elif name.startswith(("./", "../", "/", "~")) or name.endswith(".json"):
        raise Unknown(f"there is no file {name}", "name a config.json of transformers, or a folder with one")
    else:
        vision, types = torchvision_names(), transformers_types()
        if vision is not None and types is not None and of_torchvision(name) not in vision | types:
            raise unknown(name)


def config_file(name: str) -> Optional[str]:
    """The config that name is, or that lies in the folder that it is; None where it is not a path to one."""
    inside = os.path.join(name, "config.json")
    return inside if os.path.isfile(inside) else name if os.path.isfile(name) else None


def unknown(name: str) -> Unknown:
    """What to say of a name that nobody knows: the nearest ones, and what could have been meant."""
    every = {*BUILT_IN, *PRESETS, *ALIASES, *(torchvision_names() or ()), *(transformers_types() or ())}
    near = nearest(name, every)
    also = f"; did you mean {_either(near)}?" if near else ""
    if "/" in name:
        hint = "the Hub is not asked: name the model's config.json, or a type with --size, as llama --size 8b"
    else:
        hint = (
            "bert, gpt2, resnet; torchvision's, as resnet50; model types of transformers, as llama; a config.json; "
            "module:function" + _missing()
        )
    return Unknown(f"no model named {name!r}{also}", hint)


def nearest(name: str, known: Set[str]) -> List[str]:
    """Up to three names that it may stand for: spelt otherwise (ResNet-50), with more to it (bert-base), mistyped."""
    bare = _bare(name.rpartition("/")[2])
    same = [k for k in known if _bare(k) == bare]
    begun = [k for k in known if len(k) > 3 and bare.startswith(_bare(k))]
    begun.sort(key=lambda k: (-len(k), k))
    close = difflib.get_close_matches(name, sorted(known), 3)
    return list(dict.fromkeys([*same, *begun[:1], *close]))[: 1 if same else 3]


def need(package: str, model: str) -> None:
    """Refuse what needs a package that is not there."""
    if importlib.util.find_spec(package) is None:
        raise Unknown(
            f"{model} needs {package}, which {sys.executable} does not have",
            f"{sys.executable} -m pip install {package}",
        )


def torchvision_names() -> Optional[Set[str]]:
    """Of the installed torchvision's classifiers; empty where it is not, None where its text does not tell."""
    return _read("torchvision", ["models/*.py"], r"^@register_model\([^)]*\).*?^def (\w+)")


def transformers_types() -> Optional[Set[str]]:
    """The model types that the installed transformers registers; as of torchvision_names."""
    files = ["models/auto/configuration_auto.py", "models/auto/auto_mappings.py"]
    return _read("transformers", files, r'"([\w.-]+)"\s*[,:]\s*"(?!AutoConfig)\w+Config"')


def _read(package: str, files: List[str], names: str) -> Optional[Set[str]]:
    spec = importlib.util.find_spec(package)
    if spec is None:
        return set()
    found: Set[str] = set()
    for folder in spec.submodule_search_locations or []:
        for path in (p for pattern in files for p in glob.glob(os.path.join(glob.escape(folder), pattern))):
            with open(path, encoding="utf-8", errors="replace") as f:
                found.update(re.findall(names, f.read(), re.MULTILINE | re.DOTALL))
    return found or None


def _check_size(name: str, size: str) -> None:
    if not size:
        return
    if name not in PRESETS and name not in ALIASES:
        raise Unknown(f"{name} has no sizes", f"leave --size out; these have some: {', '.join(PRESETS)}")
    sizes = PRESETS[ALIASES.get(name, name)]
    if size.lower() not in sizes:
        raise Unknown(f"no size {size!r} of {name}", f"there is {', '.join(sizes)}; another one as a config.json")


def _check_config(file: str) -> None:
    try:
        with open(file, encoding="utf-8") as f:
            fields = json.load(f)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not JSON ({error})"
        raise Unknown(
            f"{file} is not a transformers config: {why}", "name a config.json, or a folder with one"
        ) from error
    kind = fields.get("model_type") if isinstance(fields, dict) else None
    if not isinstance(kind, str):
        raise Unknown(f"{file} is not a transformers config: it has no model_type", 'as in "model_type": "llama"')
    types = transformers_types()
    if types is not None and kind not in types:
        near = nearest(kind, types)
        raise Unknown(
            f"{file} is of model type {kind!r}, which the transformers of {sys.executable} does not know",
            f"did you mean {_either(near)}?" if near else "a newer transformers may know it",
        )


def _check_function(name: str) -> None:
    module, _, function = name.partition(":")
    if module.endswith(".py"):
        raise Unknown(
            f"{name}: name the module, not its file", f"--model {module[:-3].replace(os.sep, '.')}:{function}"
        )
    if not all(part.isidentifier() for part in [*module.split("."), function]):
        raise Unknown(f"{name} names no function", "as in --model train:make, for make() of train.py in this folder")
    top = module.partition(".")[0]
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    spec = importlib.util.find_spec(top)
    if spec is None:
        raise Unknown(
            f"{name}: no module {top} in {here}, nor in {sys.executable}", f"run hightide where {top}.py lies"
        )
    if module == top and spec.origin and spec.origin.endswith(".py"):
        _check_source(name, spec.origin, function)


def _check_source(name: str, path: str, function: str) -> None:
    """The function must stand in the text, unless it may come from elsewhere."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    if re.search(rf"\b{function}\b|import \*|__getattr__", text):
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return  # importing says where
    near = nearest(function, {node.name for node in tree.body if isinstance(node, ast.FunctionDef)})
    raise Unknown(f"{name}: {path} has no {function}", f"did you mean {_either(near)}?" if near else "")


def of_torchvision(name: str) -> str:
    """Without the package in front that tells its models from others of the name."""
    return name[12:] if name.startswith("torchvision/") else name


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _either(names: List[str]) -> str:
    """a, b or c"""
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _missing() -> str:
    """What would know more names, and is not installed."""
    without = [name for name in ("torchvision", "transformers") if importlib.util.find_spec(name) is None]
    return f" ({sys.executable} does not have {' and '.join(without)})" if without else ""
