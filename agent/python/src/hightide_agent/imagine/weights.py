"""Weights that are not on this machine, made up in the right shapes.

    from_pretrained ─▶ a folder with the configuration and a weights file that is all hole ─▶ the real from_pretrained
    torch.load, torch.hub ─▶ Made: whatever is asked of it is there, and load_state_dict leaves the model as it is
    safetensors cut short (headers, as a clone without large files has) ─▶ the same file, made long by a hole

A hole takes no room on disk, and none in memory until somebody reads it; the imaginary device does not.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import struct
import tempfile
from typing import Any, Callable, Dict, Optional

from ..calls import given, instead
from .ledger import Ledger

NAME = "pretrained_model_name_or_path"  # of the first argument of from_pretrained
WEIGHTS = (
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
    "adapter_model.safetensors",
)  # fmt: skip
_TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
          "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}  # fmt: skip


_named: Dict[str, str] = {}  # folders of ours → the model that was asked for


class Made(Dict[Any, Any]):
    """A checkpoint that nobody has: every key is there, every number is 0."""

    def __missing__(self, key: Any) -> Made:
        return Made()

    def get(self, key: Any, default: Any = None) -> Any:
        """A part that is as made up; the default where it is a plain value."""
        return default if default is not None and not isinstance(default, dict) else Made()

    def pop(self, key: Any, *default: Any) -> Any:
        """As get."""
        return self.get(key, *default)

    def __contains__(self, key: Any) -> bool:
        return True

    def __int__(self) -> int:
        return 0

    __index__ = __int__

    def __float__(self) -> float:
        return 0.0

    def __getattr__(self, name: str) -> Made:
        if name.startswith("__"):
            raise AttributeError(name)
        return Made()


def install(ledger: Ledger, torch: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Wrap what loads weights."""
    _loading(ledger, torch)
    _state_dicts(torch)
    watch("transformers.modeling_utils", lambda module: _pretrained(ledger, torch, module))
    watch("transformers.models.auto.auto_factory", lambda module: _auto(ledger, torch, module))
    watch("safetensors.torch", lambda module: _safetensors(ledger, module))


def _loading(ledger: Ledger, torch: Any) -> None:
    load, hub = torch.load, torch.hub.load_state_dict_from_url

    @functools.wraps(load)
    def torch_load(f: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
            _say(ledger, "torch.load", os.fspath(f), 0, 2)
            return Made()
        return load(f, *args, **kwargs)

    @functools.wraps(hub)
    def from_url(url: str, *args: Any, **kwargs: Any) -> Any:
        name = kwargs.get("file_name") or os.path.basename(url.partition("?")[0])
        folder = kwargs.get("model_dir") or os.path.join(torch.hub.get_dir(), "checkpoints")
        if not os.path.exists(os.path.join(folder, name)):
            _say(ledger, "torch.load", name, 0, 2)
            return Made()
        return hub(url, *args, **kwargs)

    torch.load = torch.serialization.load = torch_load
    torch.hub.load_state_dict_from_url = from_url


def _state_dicts(torch: Any) -> None:
    """load_state_dict of something made up leaves its object as it is."""
    module = torch.nn.Module
    original = module.load_state_dict

    @functools.wraps(original)
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state_dict, Made):
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return original(self, state_dict, *args, **kwargs)

    module.load_state_dict = load_state_dict
    for owner in (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler):
        owner.load_state_dict = _leaving(owner.load_state_dict)


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        return None if isinstance(state_dict, Made) else original(self, state_dict, *args, **kwargs)

    return load_state_dict


def _pretrained(ledger: Ledger, torch: Any, module: Any) -> None:
    """PreTrainedModel.from_pretrained of any class, when its weights are not here."""
    model = module.PreTrainedModel
    original = model.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        name = given(args, kwargs, 0, NAME)
        if name is None or kwargs.get("state_dict") is not None or _here(name, kwargs):
            return original(cls, *args, **kwargs)
        config: Any = kwargs.get("config")
        if not hasattr(config, "to_dict"):
            config = _config(config or name, kwargs, getattr(cls, "config_class", None))
        folder = _folder(ledger)
        size = _hollow(torch, cls, config, kwargs, os.path.join(folder, "model.safetensors"))
        config.save_pretrained(folder)
        _say(ledger, "from_pretrained", _named.get(str(name), str(name)), size, 2)
        for key in ("revision", "subfolder", "variant", "use_safetensors"):
            kwargs.pop(key, None)
        args, kwargs = instead(args, kwargs, 0, NAME, folder)
        return original(cls, *args, **kwargs)

    model.from_pretrained = classmethod(from_pretrained)


def _auto(ledger: Ledger, torch: Any, module: Any) -> None:
    """AutoModel…: it needs the configuration first, to know the class."""
    auto = module._BaseAutoModelClass
    original = auto.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        name = given(args, kwargs, 0, NAME)
        if name is None or hasattr(kwargs.get("config"), "to_dict") or _here(name, kwargs):
            return original(cls, *args, **kwargs)
        config: Any = _config(kwargs.get("config") or name, kwargs, None)
        kwargs["config"] = config
        folder = _folder(ledger)  # a name that is not a folder would be looked up on the network
        config.save_pretrained(folder)
        _named[folder] = str(name)
        args, kwargs = instead(args, kwargs, 0, NAME, folder)
        return original(cls, *args, **kwargs)

    auto.from_pretrained = classmethod(from_pretrained)


def _here(name: Any, kwargs: Any) -> bool:
    """Whether the weights of this model are on this machine, whole."""
    name = os.fspath(name)
    if os.path.isdir(name):
        folder = os.path.join(name, kwargs.get("subfolder") or "")
        there = [f for f in os.listdir(folder) if f.endswith((".safetensors", ".bin"))] if os.path.isdir(folder) else []
        return any(_whole(os.path.join(folder, f)) for f in there)
    try:
        from huggingface_hub import try_to_load_from_cache

        found = [try_to_load_from_cache(name, f, cache_dir=kwargs.get("cache_dir")) for f in WEIGHTS]
        return any(isinstance(f, str) and (f.endswith(".json") or _whole(f)) for f in found)
    except Exception:
        return False


def _whole(path: str) -> bool:
    """Whether a weights file has the bytes that its header tells of; one of another format that is not tiny."""
    if not path.endswith(".safetensors"):
        return os.path.getsize(path) > 1024
    needed = _safetensors_bytes(path)
    return needed is not None and os.path.getsize(path) >= needed


def _safetensors_bytes(path: str) -> Optional[int]:
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header: Any = json.loads(file.read(length)) if length < 100 << 20 else None
        ends = [int(e["data_offsets"][1]) for k, e in header.items() if k != "__metadata__"]
        return 8 + int(length) + max(ends or [0])
    except (OSError, ValueError, KeyError, struct.error, AttributeError, TypeError):
        return None


def _config(name: Any, kwargs: Any, kind: Any) -> Any:
    """The model's configuration: from this machine, else from the hub, else the defaults of the type so named."""
    from transformers import AutoConfig

    kind = kind or AutoConfig
    more = {k: kwargs[k] for k in ("cache_dir", "revision", "token", "trust_remote_code", "subfolder") if k in kwargs}
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        return kind.from_pretrained(name, local_files_only=True, **more)
    except Exception as error:
        if str(name) in CONFIG_MAPPING:  # a bare type: its defaults are the model it is named after
            return CONFIG_MAPPING[str(name)]()
        if not os.path.isdir(name):
            try:
                return kind.from_pretrained(name, **more)
            except Exception:
                pass
        raise OSError(
            "hightide imagine --fake-weights: neither the weights nor config.json of %s are on this machine. "
            "Put its config.json into a folder and name that folder, or name a model type, as bert or gpt2." % name
        ) from error


def _hollow(torch: Any, cls: Any, config: Any, kwargs: Any, path: str) -> int:
    """Write a safetensors file with the shapes of the model and no bytes; the size it seems to have."""
    wanted = kwargs.get("dtype", kwargs.get("torch_dtype"))
    wanted = getattr(torch, wanted, None) if isinstance(wanted, str) else wanted
    dtype = wanted or getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) or torch.float32
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    with torch.device("meta"):
        model = cls._from_config(config)
    tied = set(getattr(model, "_tied_weights_keys", None) or ()) if config_ties(config) else set()
    header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in model.state_dict().items():
        if name in tied:
            continue
        kind = dtype if tensor.is_floating_point() else tensor.dtype
        size = tensor.numel() * torch.empty(0, dtype=kind).element_size()
        header[name] = {"dtype": _TYPES[str(kind).replace("torch.", "")], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + size]}  # fmt: skip
        offset += size
    _write(path, header, offset)
    return offset


def config_ties(config: Any) -> bool:
    """Whether input and output embeddings are one."""
    return bool(getattr(config, "tie_word_embeddings", False))


def _write(path: str, header: Any, size: int) -> None:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + size)


def _safetensors(ledger: Ledger, module: Any) -> None:
    """load_file of a file that has its header and not its bytes."""
    load_file = module.load_file

    @functools.wraps(load_file)
    def load(filename: Any, *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(filename)
        needed = _safetensors_bytes(path) if os.path.exists(path) else None
        if needed is not None and os.path.getsize(path) < needed:
            whole = os.path.join(_folder(ledger), os.path.basename(path))
            shutil.copyfile(path, whole)
            os.truncate(whole, needed)
            _say(ledger, "safetensors", path, needed, 2)
            path = whole
        elif not os.path.exists(path):
            _say(ledger, "safetensors", path, 0, 2)
            return Made()
        return load_file(path, *args, **kwargs)

    module.load_file = load


def _folder(ledger: Ledger) -> str:
    """A folder that goes when the program ends."""
    folder = tempfile.mkdtemp(prefix="weights-", dir=os.environ.get("HIGHTIDE_OUT") or None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _say(ledger: Ledger, what: str, name: str, size: int, depth: int) -> None:
    import sys

    from ..places import caller

    file, line, function = caller(sys._getframe(depth))
    ledger.note("fake", (what, name), what=what, name=name, bytes=size, file=file, line=line, function=function)
