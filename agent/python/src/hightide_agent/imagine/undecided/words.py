"""What functions do with a number that they are given, by the last part of their name: show it, make another number of
it, keep it, or take it as a size. Names alone are looked at: a program's own function of such a name is taken for one.
"""

TELLS = frozenset((
    "print", "repr", "str", "format", "log", "debug", "info", "warning", "warn", "error", "exception", "critical",
    "write", "writelines", "display", "echo", "set_postfix", "set_postfix_str", "set_description", "add_scalar",
    "add_scalars", "log_metric", "log_metrics", "log_dict", "report", "isinstance", "type", "id", "hash", "len",
))  # fmt: skip
"""Functions that show a number, by the last part of their name."""
NUMBERS = frozenset((
    "int", "float", "bool", "abs", "max", "min", "round", "sum", "pow", "divmod", "complex", "mean", "sqrt",
    "exp", "log1p", "log2", "log10", "isnan", "isinf", "isfinite", "floor", "ceil", "item", "tolist", "numpy",
    "cpu", "detach", "long", "double", "array", "asarray", "sorted", "list", "tuple", "set", "dict", "zip",
    "enumerate", "any", "all", "tensor", "as_tensor", "stack", "cat", "next",
))  # fmt: skip
"""Functions that make another number of it."""
ARRAYS = ("np", "numpy", "math", "statistics", "scipy")
"""Libraries whose functions do: np.percentile(scores, 99)."""
FINITE = ("isnan", "isinf", "isfinite")
STORES = frozenset((
    "append", "extend", "add", "appendleft", "insert", "update", "setdefault", "put",
))  # fmt: skip
SIZES = frozenset((
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "new_empty", "new_zeros", "new_ones",
    "new_full", "view", "reshape", "expand", "repeat", "narrow", "split", "chunk", "pad", "resize_",
    "repeat_interleave", "topk", "linspace", "eye", "tile", "unfold", "bytearray",
))  # fmt: skip
ABOUT = frozenset((
    "shape", "dtype", "device", "ndim", "itemsize", "nbytes", "is_cuda", "requires_grad", "layout", "size", "numel",
    "dim", "stride", "data_ptr", "element_size", "is_contiguous", "grad", "untyped_storage", "is_floating_point",
))  # fmt: skip
"""What a tensor or an array is, whatever its numbers are."""
GIVES = frozenset((
    *NUMBERS, *TELLS, "equal", "allclose", "is_nonzero", "to", "copy_", "range", "index", "count", "remove", "filter",
    "map", "reversed", "__bool__", "__int__", "__index__", "__float__", "__contains__", "deepcopy", "getattr",
    "bincount", "multinomial", "unique", "nonzero", "masked_select",  # their sizes are asked for: sizes.py
))  # fmt: skip
"""Functions whose result is what they read, or an answer to it. Others that are not of Python read it for themselves,
as one_hot does to know how many classes there are, or a script of TorchScript."""
READS = ("item", "tolist", "int", "float", "bool", "cpu", "numpy", "any", "all")
