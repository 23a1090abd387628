"""CuPy on imaginary GPUs under the built program: the real one, whose pool hands out device memory. And RMM, which is refused.

The truth is the size of each array: the pool rounds to 512 bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import imaginary
import pytest
from imaginary import CACHE, HIGHTIDE, GiB, MiB, environment, near, script

CUPY = CACHE / "cupy" / "bin" / "python"

pytestmark = pytest.mark.skipif(not CUPY.exists(), reason=f"{CUPY} is not there: scripts/setup cupy")


def imagined(folder: Path, *command: object, **options: Any) -> tuple[dict[str, Any], str]:
    """The verdict, and what the program printed."""
    return imaginary.imagined(CUPY, folder, *command, **options)


def test_what_was_allocated_by_line(tmp_path: Path) -> None:
    """At the peak two arrays of 1 GiB and 64 of 4 MiB. What is freed is in no line then, what a later one gets in its place
    is in none either, also where another thread made it or freed it."""
    program = """
        import threading
        import cupy as cp

        def made():
            return cp.zeros((1 << 20,), cp.float32)

        before = cp.ones((1 << 26,), cp.float32)
        del before
        first = cp.ones((1 << 28,), cp.float32)
        second = first + 1
        held = [made() for _ in range(64)]
        owned = [second]
        del second
        thread = threading.Thread(target=lambda: (owned.clear(), owned.append(cp.ones((1 << 24,), cp.float64))))
        thread.start()
        thread.join()
        print("used", cp.get_default_memory_pool().used_bytes())
        print("pool", cp.get_default_memory_pool().total_bytes())
    """
    verdict, said = imagined(tmp_path, script(tmp_path, program))
    lines = {(Path(one["file"]).name, one["line"]): (one["bytes"], one["blocks"]) for one in verdict["peak_lines"]}
    assert lines == {
        ("train.py", 10): (GiB, 1), ("train.py", 11): (GiB, 1), ("train.py", 6): (256 * MiB, 64),
    }, verdict["peak_lines"]  # fmt: skip
    assert verdict["verdict"] == "fits" and verdict["peak_allocated_bytes"] == 2 * GiB + 256 * MiB, verdict
    pool = int(said.partition("pool ")[2].split()[0])
    assert int(said.partition("used ")[2].split()[0]) == GiB + 256 * MiB + 128 * MiB, said
    assert near(verdict["peak_reserved_bytes"], pool, 0.01), (verdict, pool)


def test_out_of_memory(tmp_path: Path) -> None:
    """A card of 24 GiB has room for 20 arrays of 1 GiB, not for 24: CuPy's error is of the device, not of the host."""
    arrays = """
        import cupy as cp
        held = [cp.zeros((1 << 28,), cp.float32) for _ in range({count})]
        print(len(held))
    """
    fits, _ = imagined(tmp_path, script(tmp_path, arrays.format(count=20)), gpu="rtx4090")
    assert fits["verdict"] in ("fits", "tight") and fits["peak_allocated_bytes"] == 20 * GiB, fits
    full, said = imagined(
        tmp_path, script(tmp_path, arrays.format(count=24)), gpu="rtx4090", code=1, flags=("--no-suggest",)
    )
    assert full["verdict"] == "oom" and "OutOfMemoryError" in said, full
    assert full["asked_bytes"] == GiB, full
    (line,) = full["peak_lines"]
    assert line["line"] == 3 and line["bytes"] == full["peak_allocated_bytes"], full


def test_its_libraries(tmp_path: Path) -> None:
    """What CuPy has from CUDA: cuBLAS, cuFFT, cuSOLVER, cuRAND, Thrust, kernels compiled at run time, streams. Nothing is asked
    of the driver that is not modelled."""
    program = """
        import cupy as cp
        assert cp.cuda.runtime.getDeviceCount() == 1
        x = cp.random.rand(512, 512)
        y = cp.random.default_rng(1).standard_normal((512, 512))
        z = x @ y + cp.fft.ifft(cp.fft.fft(x)).real
        cp.linalg.svd(z)
        cp.linalg.solve(z, y)
        order = cp.sort(z.ravel())[cp.argsort(x.ravel())]
        square = cp.ElementwiseKernel("float64 x", "float64 y", "y = x * x", "square")
        with cp.cuda.Stream():
            total = square(order).sum()
        print("shape", order.shape, float(total))
    """
    verdict, said = imagined(tmp_path, script(tmp_path, program))
    assert verdict["verdict"] == "fits" and "shape (262144,)" in said, said
    assert not verdict["unmodelled_calls"], verdict["unmodelled_calls"]
    assert verdict["peak_lines"][0]["bytes"] >= 512 * 512 * 8, verdict


def test_rmm_is_refused(tmp_path: Path) -> None:
    """Its wheels have CUDA's runtime inside a library that was stripped: that is one line, and no verdict."""
    program = script(tmp_path, "import rmm\nrmm.DeviceBuffer(size=1 << 20)\n")
    done = subprocess.run(
        [str(HIGHTIDE), "imagine", "--gpu", "a100-80gb", "--", str(CUPY), str(program)],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment(tmp_path)}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 4 and "hightide: RMM of " in done.stderr, done.stderr
