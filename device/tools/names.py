"""Lists every public entry point of the CUDA libraries, and what a caller expects of each.

    python3 device/tools/names.py ENVIRONMENT...      rewrites device/names/*.txt

An environment is a virtual environment with a CUDA build of PyTorch: the names are those that its
libraries export, the expectations come from the headers beside them. The driver's own libraries are
on no machine without a GPU: their names are those of cuda.h, and of pynvml where it is installed.
Names found once stay, so that one list serves all versions. One line each:

    name command     takes values and device addresses only: without a model it may do nothing and succeed
    name output      the host waits for an answer: without a model it fails
    name pointer     returns an address or a text: without a model NULL
    name void        returns nothing
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NAMES = Path(__file__).resolve().parent.parent / "names"

# list: (what its library's file is called, what its names begin with)
LIBRARIES = {
    "cudart": ("libcudart.so", r"(__)?cuda[A-Z]"),
    "cublas": ("libcublas.so", r"cublas[A-Z]"),
    "cublaslt": ("libcublasLt.so", r"cublasLt[A-Z]"),
    "cudnn": ("libcudnn", r"cudnn[A-Z]"),
    "nccl": ("libnccl.so", r"p?nccl[A-Z]"),
    "cufft": ("libcufft.so", r"cufft[A-Z]"),
    "cusparse": ("libcusparse.so", r"cusparse[A-KM-Z]|cusparseLoc"),
    "cusparselt": ("libcusparseLt.so", r"cusparseLt[A-Z]"),
    "cusolver": ("libcusolver.so", r"cusolver[A-Z]"),
    "cusolvermg": ("libcusolverMg.so", r"cusolverMg[A-Z]"),
    "curand": ("libcurand.so", r"curand[A-Z]"),
    "nvrtc": ("libnvrtc.so", r"nvrtc[A-Z]"),
    "nvjitlink": ("libnvJitLink.so", r"(__)?nvJitLink[A-Z]"),
    "cufile": ("libcufile.so", r"cuFile[A-Z]"),
    "cupti": ("libcupti.so", r"cupti[A-Z]"),
}
DRIVER = r"cu(?!da|File|fft|sparse|blas|solver|pti|rand|dnn|Tensor[A-LN-Z])[A-Z]\w*"
ASKS = re.compile(
    r"Get|Create|Query|[bB]ufferSize|WorkspaceSize|WorkArea|Alloc|Reserve|Import|Export|Open|Map[A-Z]|Register[A-Z]|"
    r"CanAccess|Occupancy|Estimate|MakePlan|Init|Split|Compile|Complete|Begin|EndCapture|Clone|Instantiate|Add\w*Node|"
    r"IsCapturing|Retain|Version|Find|Heuristic|Capabilit|Load|Iterat|Encode|Size$|Count$|_nnz|Nnz|Analysis"
)
ANSWERS = re.compile(
    r"(?<!const )\b(int|size_t|unsigned int|long long int|int64_t|uint64_t|char|float|\w+_t|\w+Handle|CU\w+|cuda\w+)\s*\*"
)
# Where what a parameter points to is the host's, unless it is void: libraries whose data lie on the host.
ON_HOST = {"cudart", "driver", "nccl", "nvrtc", "nvjitlink", "cufile", "cufft", "cublaslt", "nvml"}
# Parameters that are read, though nothing says const; and what is not a command though it looks like one. Data would be
# lost if nothing came of it, or a caller would follow a pointer that nobody set.
READ = re.compile(
    r"(?i)(params|parameter|args|arguments|attrs?|attributes|sizes|locs|location|dependencies|conn|config|options|values|resources|"
    r"list|indexes|idxs|descs?|descriptor|input|caller_info|routine|whichgpus|workarea|eglframe|_p|ranks|array|stream|d?ptrs)$"
)
MOVES = re.compile(
    r"(Memcpy|Memset|Malloc|MemAlloc|BatchIO)(?!.*Node)|Add\w*Node|GenerateDesc|FreeNodeGetParams|ExportTable"
)
COMMANDS = re.compile(
    r"Destroy|Free|Unregister|Release|Unload|Deregister|Synchronize|Reset|^__cudaRegister|Pop|Unmap|SetStream$"
)


def exported(library: Path) -> list[str]:
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1].split("@")[0] for line in text.splitlines() if line.split()[-2] in "TWi"]


def prototypes(header: Path) -> dict[str, tuple[str, str]]:
    """Of each function declared: its return type and its parameters."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header.read_text(errors="replace"), flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M | re.S)
    found = {}
    for match in re.finditer(r"([\w\s\*]+?)\b(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*(?:;|__dv)", text):
        found[match[2]] = (" ".join(match[1].split()), " ".join(match[3].split()))
    return found


def macros(header: Path) -> dict[str, str]:
    return dict(
        re.findall(r"^\s*#\s*define\s+(cu\w+)\s+(?:__CUDA_API_\w+\()?(cu\w+)", header.read_text(errors="replace"), re.M)
    )


def answers(parameters: str) -> bool:
    """Whether a parameter points to a place of the host's that the caller leaves empty."""
    for parameter in parameters.split(","):
        words = parameter.strip()
        if (
            "*" in words
            and "const" not in words
            and not re.search(r"\bvoid ?\*\s*\w*$", words)
            and not READ.search(words)
        ):
            return True
    return False


def expectation(library: str, name: str, declared: tuple[str, str] | None) -> str:
    returns, parameters = declared or ("", "")
    returns = re.sub(
        r"\b(extern|static|inline|CUDAAPI|CUDARTAPI|CUBLASWINAPI|CUDNNWINAPI|CUFFTAPI|__host__|"
        r"__cudart_builtin__|DECLDIR|CUSPARSEAPI|CUSOLVERAPI|CUPTIAPI|CURANDAPI|C|API)\b",
        " ",
        returns,
    )
    if declared and re.search(r"\*\s*(CUDNNWINAPI)?\s*$", returns):
        return "pointer"
    if declared and re.fullmatch(r"\s*void\s*", returns):
        return "void"
    if library in ON_HOST and MOVES.search(name):
        return "output"
    if COMMANDS.search(name):
        return "command"
    if declared and library in ON_HOST and answers(parameters):
        return "output"
    if declared and not ANSWERS.search(parameters):
        return "command"
    if re.search(r"\*\s*\*", parameters) and ASKS.search(name):
        return "output"
    return "output" if ASKS.search(name) else "command"


def add(lists: dict[str, dict[str, str]], library: str, name: str, declared: dict[str, tuple[str, str]]) -> None:
    base = re.sub(r"(_v\d+|_ptsz|_ptds|_64)+$", "", name)
    found = expectation(library, name, declared.get(name) or declared.get(base))
    if (
        found == "output" or lists[library].get(name) != "output"
    ):  # of one version it may be the newer header that says so
        lists[library][name] = found


def declarations(site: Path) -> dict[str, tuple[str, str]]:
    declared: dict[str, tuple[str, str]] = {}
    for header in site.glob("nvidia/**/*.h"):
        if "/cccl/" not in str(header) and header.name.startswith(("cu", "nccl", "nv")):
            declared |= prototypes(header)
    return declared


def environment(root: Path, lists: dict[str, dict[str, str]], kinds: bool = True) -> None:
    """Add the entry points of an environment's libraries; without kinds what each expects is not worked out."""
    site = next(root.glob("lib/python3*/site-packages"))
    declared = declarations(site) if kinds else {}
    for key, (file, prefix) in LIBRARIES.items():
        for library in site.glob(f"nvidia/**/lib/{file}*"):
            for name in exported(library):
                if re.match(prefix, name):
                    add(lists, key, name, declared)
    for header in site.glob("nvidia/**/include/cuda.h"):
        names = {name for name in prototypes(header) if re.fullmatch(DRIVER, name)}
        for old, new in macros(header).items():
            names |= {name for name in (old, new) if re.fullmatch(DRIVER, name)}
        for typedefs in (header.with_name("cudaTypedefs.h"), header.with_name("cudaProfilerTypedefs.h")):
            if typedefs.is_file():
                names |= {f"cu{n}" for n in re.findall(r"\* ?PFN_cu(\w+?)_v\d+\w*\)", typedefs.read_text())}
        for name in names:
            add(lists, "driver", name, declared)
    for module in site.glob("pynvml.py"):
        for name in re.findall(r"['\"](nvml[A-Z]\w+)['\"]", module.read_text()):
            lists["nvml"][name] = "output" if re.search(r"Get|Query|Create|Count|Validate|Error", name) else "command"


def main() -> None:
    lists: dict[str, dict[str, str]] = {key: {} for key in [*LIBRARIES, "driver", "nvml"]}
    for path in sorted(NAMES.glob("*.txt")):
        lists[path.stem] = dict(line.split() for line in path.read_text().splitlines() if line and line[0] != "#")
    for root in sys.argv[1:]:
        environment(Path(root), lists)
    NAMES.mkdir(exist_ok=True)
    for key, names in lists.items():
        lines = [f"{name} {kind}" for name, kind in sorted(names.items())]
        (NAMES / f"{key}.txt").write_text("\n".join(lines) + "\n")
        kinds = {kind: list(names.values()).count(kind) for kind in ("command", "output", "pointer", "void")}
        print(f"{key}: {len(names)} names, {kinds}")


if __name__ == "__main__":
    main()
