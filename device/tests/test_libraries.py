"""The libraries beside the runtime: cuDNN's own plans, sizes of workspaces, and ranks that meet."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import A10, CACHE, LIBRARY, VERSIONS, DeviceTable, environment, forkserver, python, run, used_now

H100 = "name=NVIDIA H100 80GB HBM3;slug=h100-sxm;memory=84929347584;cc=9.0;sms=132"
EXTRA = """
import torch
def extra(f):
    torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    f()
    return torch.cuda.max_memory_allocated() - before
x = torch.randn(64, 64, 56, 56, device='cuda')
w = torch.randn(64, 64, 3, 3, device='cuda')
g = torch.randn(64, 64, 56, 56, device='cuda')
convolution = extra(lambda: torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                                                [False, True, False]))
m = torch.nn.LSTM(128, 256, 2, dropout=0.1).cuda()
x = torch.randn(50, 32, 128, device='cuda', requires_grad=True)
print(convolution, extra(lambda: m(x)[0].sum().backward()))
"""


class Libraries(unittest.TestCase):
    def test_workspaces_are_cudnns_own(self) -> None:
        for version in VERSIONS:
            with self.subTest(version):
                a10, h100 = (list(map(int, run(EXTRA, version, spec=spec).split())) for spec in (A10, H100))
                self.assertGreater(a10[0], 100e6)  # cuDNN's first choice takes 104 MB
                self.assertLess(a10[0], 115e6)
                self.assertNotEqual(a10[0], h100[0])
                # A recurrent network: the reserve alone takes 18 MB.
                self.assertTrue(30e6 < a10[1] < h100[1] < 90e6, (a10, h100))

    def test_attention_has_plans(self) -> None:
        script = (
            "import torch, torch.nn.functional as F\n"
            "from torch.nn.attention import SDPBackend as B, sdpa_kernel\n"
            "for b in (B.FLASH_ATTENTION, B.EFFICIENT_ATTENTION, B.MATH, B.CUDNN_ATTENTION):\n"
            "    q = torch.randn(2, 8, 512, 64, device='cuda', dtype=torch.half, requires_grad=True)\n"
            "    with sdpa_kernel([b]):\n"
            "        o = F.scaled_dot_product_attention(q, q, q, is_causal=True)\n"
            "    o.backward(torch.ones_like(o))\n"
            "    print(o.grad_fn.name())\n"
        )
        said = run(script, spec=H100)
        self.assertIn("Cudnn", said)
        self.assertIn("Flash", said)

    def test_transforms_linear_algebra_sparse_and_random(self) -> None:
        script = (
            "import torch\n"
            "A, L = torch.randn(64, 64, device='cuda'), torch.linalg\n"
            "for f in (L.cholesky, L.inv, L.eigh, L.svd, L.qr, L.lu, L.slogdet, L.eigvals, L.pinv):\n"
            "    f(A)\n"
            "L.cholesky(torch.randn(4, 8, 8, device='cuda')); L.eigh(torch.randn(4, 8, 8, device='cuda'))\n"
            "torch.fft.rfft2(A); torch.fft.irfft(torch.fft.rfft(A)); torch.fft.fft(torch.randn(101, device='cuda'))\n"
            "S = torch.eye(10).to_sparse_csr().cuda()\n"
            "S @ A[:10]; S @ A[:10, 0]; S @ S; S + S\n"
            "torch.rand(9, device='cuda'); torch.special.bessel_j0(A)\n"
            "print('done')\n"
        )
        for version in VERSIONS:
            with self.subTest(version):
                self.assertIn("done", run(script, version))

    def test_each_order_of_cudnns_handle(self) -> None:
        """PyTorch 2.11 to 2.14 bring cuDNN 9.19 to 9.24, whose handle begins otherwise than that of any release here."""
        found = next((CACHE / "device").glob("lib/python3*/site-packages/nvidia/cudnn/lib"), None)
        assert found, "no cuDNN 9.20: scripts/setup device"
        script = (
            "import torch\n"
            "print(torch.backends.cudnn.version())\n"
            "x, _ = torch.nn.LSTM(128, 256, 2, dropout=0.1).cuda()(torch.randn(8, 4, 128, device='cuda'))\n"
            "x.sum().backward()\n"
            "norm = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16)).cuda()\n"
            "norm(torch.randn(2, 3, 32, 32, device='cuda')).sum().backward()\n"
            "print('done')\n"
        )
        with_cuda_12 = next((version for version in VERSIONS if version.startswith("2.9.")), None)
        assert with_cuda_12, "no PyTorch 2.9: scripts/setup torches"
        said = run(script, with_cuda_12, fresh=True, LD_LIBRARY_PATH=f"{LIBRARY.parent}:{found}")
        self.assertEqual(said.split(), ["92000", "done"])

    def ranks(self, version: str, count: int, *what: str, **more: str) -> None:
        script = Path(__file__).with_name("libraries_ranks.py")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            env = environment(Path(folder, "device-table"), f"count={count};{A10}", **more)
            for rank in forkserver.run_ranks(count, [python(version), script, *what], env):
                self.assertEqual((rank.returncode, rank.stdout.count("done")), (0, 1), rank.stderr[-3000:])
            self.assertEqual(list(Path(folder).glob("nccl-*")), [], "what ranks share goes with them")

    def test_values_travel_between_ranks(self) -> None:
        for version in VERSIONS:
            with self.subTest(version):
                self.ranks(version, 2, "exchange")
        self.ranks(VERSIONS[0], 4, "exchange", SPLIT="1")

    def test_ways_to_be_parallel(self) -> None:
        self.ranks(VERSIONS[0], 4, "ddp", "fsdp1", "fsdp2", "hsdp", "tp", "2d")

    def test_out_of_memory_in_one_rank_ends_all(self) -> None:
        """Started by torchrun itself, as people do; what it left is nothing to the ranks after it."""
        script = Path(__file__).with_name("libraries_ranks.py")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            env = environment(Path(folder, "device-table"), f"count=2;{A10}", OMP_NUM_THREADS="1")
            launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
            command = [python(VERSIONS[0]), *launcher, str(script), "oom"]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
            self.assertEqual(done.returncode, 1, done.stderr[-3000:])
            self.assertIn("OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 GiB", done.stderr)
            self.assertNotIn("not reached", done.stdout)
            del env["OMP_NUM_THREADS"]  # the server's own is 1
            for rank in forkserver.run_ranks(2, [python(VERSIONS[0]), script, "pp"], env):
                self.assertEqual((rank.returncode, rank.stdout.count("done")), (0, 1), rank.stderr[-3000:])
            self.assertEqual(list(Path(folder).glob("nccl-*")), [], "what ended ranks left is removed by the next")
            used_now(env)  # the forks are told to have ended by who comes after them
            self.assertEqual(DeviceTable(Path(folder, "device-table")).used(1), 0)


if __name__ == "__main__":
    unittest.main()
