"""Our declarations of CUDA's structures and numbers against the real headers, and our entry points against theirs.

The headers come with the CUDA builds of PyTorch (12.4, 12.8, 13.2) and the packages of requirements/device.txt.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import CACHE, DEVICE, LIBRARY, VERSIONS, environment

sys.path.insert(0, str(DEVICE / "tools"))
import names

SOURCE = DEVICE / "src"

# header: [(file of ours, struct of ours, real type, whether sizes agree, "ours=real ..." fields in order)]
STRUCTS: dict[str, list[tuple[str, str, str, bool, str]]] = {
    "cuda_runtime_api.h": [
        ("abi.h", "cuda_pointer_attributes_{major}", "struct cudaPointerAttributes", True,
         "type device device_pointer=devicePointer host_pointer=hostPointer"),
        ("abi.h", "cuda_func_attributes", "struct cudaFuncAttributes", False,
         "shared_bytes=sharedSizeBytes const_bytes=constSizeBytes local_bytes=localSizeBytes max_threads=maxThreadsPerBlock "
         "registers=numRegs ptx_version=ptxVersion binary_version=binaryVersion cache_mode_ca=cacheModeCA "
         "max_dynamic_shared=maxDynamicSharedSizeBytes preferred_carveout=preferredShmemCarveout cluster_set=clusterDimMustBeSet"),
        ("abi.h", "cuda_dim3", "dim3", True, "x y z"),
        ("abi.h", "cuda_launch_config", "cudaLaunchConfig_t", True,
         "grid=gridDim block=blockDim dynamic_shared=dynamicSmemBytes stream attributes=attrs attribute_count=numAttrs"),
        ("abi.h", "cuda_pool_props", "struct cudaMemPoolProps", True,
         "type=allocType handles=handleTypes location security=win32SecurityAttributes max_bytes=maxSize"),
        ("abi.h", "cuda_pitched", "struct cudaPitchedPtr", True, "at=ptr pitch width=xsize height=ysize"),
        ("abi.h", "cuda_extent", "struct cudaExtent", True, "width height depth"),
        ("graph.c", "instantiate_params", "cudaGraphInstantiateParams", True,
         "flags upload=uploadStream error_node=errNode_out result=result_out"),
        ("graph.c", "update_result", "cudaGraphExecUpdateResultInfo", True, "result error_node=errorNode error_from=errorFromNode"),
        ("graph.c", "call", "struct cudaHostNodeParams", True, "call=fn data=userData"),
        ("copy.c", "ipc", "cudaIpcMemHandle_t", True, ""),
        ("copy.c", "ipc", "cudaIpcEventHandle_t", True, ""),
    ],
    "cuda.h": [
        ("abi.h", "cu_launch_config", "CUlaunchConfig", True,
         "grid=gridDimX block=blockDimX dynamic_shared=sharedMemBytes stream=hStream attributes=attrs attribute_count=numAttrs"),
        ("abi.h", "cu_kernel_node", "CUDA_KERNEL_NODE_PARAMS_v2", True,
         "function=func grid=gridDimX block=blockDimX dynamic_shared=sharedMemBytes arguments=kernelParams extra kernel=kern "
         "context=ctx"),
        ("abi.h", "cu_memset_node", "CUDA_MEMSET_NODE_PARAMS", True, "to=dst pitch value element_bytes=elementSize width height"),
        ("abi.h", "cu_copy_3d", "CUDA_MEMCPY3D", True,
         "src_at=srcXInBytes src_type=srcMemoryType src_host=srcHost src_device=srcDevice src_array=srcArray src_pitch=srcPitch "
         "src_height=srcHeight dst_at=dstXInBytes dst_type=dstMemoryType dst_host=dstHost dst_device=dstDevice "
         "dst_array=dstArray dst_pitch=dstPitch dst_height=dstHeight width=WidthInBytes height=Height depth=Depth"),
        ("abi.h", "cu_conditional_node", "CUDA_CONDITIONAL_NODE_PARAMS", False, "handle type size graphs=phGraph_out"),
        ("graph_driver.c", "host_node", "CUDA_HOST_NODE_PARAMS", True, "call=fn data=userData"),
        ("abi.h", "cuda_location", "CUmemLocation", True, "type id"),
        ("abi.h", "cuda_access", "CUmemAccessDesc", True, "location flags"),
        ("abi.h", "cu_alloc_prop", "CUmemAllocationProp", True,
         "type handles=requestedHandleTypes location security=win32HandleMetaData compression=allocFlags.compressionType "
         "rdma=allocFlags.gpuDirectRDMACapable usage=allocFlags.usage"),
        ("abi.h", "cuda_memcpy_2d", "CUDA_MEMCPY2D", True,
         "src_x=srcXInBytes src_y=srcY src_type=srcMemoryType src_host=srcHost src_device=srcDevice src_array=srcArray "
         "src_pitch=srcPitch dst_x=dstXInBytes dst_y=dstY dst_type=dstMemoryType dst_host=dstHost dst_device=dstDevice "
         "dst_array=dstArray dst_pitch=dstPitch width=WidthInBytes height=Height"),
    ],
    "cublasLt.h": [("cublas.c", "heuristic", "cublasLtMatmulHeuristicResult_t", True,
                    "algorithm=algo workspace=workspaceSize state waves=wavesCount reserved")],
    "cudnn.h": [("cudnn_legacy.c", "performance", "cudnnConvolution%sAlgoPerf_t" % way, True,
                 "algorithm=algo status ms=time memory determinism math=mathType") for way in ("Fwd", "BwdData", "BwdFilter")],
    "nccl.h": [
        ("nccl.c", "config", "ncclConfig_t", False,
         "size magic version blocking cga=cgaClusterSize min_ctas=minCTAs max_ctas=maxCTAs net=netName split_share=splitShare"),
    ],
    "cufile.h": [
        ("abi.h", "cufile_descr", "CUfileDescr_t", True, "type fd=handle.fd operations=fs_ops"),
        ("cufile.c", "cufile_status", "CUfileError_t", True, "error=err driver=cu_err"),
    ],
    "nvml.h": [
        ("nvml.c", "pci", "nvmlPciInfo_t", True,
         "legacy=busIdLegacy domain bus device device_id=pciDeviceId subsystem=pciSubSystemId bus_id=busId"),
        ("nvml.c", "memory", "nvmlMemory_t", True, "total free used"),
        ("nvml.c", "memory", "nvmlBAR1Memory_t", True, "total=bar1Total free=bar1Free used=bar1Used"),
        ("nvml.c", "memory_v2", "nvmlMemory_v2_t", True, "version total reserved free used"),
        ("nvml.c", "process", "nvmlProcessInfo_t", True,
         "pid used=usedGpuMemory gpu_instance=gpuInstanceId compute_instance=computeInstanceId"),
        ("nvml.c", "utilisation", "nvmlUtilization_t", True, "gpu memory"),
        ("nvml.c", "fabric", "nvmlGpuFabricInfo_t", True, "cluster=clusterUuid status clique=cliqueId state"),
    ],
}  # fmt: skip

# header: "number=real name"; an enumeration of ours by its own name
NUMBERS = {
    "cuda_runtime_api.h": (
        "POOL_FOLLOW=cudaMemPoolReuseFollowEventDependencies POOL_OPPORTUNISTIC=cudaMemPoolReuseAllowOpportunistic "
        "POOL_INTERNAL=cudaMemPoolReuseAllowInternalDependencies POOL_THRESHOLD=cudaMemPoolAttrReleaseThreshold "
        "POOL_RESERVED=cudaMemPoolAttrReservedMemCurrent POOL_RESERVED_HIGH=cudaMemPoolAttrReservedMemHigh "
        "POOL_USED=cudaMemPoolAttrUsedMemCurrent POOL_USED_HIGH=cudaMemPoolAttrUsedMemHigh "
        "CUDA_MEMORY_UNREGISTERED=cudaMemoryTypeUnregistered CUDA_MEMORY_HOST=cudaMemoryTypeHost "
        "CUDA_MEMORY_DEVICE=cudaMemoryTypeDevice CUDA_MEMORY_MANAGED=cudaMemoryTypeManaged "
        "0=cudaStreamCaptureModeGlobal 1=cudaStreamCaptureModeThreadLocal 2=cudaStreamCaptureModeRelaxed "
        "0=cudaStreamCaptureStatusNone 1=cudaStreamCaptureStatusActive 2=cudaStreamCaptureStatusInvalidated "
        "2=cudaEventDisableTiming 1=cudaMemLocationTypeDevice 3=cudaMemAccessFlagsProtReadWrite "
        "0=cudaGraphNodeTypeKernel 1=cudaGraphNodeTypeMemcpy 2=cudaGraphNodeTypeMemset 3=cudaGraphNodeTypeHost "
        "4=cudaGraphNodeTypeGraph 5=cudaGraphNodeTypeEmpty 6=cudaGraphNodeTypeWaitEvent 7=cudaGraphNodeTypeEventRecord "
        "CUDA_OUT_OF_MEMORY=cudaErrorMemoryAllocation CUDA_INVALID_HANDLE=cudaErrorInvalidResourceHandle"
    ),
    "cuda.h": (
        "1=CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK 4=CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z 5=CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X "
        "8=CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK 10=CU_DEVICE_ATTRIBUTE_WARP_SIZE "
        "12=CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK 13=CU_DEVICE_ATTRIBUTE_CLOCK_RATE "
        "16=CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT 32=CU_DEVICE_ATTRIBUTE_ECC_ENABLED 33=CU_DEVICE_ATTRIBUTE_PCI_BUS_ID "
        "36=CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE 37=CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH "
        "38=CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE 39=CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR "
        "41=CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING 75=CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR "
        "76=CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR 81=CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR "
        "82=CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR 83=CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY "
        "87=CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO 95=CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH "
        "97=CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN "
        "102=CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED "
        "103=CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED "
        "106=CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR 108=CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE "
        "109=CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE 111=CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK "
        "115=CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED 120=CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH "
        "1=CU_MEM_ALLOCATION_TYPE_PINNED 1=CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR 1=CU_MEM_LOCATION_TYPE_DEVICE "
        "1=CU_MEMORYTYPE_HOST 2=CU_MEMORYTYPE_DEVICE 1=CU_POINTER_ATTRIBUTE_CONTEXT 2=CU_POINTER_ATTRIBUTE_MEMORY_TYPE "
        "7=CU_POINTER_ATTRIBUTE_BUFFER_ID 8=CU_POINTER_ATTRIBUTE_IS_MANAGED 9=CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL "
        "11=CU_POINTER_ATTRIBUTE_RANGE_START_ADDR 12=CU_POINTER_ATTRIBUTE_RANGE_SIZE 13=CU_POINTER_ATTRIBUTE_MAPPED "
        "8=CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES 4=CU_FUNC_ATTRIBUTE_NUM_REGS"
    ),
    "cublas_v2.h": "1=CUBLAS_STATUS_NOT_INITIALIZED 3=CUBLAS_STATUS_ALLOC_FAILED 7=CUBLAS_STATUS_INVALID_VALUE 15=CUBLAS_STATUS_NOT_SUPPORTED",
    "nccl.h": (
        "1=ncclUnhandledCudaError 2=ncclSystemError 4=ncclInvalidArgument 5=ncclInvalidUsage 6=ncclRemoteError 0=ncclSum 1=ncclProd "
        "2=ncclMax 3=ncclMin 4=ncclAvg 0=ncclInt8 1=ncclUint8 2=ncclInt32 3=ncclUint32 4=ncclInt64 5=ncclUint64 6=ncclFloat16 "
        "7=ncclFloat32 8=ncclFloat64 128=sizeof(ncclUniqueId)"
    ),
    "cufft.h": "16=CUFFT_NOT_SUPPORTED",
    "cusparse.h": "10=CUSPARSE_STATUS_NOT_SUPPORTED",
    "cusolverDn.h": "9=CUSOLVER_STATUS_NOT_SUPPORTED",
    "cufile.h": "5022=CU_FILE_INVALID_VALUE 1=CU_FILE_HANDLE_TYPE_OPAQUE_FD",
    "nvml.h": (
        "2=NVML_ERROR_INVALID_ARGUMENT 3=NVML_ERROR_NOT_SUPPORTED 6=NVML_ERROR_NOT_FOUND 7=NVML_ERROR_INSUFFICIENT_SIZE "
        "9=NVML_ERROR_DRIVER_NOT_LOADED 25=NVML_ERROR_ARGUMENT_VERSION_MISMATCH 0=NVML_P2P_STATUS_OK "
        "5=NVML_P2P_STATUS_NOT_SUPPORTED 2=NVML_P2P_CAPS_INDEX_NVLINK 0=NVML_TOPOLOGY_INTERNAL 40=NVML_TOPOLOGY_NODE"
    ),
}


CUDA_11 = "cuda_runtime"  # folder of its headers and its library

PROPERTIES_11 = """
#include <stdio.h>
#include <string.h>
#include <cuda_runtime_api.h>
struct { struct cudaDeviceProp p; unsigned char after[4096]; } room;
int main(void) {
    int version = 0;
    memset(&room, 0xa5, sizeof room);
    if (cudaRuntimeGetVersion(&version) || cudaGetDeviceProperties(&room.p, 0))
        return 1;
    for (unsigned i = 0; i < sizeof room.after; i++)
        if (room.after[i] != 0xa5)
            return 2;
    printf("%d %s %zu %d.%d %d %zu", version / 1000, room.p.name, room.p.totalGlobalMem, room.p.major, room.p.minor,
           room.p.multiProcessorCount, room.p.reservedSharedMemPerBlock);
    return 0;
}
"""


def text(file: str) -> str:
    return (SOURCE / file).read_text()


def struct(file: str, name: str, to: str) -> str:
    """The definition of a struct of ours, under another name."""
    found = re.search(rf"^struct {name} (\{{.*?\}});", text(file), re.S | re.M)
    assert found, f"{file}: struct {name}"
    return f"struct {to} {found[1]};\n"


def enums(file: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"\b([A-Z][A-Z0-9_]{4,}) = (\d+)", text(file))}


def includes(version: str) -> list[str]:
    site = next((CACHE / f"torch-{version}").glob("lib/python3*/site-packages"))
    more = next((CACHE / "device").glob("lib/python3*/site-packages"), None)
    folders = list(site.glob("nvidia/*/include"))
    # of the newer package only what no build of PyTorch brings: host_defines.h, nvml.h
    shared = next(CACHE.glob("torch-*/lib/python3*/site-packages/nvidia/*/include/cccl/nv"), None)  # for nv/target
    return [
        *(f"-I{p}" for p in folders),
        *(f"-idirafter{p}" for p in (more.glob("nvidia/*/include") if more else []) if p.parent.name != CUDA_11),
        *([f"-idirafter{shared.parent}"] if shared else []),
    ]


def has(header: str, flags: list[str]) -> bool:
    source = f"#include <{header}>\n"
    return (
        subprocess.run(
            ["gcc", "-xc", "-w", *flags, "-fsyntax-only", "-"], input=source, text=True, capture_output=True
        ).returncode
        == 0
    )


def assertions(header: str, major: int) -> str:
    lines = [f"#include <stddef.h>\n#include <stdio.h>\n#include <{header}>\n"]
    if header in ("cuda_runtime_api.h", "cuda.h", "cufile.h"):
        lines.append(f'#include "{SOURCE}/abi.h"\n')
    copied = set()
    for file, ours, real, same_size, fields in STRUCTS.get(header, []):
        ours = ours.format(major=major)
        name = ours
        if file != "abi.h":
            name = f"ht_copy_{ours}"
            if name not in copied:
                definition = struct(file, ours, name).replace("ht_host_call call", "void (*call)(void *)")
                lines.append("#include <stdint.h>\n" + definition)
                copied.add(name)
        if same_size:
            lines.append(f'_Static_assert(sizeof(struct {name}) == sizeof({real}), "sizeof {real}");\n')
        for field in fields.split():
            mine, _, theirs = field.partition("=")
            theirs = theirs or mine
            lines.append(
                f'_Static_assert(offsetof(struct {name}, {mine}) == offsetof({real}, {theirs}), "{real}.{theirs}");\n'
            )
            lines.append(
                f'_Static_assert(sizeof(((struct {name} *)0)->{mine}) >= sizeof((({real} *)0)->{theirs}), "{real}.{theirs}");\n'
            )
    for pair in NUMBERS.get(header, "").split():
        mine, theirs = pair.split("=")
        lines.append(f'_Static_assert({mine} == (int){theirs}, "{theirs}");\n')
    if header == "cuda_runtime_api.h":
        lines.append(f"""
#define HT_SAME(t, f, a) _Static_assert(offsetof(struct cudaDeviceProp, f) == offsetof(struct cuda_prop_{major}, f), "cudaDeviceProp." #f);
#define HT_NONE(t, f, a)
CUDA_DEVICE_PROP(HT_SAME, {"HT_SAME, HT_NONE" if major == 12 else "HT_NONE, HT_SAME"})
_Static_assert(sizeof(struct cudaDeviceProp) == sizeof(struct cuda_prop_{major}), "cudaDeviceProp");
""")
        for code, runtime in re.findall(r'\{(\d+), "(cuda\w+)"', text("errors.c")):
            lines.append(f'_Static_assert({code} == (int){runtime}, "{runtime}");\n')
    if header == "cuda.h":
        for code, driver in re.findall(r'\{(\d+), "cuda\w+", "(CUDA_\w+)"', text("errors.c")):
            lines.append(f'_Static_assert({code} == (int){driver}, "{driver}");\n')
    if header == "cudnn.h":
        lines.append("#include <cudnn_backend.h>\n")
        lines += cudnn_numbers()
    return "".join(lines)


def cudnn_numbers() -> list[str]:
    real = {
        "CUDNN_BAD_PARAM": "CUDNN_STATUS_BAD_PARAM", "CUDNN_NOT_SUPPORTED": "CUDNN_STATUS_NOT_SUPPORTED",
        "CUDNN_EXECUTION_FAILED": "CUDNN_STATUS_EXECUTION_FAILED", "CUDNN_NOT_INITIALIZED": "CUDNN_STATUS_NOT_INITIALIZED",
        "CUDNN_ENGINE": "CUDNN_BACKEND_ENGINE_DESCRIPTOR", "CUDNN_ENGINEHEUR": "CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR",
        "CUDNN_EXECUTION_PLAN": "CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR", "CUDNN_TYPE_HANDLE": "CUDNN_TYPE_HANDLE",
        "CUDNN_TYPE_VOID_PTR": "CUDNN_TYPE_VOID_PTR", "CUDNN_TYPE_DESCRIPTOR": "CUDNN_TYPE_BACKEND_DESCRIPTOR",
        "CUDNN_TYPE_CHAR": "CUDNN_TYPE_CHAR", "CUDNN_VARIANT_PACK_DATA_POINTERS": "CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS",
        "CUDNN_VARIANT_PACK_WORKSPACE": "CUDNN_ATTR_VARIANT_PACK_WORKSPACE",
    }  # fmt: skip
    newer = {  # since cuDNN 9.8
        "CUDNN_DEVICEPROP": "CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR", "CUDNN_DEVICEPROP_JSON": "CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION",
        "CUDNN_ENGINEHEUR_DEVICEPROP": "CUDNN_ATTR_ENGINEHEUR_DEVICEPROP", "CUDNN_ENGINE_DEVICEPROP": "CUDNN_ATTR_ENGINE_DEVICEPROP",
        "CUDNN_EXECUTION_PLAN_DEVICEPROP": "CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP",
    }  # fmt: skip
    ours = enums("cudnn.h")
    lines = [f'_Static_assert({ours[mine]} == (int){theirs}, "{theirs}");\n' for mine, theirs in real.items()]
    lines += ["#if CUDNN_VERSION >= 90800\n"]
    lines += [f'_Static_assert({ours[mine]} == (int){theirs}, "{theirs}");\n' for mine, theirs in newer.items()]
    return [*lines, "#endif\n"]


class Declarations(unittest.TestCase):
    def test_structures_and_numbers(self) -> None:
        self.assertTrue(VERSIONS, "no PyTorch environment: scripts/setup torch")
        checked, lacking = 0, set()
        for version in VERSIONS:
            flags = includes(version)
            major = 13 if has("cuda_runtime_api.h", flags) and self.defines("CUDART_VERSION", flags) >= 13000 else 12
            for header in sorted({*STRUCTS, *NUMBERS}):
                if not has(header, flags):  # the oldest build brings no cufile.h
                    lacking.add(header)
                    continue
                with self.subTest(f"{version} {header}"):
                    source = assertions(header, major)
                    done = subprocess.run(
                        ["gcc", "-xc", "-std=gnu11", "-w", *flags, "-fsyntax-only", "-"],
                        input=source,
                        text=True,
                        capture_output=True,
                    )
                    self.assertEqual(done.returncode, 0, done.stderr[:3000])
                    checked += source.count("_Static_assert")
        self.assertGreater(checked, 300 * len(VERSIONS))
        self.assertLessEqual(lacking, {"cufile.h"}, "no header: scripts/setup device")

    def test_cuda_11_has_less_room_for_properties(self) -> None:
        """Under the name that CUDA 13 has again: a program built with 11 must get no byte more than it has room for."""
        runtime = next((CACHE / "device").glob(f"lib/python3*/site-packages/nvidia/{CUDA_11}"), None)
        assert runtime, "no CUDA 11: scripts/setup device"
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "properties")
            headers = [f"-I{runtime}/include", f"-idirafter{runtime.parent}/cu13/include"]  # for crt/host_defines.h
            library = [f"-L{runtime}/lib", "-l:libcudart.so.11.0", f"-Wl,-rpath,{runtime}/lib"]
            build = ["gcc", "-xc", "-", "-o", program, *headers, *library]
            subprocess.run(build, input=PROPERTIES_11, text=True, check=True)
            done = subprocess.run([program], env=environment(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "11 NVIDIA A10 23729274880 8.6 72 1024"), done.stderr)

    @staticmethod
    def defines(name: str, flags: list[str]) -> int:
        source = f"#include <cuda_runtime_api.h>\nHT_IS {name}\n"
        done = subprocess.run(
            ["gcc", "-xc", "-E", "-P", *flags, "-"], input=source, text=True, capture_output=True, check=True
        )
        return int(done.stdout.split("HT_IS")[1].split()[0])


def symbols() -> dict[str, str]:
    done = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True)
    return {line.split()[-1]: line.split()[-2] for line in done.stdout.splitlines()}


class EntryPoints(unittest.TestCase):
    def test_every_public_one_exists(self) -> None:
        exported = symbols()
        for version in VERSIONS:
            lists: dict[str, dict[str, str]] = {key: {} for key in [*names.LIBRARIES, "driver", "nvml"]}
            names.environment(CACHE / f"torch-{version}", lists, kinds=False)
            for library, wanted in lists.items():
                with self.subTest(f"{version} {library}"):
                    self.assertEqual([name for name in wanted if name not in exported], [])
        self.assertGreater(len(exported), 4000)

    def test_what_is_not_modelled_fails_by_name_if_it_has_an_output(self) -> None:
        """Those that nobody wrote are weak; they look at no argument, so all can be called."""
        exported = symbols()
        written = {name for name, kind in exported.items() if kind != "W"}
        kinds = dict(line.split() for path in names.NAMES.glob("*.txt") for line in path.read_text().splitlines())
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            script = Path(folder, "call.py")
            script.write_text(CALL_ALL)
            todo = [f"{n} {k}" for n, k in kinds.items() if exported.get(n) == "W" and not alias(n, kinds)]
            done = subprocess.run(
                [sys.executable, script, str(LIBRARY)], input="\n".join(todo), text=True, capture_output=True, timeout=600,
                env={"HIGHTIDE_DEVICE_SPEC": "count=1", "PATH": "/usr/bin"},
            )  # fmt: skip
        self.assertEqual(done.stdout.split(), ["done"], done.stdout[:2000] + done.stderr[-2000:])
        self.assertGreater(len(todo), 2000)
        self.assertGreater(len(written), 1000)

    def test_no_table_is_handed_out(self) -> None:
        """NVRTC and CUDA's own runtime follow the pointer they get, unless the call failed."""
        library = ctypes.CDLL(str(LIBRARY))
        for ask in (library.cuGetExportTable, library.cudaGetExportTable):
            table = ctypes.c_void_p()
            self.assertNotEqual(ask(ctypes.byref(table), bytes(16)), 0)


def alias(name: str, kinds: dict[str, str]) -> bool:
    """A form of another entry point, which may be a written one."""
    return re.sub(r"^pnccl", "nccl", re.sub(r"_pt[sd][sz]$", "", name)) != name


CALL_ALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for line in sys.stdin.read().splitlines():
    name, kind = line.split()
    f = getattr(library, name)
    f.restype = {"pointer": ctypes.c_void_p, "void": None}.get(kind, ctypes.c_int)
    got = f()
    if kind == "output" and not got or kind == "command" and got or kind in ("pointer", "void") and got:
        print(name, kind, got)
print("done")
"""


if __name__ == "__main__":
    unittest.main()
