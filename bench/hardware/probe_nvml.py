"""What NVML and the driver answer about the card. Compared with the imaginary one's answers by name."""

from __future__ import annotations

import ctypes
import sys

from card import Driver, Figures, Nvml, index

NUMBERS = {
    "nvmlDeviceGetArchitecture": (), "nvmlDeviceGetBrand": (), "nvmlDeviceGetComputeMode": (), "nvmlDeviceGetPersistenceMode": (),
    "nvmlDeviceGetNumGpuCores": (), "nvmlDeviceGetMemoryBusWidth": (), "nvmlDeviceGetPowerManagementDefaultLimit": (),
    "nvmlDeviceGetMultiGpuBoard": (), "nvmlDeviceGetMaxPcieLinkGeneration": (), "nvmlDeviceGetMaxPcieLinkWidth": (),
}  # fmt: skip
LAST_ATTRIBUTE = 148
LIMITS = ["stack size", "printf buffer", "malloc heap", "runtime sync depth", "pending launches", "fetch granularity"]


def answers(figures: Figures, nvml: Nvml) -> None:
    for name in ("nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion"):
        figures.say(name, nvml.text(name), "text", "NVML")
    for name in ("nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetVbiosVersion"):
        figures.say(name, nvml.text(name, nvml.device), "text", "NVML")
    for name, words in NUMBERS.items():
        figures.say(name, nvml.number(name, *words), "number", "NVML")
    for domain, clock in enumerate(("graphics", "SM", "memory")):
        name = f"nvmlDeviceGetMaxClockInfo, {clock}"
        figures.say(name, nvml.number("nvmlDeviceGetMaxClockInfo", ctypes.c_uint(domain)), "MHz", "NVML")
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvml.must("nvmlDeviceGetCudaComputeCapability", nvml.device, ctypes.byref(major), ctypes.byref(minor))
    figures.say("nvmlDeviceGetCudaComputeCapability", f"{major.value}.{minor.value}", "text", "NVML")


def memory(figures: Figures, nvml: Nvml) -> None:
    for name, found in (("v1", nvml.memory()), ("v2", nvml.memory2())):
        for part in ("total", "reserved", "used"):
            if hasattr(found, part):
                figures.say(
                    f"nvmlDeviceGetMemoryInfo {name}, {part}", getattr(found, part), "bytes", "NVML", context="none"
                )


def bar1(figures: Figures, nvml: Nvml) -> None:
    found = (ctypes.c_ulonglong * 3)()
    nvml.must("nvmlDeviceGetBAR1MemoryInfo", nvml.device, found)
    figures.say("nvmlDeviceGetBAR1MemoryInfo, total", found[0], "bytes", "NVML")


def driver(figures: Figures) -> None:
    cuda = Driver()
    cuda.start()
    for which in range(1, LAST_ATTRIBUTE + 1):
        figures.say(f"cuDeviceGetAttribute {which}", cuda.attribute(which), "number", "CUDA's driver")
    total = ctypes.c_size_t()
    cuda.must("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
    figures.say("cuDeviceTotalMem", total.value, "bytes", "CUDA's driver")
    cuda.context()
    figures.say("cuMemGetInfo, total", cuda.memory()[1], "bytes", "CUDA's driver")
    for which, name in enumerate(LIMITS):
        figures.say(f"cuCtxGetLimit, {name}", cuda.limit(which), "number", "CUDA's driver")


def main() -> None:
    figures, nvml = Figures(sys.argv[1]), Nvml(index())
    figures.part("NVML's answers", lambda: answers(figures, nvml))
    figures.part("NVML's memory", lambda: memory(figures, nvml))
    figures.part("NVML's BAR1", lambda: bar1(figures, nvml))
    figures.part("the driver's answers", lambda: driver(figures))


if __name__ == "__main__":
    main()
