"""Libraries that are opened by name or by path lead to the imaginary ones: from C, from ctypes, with RTLD_DEEPBIND."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import A10, LIBRARY, VERSIONS, environment, python

# Each real library of CUDA beside PyTorch, opened as callers do; whether an entry point found in it is the preloaded one.
EACH = """
import ctypes, json, os, sys
names = {"libcudart": "cudaMalloc", "libcublas": "cublasCreate_v2", "libcublasLt": "cublasLtCreate", "libcudnn": "cudnnCreate",
         "libcudnn_graph": "cudnnGetVersion", "libcufft": "cufftPlan1d", "libcusolver": "cusolverDnCreate", "libcurand": "curandCreateGenerator",
         "libcusparse": "cusparseCreate", "libnccl": "ncclGetUniqueId", "libcupti": "cuptiGetVersion", "libnvrtc": "nvrtcVersion"}
def at(library, name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
def where(address):
    for line in open("/proc/self/maps"):
        low, high = (int(x, 16) for x in line.split()[0].split("-"))
        if low <= address < high:
            return os.path.basename(line.split()[-1])
found = {}
for folder, _, files in os.walk(sys.argv[1]):
    for file in files:
        stem = file.partition(".so")[0]
        if ".so." in file and stem in names:
            path = os.path.join(folder, file)
            for way, opened in (("path", path), ("name", file)):
                for mode in (0, os.RTLD_DEEPBIND):
                    library = ctypes.CDLL(opened, mode)
                    found["%s %s %d" % (stem, way, mode)] = where(at(library, names[stem]))
version = ctypes.c_int()
ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
found["driver"] = version.value
print(json.dumps(found))
"""

# As a program of C: opens by a name that only its own RUNPATH leads to, and what a library of its own is given.
PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static const char *home(void *handle, const char *name) {
    Dl_info info;
    void *at = handle ? dlsym(handle, name) : NULL;
    return !at ? "nowhere" : dladdr(at, &info) ? strrchr(info.dli_fname, '/') + 1 : "?";
}
int main(int count, char **words) {
    (void)count;
    printf("%s\\n", dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD) ? "loaded" : "not loaded");
    printf("%s\\n", home(dlopen("libnccl.so.2", RTLD_LAZY), "ncclGetUniqueId"));
    printf("%s\\n", home(dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD), "ncclGetUniqueId"));
    printf("%s\\n", dlopen("libcudnn.so.77", RTLD_LAZY) ? "found" : dlerror());
    void *plugin = dlopen(words[1], RTLD_NOW | RTLD_DEEPBIND);
    const char *(*from_plugin)(void) = (const char *(*)(void))dlsym(plugin, "from_plugin");
    printf("%s\\n", from_plugin());
    return 0;
}
"""
PLUGIN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
const char *from_plugin(void) {
    Dl_info info;
    void *at = dlsym(dlopen("libnccl.so.2", RTLD_LAZY | RTLD_DEEPBIND), "ncclGetUniqueId");
    return at && dladdr(at, &info) ? strrchr(info.dli_fname, '/') + 1 : "nowhere";
}
"""

LINKS = """
import ctypes, json
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
one, other, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(one)) == nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(other)) == 0
def ask(name, *what):
    error = getattr(nvml, name)(*what, ctypes.byref(value))
    return value.value if error == 0 else "error %d" % error
print(json.dumps({
    "peers": [ask("nvmlDeviceGetP2PStatus", one, other, kind) for kind in range(6)],
    "itself": ask("nvmlDeviceGetP2PStatus", one, one, 0),
    "links": [ask("nvmlDeviceGetNvLinkState", one, link) for link in (0, 11, 12, 18)],
    "capable": [ask("nvmlDeviceGetNvLinkCapability", one, 0, what) for what in range(7)],
    "pcie": [ask("nvmlDeviceGetCurrPcieLinkGeneration", one), ask("nvmlDeviceGetMaxPcieLinkWidth", one)],
    "ancestor": [ask("nvmlDeviceGetTopologyCommonAncestor", one, two) for two in (one, other)],
}))
"""


def site(version: str) -> Path:
    return next((Path(python(version)).parents[1]).glob("lib/python3*/site-packages"))


def printed(command: list[str], **more: str) -> str:
    done = subprocess.run(command, env=environment(None, A10, **more), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


class Opened(unittest.TestCase):
    def test_each_library_by_path_and_name(self) -> None:
        for version in VERSIONS:
            with self.subTest(version):
                folders = sorted({str(file.parent) for file in site(version).glob("nvidia/**/lib*.so.*")})
                libraries = ":".join([str(LIBRARY.parent), *folders])
                script = [python(version), "-c", EACH, str(site(version) / "nvidia")]
                found = json.loads(printed(script, LD_LIBRARY_PATH=libraries))
                self.assertGreaterEqual(found.pop("driver"), 12000)
                compiler = {key: file for key, file in found.items() if key.startswith("libnvrtc")}
                self.assertEqual(len(compiler), 4)
                for key, file in compiler.items():  # compiles without a device: the real one
                    self.assertTrue(file.startswith("libnvrtc"), (key, file))
                ours = {key: file for key, file in found.items() if key not in compiler}
                self.assertGreaterEqual(len(ours), 10 * 4, found)
                self.assertEqual(set(ours.values()), {LIBRARY.name}, found)

    def test_which_version_of_cupti(self) -> None:
        """What its header says, also of CUDA 13, whose CUPTI asks the driver for more than ours has."""
        script = (
            "import ctypes, sys; version, words = ctypes.c_uint(), ctypes.c_char_p()\n"
            "runtime, cupti = (ctypes.CDLL(file) for file in sys.argv[1:])\n"
            "assert cupti.cuptiGetErrorMessage(1, ctypes.byref(words)) == 0 and words.value\n"
            "print(cupti.cuptiGetVersion(ctypes.byref(version)), version.value)"
        )
        for version in VERSIONS:
            with self.subTest(version):
                headers, runtimes, libraries = (
                    list(site(version).glob("nvidia/**/" + name))
                    for name in ("cupti_version.h", "libcudart.so.*", "libcupti.so.*")
                )
                found = re.search(r"#define CUPTI_API_VERSION (\d+)", headers[0].read_text())
                assert found is not None
                said = printed([python(version), "-c", script, str(runtimes[0]), str(libraries[0])])
                error, number = map(int, said.split())
                known = int(found[1])  # from CUDA 13 on its last digits are an update of the toolkit
                self.assertEqual((error, number // 100), (0, known // 100))
                self.assertTrue(number >= known if known > 130000 else number == known, (number, known))

    def test_a_wheels_own_copy(self) -> None:
        """A library that auditwheel copied, under the names that its versions give."""
        script = (
            "import ctypes, sys; real = [ctypes.CDLL(file) for file in sys.argv[1:]]\n"
            "print(*{ctypes.cast(library.cudaMalloc, ctypes.c_void_p).value for library in real})"
        )
        real = next(site(VERSIONS[0]).glob("nvidia/**/libcudart.so.*"))
        with tempfile.TemporaryDirectory() as folder:
            names = ("libcudart.e8e8b82a.so.12", "libcudart-1b184726.so.12", "libcudart.so.12")
            files = [shutil.copy(real, f"{folder}/{name}") for name in names]
            found = printed([python(VERSIONS[0]), "-c", script, *files]).split()
        self.assertEqual(len(found), 1, "each is the preloaded one")

    def test_a_program_finds_it_where_it_would(self) -> None:
        """By its own RUNPATH; not where it would find none; also out of a library that was opened with RTLD_DEEPBIND."""
        nccl = next(site(VERSIONS[0]).glob("nvidia/**/libnccl.so.2")).parent
        with tempfile.TemporaryDirectory() as folder:
            program, plugin = f"{folder}/program", f"{folder}/plugin.so"
            for source, out, *flags in ((PROGRAM, program), (PLUGIN, plugin, "-shared", "-fPIC")):
                command = ["gcc", "-xc", "-", "-o", out, *flags, f"-Wl,--enable-new-dtags,-rpath,{nccl}", "-ldl"]
                subprocess.run(command, input=source, text=True, check=True)
            before, first, again, absent, out_of_plugin = printed([program, plugin]).splitlines()
        self.assertEqual((before, first, again), ("not loaded", LIBRARY.name, LIBRARY.name))
        self.assertIn("libcudnn.so.77: cannot open shared object file", absent)
        self.assertEqual(out_of_plugin, LIBRARY.name)

    def test_how_devices_reach_each_other(self) -> None:
        """As the GPU's row says: over NVLink on an A100 of that form, over PCIe on an A10, not at all where told so."""
        a100 = "count=2;name=NVIDIA A100-SXM4-80GB;memory=84987740160;context=500000000;cc=8.0;sms=108"
        invalid, lacks = "error 2", "error 3"
        for spec, peers, links, capable in (
            (a100, [0, 0, 0, 0, 0, invalid], [1, 1, lacks, invalid], [1, 0, 1, 0, 0, 1, invalid]),
            (f"count=2;{A10}", [0, 0, 5, 0, 0, invalid], [0, 0, lacks, invalid], [*[0] * 6, invalid]),
            (f"count=2;peers=0;{A10}", [5, 5, 5, 5, 5, invalid], [0, 0, lacks, invalid], [*[0] * 6, invalid]),
        ):
            told = json.loads(printed([python(VERSIONS[0]), "-c", LINKS], HIGHTIDE_DEVICE_SPEC=spec))
            self.assertEqual((told["peers"], told["itself"], told["links"]), (peers, 5, links))
            self.assertEqual(told["capable"], capable)
            self.assertEqual((told["pcie"], told["ancestor"]), ([4, 16], [0, 40]))


if __name__ == "__main__":
    unittest.main()
