"""nvidia-smi for imaginary GPUs: the list, queries as CSV, and the plain table.

    arguments ─▶ what is asked ─▶ libnvidia-ml.so.1, ours ─▶ lines as the real program prints them

What an imaginary GPU has no figure of is [N/A], as on GPUs that lack a sensor. What is not known here is refused by
name, with exit code 2.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any, Callable, Dict, List, NoReturn, Tuple

NOTHING = "[N/A]"
MIB = 1 << 20
ROOM = 96  # bytes of a text
MOST = 4096  # processes


class Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [
        (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")
    ]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


class Gpu:
    """One GPU, asked anew for each figure."""

    def __init__(self, library: Any, index: int) -> None:
        self.library = library
        self.index = index
        self.handle = ctypes.c_void_p()
        _check(library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(self.handle)), "no GPU %d" % index)

    def text(self, function: str) -> str:
        into = ctypes.create_string_buffer(ROOM)
        _check(getattr(self.library, function)(self.handle, into, ROOM), function)
        return into.value.decode()

    def memory(self, part: str) -> int:
        into = Memory(version=ctypes.sizeof(Memory) | 2 << 24)
        _check(self.library.nvmlDeviceGetMemoryInfo_v2(self.handle, ctypes.byref(into)), "memory")
        return int(getattr(into, part))

    def capability(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        _check(
            self.library.nvmlDeviceGetCudaComputeCapability(self.handle, ctypes.byref(major), ctypes.byref(minor)), ""
        )
        return "%d.%d" % (major.value, minor.value)

    def bus(self) -> str:
        pci = ctypes.create_string_buffer(256)
        _check(self.library.nvmlDeviceGetPciInfo_v3(self.handle, pci), "PCI")
        return pci.raw[36:68].split(b"\0")[0].decode()

    def processes(self) -> List[Tuple[int, int, str]]:
        """(process, bytes, name) of all that hold memory."""
        all_of, count = (Process * MOST)(), ctypes.c_uint(MOST)
        _check(
            self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.handle, ctypes.byref(count), all_of), "processes"
        )
        found = []
        for one in all_of[: count.value]:
            into = ctypes.create_string_buffer(256)
            known = self.library.nvmlSystemGetProcessName(one.pid, into, 256) == 0
            found.append((one.pid, one.used, into.value.decode(errors="replace") if known else "[Not Found]"))
        return found


class Machine:
    """The library and what is the same for all GPUs."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            _fail("couldn't find libnvidia-ml.so library in your system (%s)" % error, 12)
        _check(self.library.nvmlInit_v2(), "couldn't communicate with the NVIDIA driver", 9)
        count = ctypes.c_uint()
        _check(self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)), "count")
        self.gpus = [Gpu(self.library, n) for n in range(count.value)]

    def driver(self) -> str:
        into = ctypes.create_string_buffer(ROOM)
        _check(self.library.nvmlSystemGetDriverVersion(into, ROOM), "driver")
        return into.value.decode()

    def cuda(self) -> str:
        version = ctypes.c_int()
        _check(self.library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)), "CUDA")
        return "%d.%d" % (version.value // 1000, version.value % 1000 // 10)


Figure = Tuple[str, Callable[[Machine, Gpu], str]]  # unit, "" for texts; the figure


def _size(part: str) -> Figure:
    return "MiB", lambda _, gpu: "%d" % (gpu.memory(part) // MIB)


FIELDS: Dict[str, Figure] = {
    "timestamp": ("", lambda *_: time.strftime("%Y/%m/%d %H:%M:%S.000")),
    "driver_version": ("", lambda machine, _: machine.driver()),
    "count": ("", lambda machine, _: "%d" % len(machine.gpus)),
    "index": ("", lambda _, gpu: "%d" % gpu.index),
    "name": ("", lambda _, gpu: gpu.text("nvmlDeviceGetName")),
    "uuid": ("", lambda _, gpu: gpu.text("nvmlDeviceGetUUID")),
    "pci.bus_id": ("", lambda _, gpu: gpu.bus()),
    "compute_cap": ("", lambda _, gpu: gpu.capability()),
    "memory.total": _size("total"),
    "memory.reserved": _size("reserved"),
    "memory.used": _size("used"),
    "memory.free": _size("free"),
    "utilization.gpu": ("%", lambda *_: "0"),
    "utilization.memory": ("%", lambda *_: "0"),
    "persistence_mode": ("", lambda *_: "Enabled"),
    "compute_mode": ("", lambda *_: "Default"),
    "mig.mode.current": ("", lambda *_: "Disabled"),
    "display_active": ("", lambda *_: "Disabled"),
}
ALIASES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "pci.bus_id": "pci.bus_id"}
UNKNOWN = {  # figures that a GPU has and an imaginary one has not, with their units
    "temperature.gpu": "", "temperature.memory": "", "fan.speed": "%", "pstate": "", "serial": "", "vbios_version": "",
    "power.draw": "W", "power.limit": "W", "power.max_limit": "W", "enforced.power.limit": "W", "clocks.sm": "MHz",
    "clocks.gr": "MHz", "clocks.mem": "MHz", "clocks.current.sm": "MHz", "clocks.current.memory": "MHz",
    "clocks.max.sm": "MHz", "clocks.max.memory": "MHz", "ecc.errors.uncorrected.volatile.total": "",
    "ecc.mode.current": "", "ecc.mode.pending": "", "mig.mode.pending": "", "power.min_limit": "W",
    "power.default_limit": "W", "power.management": "", "power.draw.average": "W", "power.draw.instant": "W",
    "clocks.video": "MHz", "clocks.max.gr": "MHz", "clocks_throttle_reasons.active": "", "display_mode": "",
    "driver_model.current": "", "accounting.mode": "", "pcie.link.gen.max": "", "pcie.link.width.max": "",
    "pcie.link.gen.current": "", "pcie.link.width.current": "", "utilization.encoder": "%", "utilization.decoder": "%",
}  # fmt: skip
for _name, _unit in UNKNOWN.items():
    FIELDS[_name] = (_unit, lambda *_: NOTHING)

APPS: Dict[str, str] = {"pid": "", "process_name": "", "name": "", "used_gpu_memory": "MiB", "used_memory": "MiB",
                        "gpu_uuid": "", "gpu_name": "", "gpu_bus_id": "", "timestamp": ""}  # fmt: skip


def _fail(text: str, code: int = 2) -> NoReturn:
    sys.stdout.write(text + "\n")
    sys.exit(code)


def _check(error: int, what: str, code: int = 255) -> None:
    if error:
        _fail("NVIDIA-SMI has failed: %s (error %d)" % (what, error), code)


def queried(machine: Machine, gpus: List[Gpu], names: List[str], form: List[str]) -> List[str]:
    """The lines of --query-gpu."""
    figures = []
    for name in names:
        figure = FIELDS.get(ALIASES.get(name, name))
        if figure is None:
            _fail('Field "%s" is not a valid field to query.' % name)
        figures.append(figure)
    return _csv(names, [f[0] for f in figures], [[f[1](machine, gpu) for f in figures] for gpu in gpus], form)


def applications(gpus: List[Gpu], names: List[str], form: List[str]) -> List[str]:
    """The lines of --query-compute-apps."""
    for name in names:
        if name not in APPS:
            _fail('Field "%s" is not a valid field to query.' % name)
    rows = []
    for gpu in gpus:
        for pid, used, called in gpu.processes():
            row = {"pid": "%d" % pid, "process_name": called, "name": called, "used_gpu_memory": "%d" % (used // MIB),
                   "gpu_uuid": gpu.text("nvmlDeviceGetUUID"), "gpu_name": gpu.text("nvmlDeviceGetName"),
                   "gpu_bus_id": gpu.bus(), "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000")}  # fmt: skip
            row["used_memory"] = row["used_gpu_memory"]
            rows.append([row[name] for name in names])
    return _csv(names, [APPS[name] for name in names], rows, form)


def _csv(names: List[str], units: List[str], rows: List[List[str]], form: List[str]) -> List[str]:
    bare = "nounits" in form
    lines = []
    if "noheader" not in form:
        lines.append(", ".join("%s [%s]" % (n, u) if u else n for n, u in zip(names, units)))
    for row in rows:
        lines.append(", ".join("%s %s" % (v, u) if u and not bare and v != NOTHING else v for v, u in zip(row, units)))
    return lines


def table(machine: Machine, gpus: List[Gpu]) -> List[str]:
    """What nvidia-smi prints without arguments."""
    rule = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
    lines = [
        time.strftime("%a %b %d %H:%M:%S %Y"),
        "+" + "-" * 89 + "+",
        "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |"
        % (machine.driver(), machine.driver(), machine.cuda()),
        "|" + rule[1:-1] + "|",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|" + rule[1:-1].replace("-", "=") + "|",
    ]
    for gpu in gpus:
        memory = "%dMiB / %dMiB" % (gpu.memory("used") // MIB, gpu.memory("total") // MIB)
        lines += [
            "| %3d  %-27.27s    On  | %18s Off |                  N/A |"
            % (gpu.index, gpu.text("nvmlDeviceGetName"), gpu.bus()),
            "| N/A   N/A   N/A               N/A / N/A | %22s |      0%%      Default |" % memory,
            "|                                         |                        |             Disabled |",
            rule,
        ]
    lines += ["", "+" + "-" * 89 + "+", "| %-87s |" % "Processes:",
              "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |",
              "|        ID   ID                                                               Usage      |",
              "|" + "=" * 89 + "|"]  # fmt: skip
    running = [
        "|%5d   N/A  N/A   %14d      C   %-32.32s %9dMiB |" % (gpu.index, pid, name, used // MIB)
        for gpu in gpus
        for pid, used, name in gpu.processes()
    ]
    return lines + (running or ["| %-87s |" % " No running processes found"]) + ["+" + "-" * 89 + "+"]


def main(arguments: List[str]) -> None:
    """Answer one call."""
    asked: Dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, given, value = word.partition("=")
        if name in ("-L", "--list-gpus"):
            asked["list"] = ""
        elif name in ("-i", "--id", "--query-gpu", "--query-compute-apps", "--format", "-f", "--filename"):
            if not given and not rest:
                _fail("Option %s needs a value." % name)
            asked[name.lstrip("-")] = value if given else rest.pop(0)
        elif name in ("-h", "--help"):
            _fail(
                "An imaginary nvidia-smi: -L, -i N, --query-gpu=…, --query-compute-apps=…, --format=csv, or nothing", 0
            )
        else:
            _fail("Invalid combination of input arguments: an imaginary nvidia-smi does not know %s." % word)
    machine = Machine()
    form = [part.strip() for part in asked.get("format", "").split(",")]
    gpus = machine.gpus
    wanted = [w.strip().lower() for w in asked.get("id", asked.get("i", "")).split(",") if w.strip()]
    if wanted:
        gpus = [g for g in gpus if {str(g.index), g.text("nvmlDeviceGetUUID").lower(), g.bus().lower()} & set(wanted)]
        if not gpus:
            _fail("No devices were found", 6)
    if "list" in asked:
        lines = [
            "GPU %d: %s (UUID: %s)" % (g.index, g.text("nvmlDeviceGetName"), g.text("nvmlDeviceGetUUID")) for g in gpus
        ]
    elif "query-gpu" in asked or "query-compute-apps" in asked:
        if "csv" not in form:
            _fail('"--format=" is missing: csv is what there is.')
        names = [name.strip() for name in asked.get("query-gpu", asked.get("query-compute-apps", "")).split(",")]
        lines = queried(machine, gpus, names, form) if "query-gpu" in asked else applications(gpus, names, form)
    else:
        lines = table(machine, gpus)
    text = "".join(line + "\n" for line in lines)
    target = asked.get("f") or asked.get("filename")
    if target:
        with open(target, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
