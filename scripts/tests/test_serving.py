"""LLM servers on GPUs that are not there: the real engines, with weights made up by themselves and a config alone.

The truth is what the engine logs and what the KV cache of the model comes to by its shape. 'scripts/setup serving' gets
the engines. More shapes, one start each: bench/serving.py.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HIGHTIDE = ROOT / "bin" / "hightide"
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
VLLM = CACHE / "serving-vllm-0.11.0" / "bin"
NEWER = CACHE / "serving-vllm-0.33.0" / "bin"
SGLANG = CACHE / "serving-sglang-0.5.5.post3"
OLDER_SGLANG = CACHE / "serving-sglang-0.5.4.post3"
GiB, MiB = 1 << 30, 1 << 20

pytestmark = pytest.mark.skipif(not VLLM.exists(), reason="vLLM is not there: scripts/setup serving")

TINY = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "max_position_embeddings": 131072,
    "num_attention_heads": 8,
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 32000,
}
LLAMA_8B = {
    **TINY,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
MIXTRAL = {
    **TINY,
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}

WINDOWS = {
    **TINY,
    "architectures": ["Gemma2ForCausalLM"],
    "model_type": "gemma2",
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "head_dim": 64,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh",
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "num_hidden_layers": 4,
    "query_pre_attn_scalar": 64,
    "sliding_window": 1024,
    "tie_word_embeddings": True,
}


def token_bytes(config: "dict[str, Any]") -> int:
    """What one token takes in the KV cache: a key and a value for each head of each layer, in bfloat16."""
    head = config["hidden_size"] // config["num_attention_heads"]
    return int(2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head * 2)


def weights(config: "dict[str, Any]") -> int:
    """Bytes of the model's parameters in bfloat16."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads = hidden + 2 * config["num_key_value_heads"] * (hidden // config["num_attention_heads"])
    layer = hidden * heads + hidden * hidden + 3 * hidden * inner + 2 * hidden
    return int(2 * (config["num_hidden_layers"] * layer + 2 * config["vocab_size"] * hidden + hidden))


def experts(config: "dict[str, Any]") -> int:
    """As weights, with each layer's perceptron as often as there are experts, and what chooses among them."""
    each = 3 * config["hidden_size"] * config["intermediate_size"]
    layer = (config["num_local_experts"] - 1) * each + config["hidden_size"] * config["num_local_experts"]
    return weights(config) + int(2 * config["num_hidden_layers"] * layer)


def port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@dataclass
class Ran:
    code: int
    verdict: "dict[str, Any]"
    out: str

    @property
    def serving(self) -> "dict[str, Any]":
        found: dict[str, Any] = self.verdict["serving"]
        return found


class Server:
    """Models and recordings of a folder, and how servers are imagined there.

    Engines keep in HOME what they compiled. A process that is forked has imported the engine already, which is half of
    what a start computes; without the variable vLLM starts a new one, as it does in the first of the tests.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "HOME": str(home),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_WORKER_MULTIPROC_METHOD": "fork",
            "HUMMING_DISABLE_PARALLEL_BUILD": "1",  # kernels of vLLM 0.33 that no model here takes, compiled at each start
        }

    def model(self, config: "dict[str, Any]") -> Path:
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def command(self, *flags: str, command: "tuple[str, ...]" = ()) -> "list[str]":
        words = (
            HIGHTIDE,
            "imagine",
            "--data-dir",
            self.folder / "data",
            f"--json={self.folder / 'verdict.json'}",
            *flags,
        )
        return [str(word) for word in (*words, "--", *command)]

    def serve(self, config: "dict[str, Any]", *options: str, engine: Path = VLLM) -> "tuple[str, ...]":
        command = (engine / "vllm", "serve", self.model(config), "--load-format", "dummy", "--skip-tokenizer-init",
                   "--port", port(), *options)  # fmt: skip
        return tuple(str(word) for word in command)

    def api_server(self, config: "dict[str, Any]", *options: str) -> "tuple[str, ...]":
        """The same server by the name of its module, as it was started before there was `vllm serve`."""
        executable, _, model, *rest = self.serve(config, *options)
        python = str(Path(executable).with_name("python"))
        return python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, *rest

    def script(self, config: "dict[str, Any]", engine: Path = VLLM, **options: Any) -> "tuple[str, ...]":
        """A program with the engine in its own process, unless the environment says another: half of what a server with
        processes and command line computes at its start."""
        self.env.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        script = self.folder / "serve.py"
        options.setdefault("enforce_eager", True)
        script.write_text(SCRIPT.format(model=str(self.model(config)), options=options))
        return str(engine / "python"), str(script)

    def sglang(self, config: "dict[str, Any]", *options: str, engine: Path = SGLANG) -> "tuple[str, ...]":
        """Its kernels look for a toolkit of CUDA, of which the runtime's library is enough."""
        toolkit = self.folder / "cuda"
        toolkit.mkdir(exist_ok=True)
        (toolkit / "lib64").symlink_to(next(engine.glob("lib/python3.*/site-packages/nvidia/cuda_runtime/lib")))
        self.env["CUDA_HOME"] = str(toolkit)
        self.env["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else each of its processes starts two to compile with
        command = (engine / "bin" / "python", "-m", "sglang.launch_server", "--model-path", self.model(config),
                   "--load-format", "dummy", "--skip-tokenizer-init", "--port", port(), "--attention-backend", "triton",
                   "--sampling-backend", "pytorch", *options)  # fmt: skip
        return tuple(str(word) for word in command)

    def imagine(self, *flags: str, command: "tuple[str, ...]") -> Ran:
        done = subprocess.run(
            self.command(*flags, command=command),
            capture_output=True,
            text=True,
            env=self.env,
            cwd=self.folder,
            timeout=600,
        )
        return self.ran(done.returncode, done.stdout + done.stderr)

    def table(self, ran: Ran, name: str) -> "list[dict[str, Any]]":
        """The rows of a table of the run's report."""
        done = subprocess.run(
            [HIGHTIDE, "show", "--data-dir", self.folder / "data", ran.verdict["run_id"], "--json"],
            capture_output=True,
            check=True,
        )
        tables = [t for t in json.loads(done.stdout)["tables"] if t["name"] == name]
        return [dict(zip([c["name"] for c in table["columns"]], row)) for table in tables for row in table["rows"]]

    def ran(self, code: int, out: str) -> Ran:
        verdict = self.folder / "verdict.json"
        assert verdict.exists(), out[-4000:]
        return Ran(code, json.loads(verdict.read_text()), out)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def server(tmp_path: Path, home: Path) -> Server:
    return Server(tmp_path, home)


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory, home: Path) -> "tuple[Server, Ran]":
    """A server with torch.compile and CUDA graphs, the engine's core in a process of its own, which is started anew."""
    server = Server(tmp_path_factory.mktemp("answering"), home)
    del server.env["VLLM_WORKER_MULTIPROC_METHOD"]
    return server, server.imagine("--gpu", "a10", command=server.serve(TINY, "--max-model-len", "4096"))


def logged(pattern: str, out: str) -> str:
    found = re.search(pattern, out)
    assert found, f"the engine did not log {pattern}:\n{out[-4000:]}"
    return found[1].replace(",", "")


def categories(ran: Ran) -> "dict[str, int]":
    return {c["name"]: c["bytes"] for c in ran.verdict["categories"]}


def test_server_ends_once_it_answers(answering: "tuple[Server, Ran]") -> None:
    server, ran = answering
    assert ran.code == 0, ran.out[-4000:]
    serving = ran.serving
    assert (serving["engine"], serving["version"]) == ("vLLM", "0.11.0") and serving["ready"] and serving["answers"]
    assert serving["kv_tokens"] == int(logged(r"GPU KV cache size: ([\d,]+) tokens", ran.out))
    assert serving["kv_bytes"] == serving["kv_tokens"] * token_bytes(TINY) == categories(ran)["KV cache"]
    assert serving["kv_tokens"] == serving["kv_blocks"] * serving["block_size"]
    assert f"{serving['max_concurrency']:.2f}" == logged(
        r"Maximum concurrency for 4,096 tokens per request: ([\d.,]+)x", ran.out
    )
    assert abs(serving["weights_bytes"] - weights(TINY)) < 32 << 20, "rotary tables, and blocks of the allocator's"
    assert 0 < serving["graph_range_bytes"]["low"] < serving["graph_bytes"] < serving["graph_range_bytes"]["high"]
    kept = ran.verdict["graph_nodes_bytes"]
    assert kept > 0 == kept % 10240, "what a driver keeps, 10 KiB for each node"
    assert f"For {kept // 10240:,} nodes of CUDA graphs" in " ".join(ran.out.split())
    assert serving["activation_bytes"] > 0 and serving["utilization"] == 0.9
    assert ran.verdict["stopped"] == "ready"
    assert f"Serves on NVIDIA A10: {serving['kv_tokens']:,} tokens of KV cache" in " ".join(ran.out.split())
    assert "evaluation" not in ran.out.partition("hightide  ")[2] and "<string>" not in ran.out
    lines = ran.verdict["peak_lines"]
    assert "/vllm/v1/worker/" in lines[0]["file"], lines[:3]
    assert 0 <= lines[0]["bytes"] - serving["kv_bytes"] < 1 << 20, "a block's end that the allocator does not split off"
    assert ran.verdict["peak_modules"][0]["module"] == "vllm.v1.worker.gpu_model_runner"
    assert "peak_phase" not in ran.verdict and "peak_step" not in ran.verdict
    spans = server.table(ran, "spans")
    assert {"weights", "profiling", "kv_cache", "warm-up", "graphs"} <= {row["span"] for row in spans}
    assert not server.table(ran, "phases"), "nothing of a server is a phase of a training"


SCRIPT = """
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    llm = LLM({model!r}, load_format="dummy", skip_tokenizer_init=True, **{options!r})
    print("blocks", llm.llm_engine.vllm_config.cache_config.num_gpu_blocks, flush=True)
    prompts = [{{"prompt_token_ids": list(range(100, 200))}}] * 2
    llm.generate(prompts, SamplingParams(max_tokens=4, detokenize=False, ignore_eos=True))
    print("not reached", flush=True)
"""


def test_script_ends_once_it_has_generated(server: Server) -> None:
    """The engine in the script's own process."""
    ran = server.imagine("--gpu", "a100-80g", command=server.script(LLAMA_8B, max_model_len=2048))
    assert ran.code == 0 and "not reached" not in ran.out, ran.out[-4000:]
    serving = ran.serving
    assert serving["kv_blocks"] == int(logged(r"\nblocks (\d+)", ran.out))
    assert serving["kv_bytes"] == serving["kv_blocks"] * 16 * token_bytes(LLAMA_8B) == categories(ran)["KV cache"]
    assert abs(serving["weights_bytes"] - weights(LLAMA_8B)) < 64 << 20
    lines = ran.verdict["peak_lines"]
    assert all("/vllm/" in line["file"] for line in lines[:2]), lines[:3]


def test_adapters(server: Server) -> None:
    """LoRA: which adapter each token of the largest batch has is written by the host, and known. The engine is in a
    process of its own, whose end the script's brings. A part of the cache is on the host, which takes none of the GPU."""
    server.env["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
    offload = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"num_cpu_blocks": 512},
    }
    command = server.script(TINY, max_model_len=4096, enable_lora=True, max_loras=4, kv_transfer_config=offload)
    ran = server.imagine("--gpu", "a10", command=command)
    assert "not reached" not in ran.out
    serving = check_cache(ran, TINY)
    assert serving["kv_blocks"] == int(logged(r"\nblocks (\d+)", ran.out))
    assert serving["weights_bytes"] > weights(TINY)
    assert serving["kv_host_bytes"] == 512 * 16 * token_bytes(TINY)
    assert "and 16.0 MiB of KV cache on the host" in " ".join(ran.out.split())
    assert not [p for p in ran.verdict.get("policies", []) if p["op"] in ("unique", "sort")]
    assert "/vllm/" in ran.verdict["peak_lines"][0]["file"]


def test_cache_smaller_than_one_sequence(server: Server) -> None:
    """The engine's own exception says how much is missing; what makes it start was tried. Two such GPUs are not enough."""
    long = 655360
    config = {**LLAMA_8B, "max_position_embeddings": long}
    ran = server.imagine("--gpu", "a10", command=server.script(config, max_model_len=long))
    assert ran.code == 1 and ran.verdict["verdict"] == "oom", ran.out[-4000:]
    serving = ran.serving
    assert not serving["ready"] and serving["step"] == "kv_cache"
    assert serving["kv_needed_bytes"] == long * token_bytes(LLAMA_8B)
    assert int(logged(r"max seq len \((\d+)\)", ran.out)) == long, "the engine's own figure, which nothing changed"
    assert f"{serving['kv_available_bytes'] / GiB:.2f}" == logged(
        r"available KV cache memory \(([\d.]+) GiB\)", ran.out
    )
    longest = serving["longest_model_len"]
    assert longest == int(logged(r"estimated maximum model length is (\d+)", ran.out))
    tries = {t["what"]: t for t in ran.verdict["tries"]}
    shorter = tries[f"--max-model-len {longest}"]
    assert shorter["verdict"] == "fits" and longest <= shorter["kv_tokens"] < longest + 16
    other = [t for t in tries.values() if t["kind"] == "gpu"]  # the cheapest of that memory is the smallest
    assert [(t["gpu"], t["verdict"]) for t in other] == [("h200", "fits")] and other[0]["kv_tokens"] >= long, other
    told = " ".join(ran.out.partition("\nhightide  ")[2].split())
    assert "Does not serve on NVIDIA A10: the KV cache of one sequence of 655,360 tokens takes 80.0 GiB" in told
    assert f"it serves with --max-model-len {longest}: {shorter['kv_tokens']:,} tokens of KV cache" in told
    assert "KV cache" not in categories(ran) and categories(ran)["weights"] > 0, "there was none yet"


def test_cheapest_gpu_for_so_many_users(server: Server) -> None:
    """What weights and cache exclude is not started; the length asked is given to a command that gives none. What is
    recorded is the start that serves, not the first."""
    ran = server.imagine(
        "--gpu", "a100-40g,l4,t4,h100-sxm", "--users", "8", "--tokens", "4096",
        command=server.serve(LLAMA_8B, "--enforce-eager"),
    )  # fmt: skip
    assert ran.code == 0, ran.out[-4000:]
    assert ran.serving["max_model_len"] == 4096 and ran.serving["users"] == 8
    rows = {v["gpu"]: v for v in ran.verdict["gpus"]}
    assert set(rows) == {"l4", "a100-40g", "t4"}, "the first that serves ends the search"
    assert rows["l4"]["verdict"] == "few" and rows["l4"]["users"] == rows["l4"]["kv_tokens"] // 4096 < 8
    assert ran.verdict["gpu"] == "a100-40g" and rows["a100-40g"]["kv_tokens"] == ran.serving["kv_tokens"]
    assert rows["a100-40g"]["users"] == ran.serving["kv_tokens"] // 4096 == int(ran.serving["asked_concurrency"]) >= 8
    assert ran.serving["kv_bytes"] == ran.serving["kv_tokens"] * token_bytes(LLAMA_8B) == categories(ran)["KV cache"]
    assert rows["t4"]["verdict"] == "oom" and rows["t4"]["note"].startswith(
        "not run: weights 15.0 GiB and the KV cache"
    )
    assert "Serves 8 users of 4,096 tokens each on NVIDIA A100" in " ".join(ran.out.split())


def test_what_gains_tokens_was_tried(server: Server) -> None:
    """Each setting in an engine of its own, on a port of its own; what it comes to follows from the engine's own figures."""
    config = {**LLAMA_8B, "max_position_embeddings": 8192, "num_hidden_layers": 8}
    ran = server.imagine(
        "--gpu", "a10", "--vary",
        command=server.api_server(
            config, "--enforce-eager", "--max-num-seqs", "7", "--max-num-batched-tokens", "2048",
        ),
    )  # fmt: skip
    assert ran.code == 0, ran.out[-4000:]
    serving, told = ran.serving, " ".join(ran.out.partition("\nhightide  ")[2].split())
    tried = {t["what"].partition(",")[0]: t for t in ran.verdict["variations"]}
    share = round(0.05 * serving["budget_bytes"] / serving["utilization"])
    more = (tried["--gpu-memory-utilization 0.95"]["kv_tokens"] - serving["kv_tokens"]) * token_bytes(config)
    assert abs(more - share) < 4 << 20, "what the share adds, in whole blocks"
    two = tried["--tensor-parallel-size 2 on 2 × a10"]
    assert two["verdict"] == "fits" and two["kv_tokens"] > 2 * serving["kv_tokens"], two
    assert tried["--max-num-batched-tokens 512"]["kv_tokens"] > serving["kv_tokens"]
    promise = tried[f"--kv-cache-memory={serving['suggested_kv_bytes']}"]
    assert promise["verdict"] == "tight" and "that was tried and leaves" in told, promise
    eight = tried["--kv-cache-dtype fp8"]
    assert eight["verdict"] == "failed" and "kv_tokens" not in eight, "it starts, and its first request fails"
    assert 'ValueError("type fp8e4nv not supported in this architecture' in eight["note"], eight
    assert len(server.table(ran, "variations")) == len(ran.verdict["variations"]) + 1


def test_settings_for_so_many_users(server: Server) -> None:
    """The cheapest of the settings that were tried is recommended, and was started by the whole command with its flags."""
    config = {**LLAMA_8B, "max_position_embeddings": 8192, "num_hidden_layers": 8}
    command = server.serve(config, "--enforce-eager", "--max-num-batched-tokens", "2048")
    found = server.folder / "found.json"
    words = (HIGHTIDE, "tune", "--gpu", "a10", "--users", "58", "--tokens", "8000", f"--json={found}", "--", *command)
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env=server.env, cwd=server.folder, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(found.read_text())
    points = {frozenset(s["argument"] for s in p["settings"]): p for p in result["server"]["points"]}
    length, share, seqs = "max_model_len", "gpu_memory_utilization", "max_num_seqs"
    as_it_is, chosen = points[frozenset([length])], points[frozenset([length, share, seqs])]
    assert as_it_is["verdict"]["verdict"] == points[frozenset([length, share])]["verdict"]["verdict"] == "few", points
    assert chosen["recommended"] and chosen["verdict"]["users"] == chosen["verdict"]["kv_tokens"] // 8000 >= 58
    assert chosen["max_num_seqs"] == 64 and chosen["verdict"]["verdict"] == "fits" and not result["points"]
    added = result["server"]["recommended_command"][len(command) :]
    assert added == [word for s in chosen["settings"] for word in s["flag"].split()] and "--max-model-len" in added
    assert not [note for note in result["notes"] if note.startswith("started with its flags")], (
        "the same, as it was tried"
    )
    assert f"{chosen['verdict']['kv_tokens']:,} tokens of KV cache" in " ".join(done.stderr.split())
    assert not list(server.folder.glob("*.toml")), "flags are the plan"


def test_requests_are_answered(server: Server) -> None:
    """More than the cache holds: one gives its blocks away, and all are answered in the end."""
    blocks = ("--num-gpu-blocks-override", "1842")
    command = server.serve(TINY, "--max-model-len", "8192", "--enforce-eager", *blocks)
    ran = server.imagine("--gpu", "a10", "--load", "7x4096+256", command=command)
    assert ran.code == 0, ran.out[-4000:]
    serving = ran.serving
    assert 6 * (4096 + 256) < serving["kv_tokens"] < 7 * (4096 + 256), "as the test is made for"
    assert serving["load_answered"] == 7 and serving["load_preemptions"] >= 1 and serving["load_running"] == 7
    last = serving["kv_blocks"] - 1  # the engine keeps one
    assert last - 7 <= serving["load_blocks"] <= last
    assert "7 sequences of 4,096 + 256 tokens at once had" in " ".join(ran.out.split())


@pytest.mark.skipif(not NEWER.exists(), reason="the newer vLLM is not there: scripts/setup serving")
def test_newer_engine_answers_requests(server: Server) -> None:
    """How many tokens a step sampled is a kernel's count, for which the engine waits. Graphs are taken out of the cache.
    Newer engines give layers with and without a window places in the same bytes, which count once."""
    server.env.pop("VLLM_USE_FLASHINFER_SAMPLER", None)
    graphs = json.dumps({"cudagraph_capture_sizes": [1, 2, 4]})
    command = server.serve(
        WINDOWS, "--max-model-len", "4096", "--max-num-batched-tokens", "2048", "--compilation-config", graphs,
        engine=NEWER,
    )  # fmt: skip
    ran = server.imagine("--gpu", "a10", "--load", "3x64+8", command=command)
    assert ran.code == 0 and ran.verdict["verdict"] == "fits", ran.out[-4000:]
    serving = ran.serving
    assert serving["version"] == "0.33.0" and serving["load_answered"] == serving["load_running"] == 3
    kinds = 2
    assert serving["load_blocks"] == kinds * 3 * -(-(64 + 8 - 1) // 16), "the last token is not written into the cache"
    assert ran.verdict["conditions"]["sampled tokens"].startswith("one a sequence"), ran.verdict["conditions"]
    assert ran.verdict["conditions"]["compiled code"].startswith("made at this start"), ran.verdict["conditions"]
    if not shutil.which("nvcc") and not Path("/usr/local/cuda").exists():
        assert ran.verdict["conditions"]["sampler"].startswith("PyTorch's"), ran.verdict["conditions"]
    assert serving["kv_tokens"] == int(logged(r"GPU KV cache size: ([\d,]+) tokens", ran.out))
    of_one_kind = token_bytes(WINDOWS) // kinds
    assert serving["kv_bytes"] == serving["kv_blocks"] * 16 * of_one_kind == categories(ran)["KV cache"]
    assert serving["kv_bytes"] < 24 << 30, "no more than the GPU has"
    taken = sum(serving[n] for n in ("weights_bytes", "activation_bytes", "non_torch_bytes", "graph_reserved_bytes"))
    assert serving["graph_reserved_bytes"] > 0 and serving["graph_bytes"] > 0
    assert abs(serving["budget_bytes"] - taken - serving["kv_available_bytes"]) < 2 * MiB, serving
    assert sum(categories(ran).values()) == ran.verdict["peak_allocated_bytes"]


def check_cache(ran: Ran, config: "dict[str, Any]", gpus: int = 1) -> "dict[str, Any]":
    """The cache's tokens are the engine's, and what its bytes hold of them."""
    assert ran.code == 0, ran.out[-4000:]
    serving = ran.serving
    assert serving["kv_tokens"] == int(logged(r"GPU KV cache size: ([\d,]+) tokens", ran.out))
    assert serving["kv_bytes"] * gpus == serving["kv_tokens"] * token_bytes(config)
    assert categories(ran)["KV cache"] == serving["kv_bytes"]
    return serving


def plan(server: Server, gpus: int) -> "tuple[dict[str, int], dict[str, int]]":
    """What a plan computes of the model on so many GPUs: its parts on each, and the tokens of the cache."""
    words = ("plan", server.folder / "model", "--seq", "4096", "--gpu", "a10", "--gpus", gpus, "--json")
    done = subprocess.run([str(word) for word in (HIGHTIDE, *words)], capture_output=True, check=True)
    row = json.loads(done.stdout)["rows"][0]
    return {part["name"]: part["bytes"] for part in row["parts"]}, row["tokens"]


def test_experts_on_two_gpus(server: Server) -> None:
    """A mixture of experts, its layers shared by two GPUs, whose processes have the names of the engine's log."""
    command = server.serve(MIXTRAL, "--max-model-len", "4096", "--enforce-eager", "--tensor-parallel-size", "2")
    ran = server.imagine("--gpu", "a10", "--gpus", "2", command=command)
    serving = check_cache(ran, MIXTRAL, 2)
    assert abs(serving["weights_bytes"] - experts(MIXTRAL) // 2) < 32 << 20
    planned, tokens = plan(server, 2)
    assert abs(categories(ran)["weights"] - planned["weights"]) < 2 * MiB, (
        "rows that pad the vocabulary, ends of blocks"
    )
    assert abs(serving["weights_bytes"] - planned["weights"] - planned["rotary table"]) < 2 * MiB
    assert tokens["low"] <= serving["kv_tokens"] <= tokens["high"], tokens
    assert [row["rank"] for row in server.table(ran, "ranks")] == ["TP0", "TP1"]
    assert {row["process"] for row in server.table(ran, "spans")} == {"TP0", "TP1"}
    assert ran.verdict["ranks"][0]["parts_bytes"]["nccl"] > 0


@pytest.mark.parametrize("engine", [VLLM, NEWER], ids=["0.11", "0.33"])
def test_weights_do_not_fit(server: Server, engine: Path) -> None:
    command = server.script(LLAMA_8B, engine=engine, max_model_len=2048)
    ran = server.imagine("--gpu", "rtx3060", "--no-suggest", command=command)
    assert ran.code == 1 and ran.verdict["verdict"] == "oom" and ran.serving["step"] == "weights", ran.out[-4000:]
    missing(ran, "GeForce RTX 3060 12GB")


@pytest.mark.skipif(not NEWER.exists(), reason="the newer vLLM is not there: scripts/setup serving")
def test_share_is_more_than_is_free(server: Server) -> None:
    """The engine refuses it before it loads anything, which is a lack of memory: its context has the rest."""
    command = server.script(TINY, engine=NEWER, max_model_len=512, gpu_memory_utilization=0.99)
    ran = server.imagine("--gpu", "a10", "--no-suggest", command=command)
    assert ran.code == 1 and ran.verdict["verdict"] == "oom" and ran.serving["step"] == "device", ran.out[-4000:]
    budget, free = ran.serving["budget_bytes"], ran.serving["free_bytes"]
    assert 0 <= budget - 0.99 * ran.verdict["total_bytes"] < 2 and 0 < budget - free < GiB
    told = " ".join(ran.out.partition("\nhightide  ")[2].split())
    sizes = f"{budget / GiB:.1f} GiB, and {free / GiB:.1f} GiB are free"
    assert f"vLLM is to use 99 % of the memory, {sizes}" in told, told[:2000]


def test_graphs_do_not_fit(server: Server) -> None:
    """This version leaves nothing for CUDA graphs but what profiling took before: capturing a batch as large as that takes
    more. The finding names the engine's line, not the one that starts it. Nothing is compiled, and one graph captured."""
    context, memory = 360185856, 6 << 30  # of an A10
    graphs = {"level": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [512]}
    command = server.script(
        {**TINY, "intermediate_size": 65536, "vocab_size": 1024}, enforce_eager=False, compilation_config=graphs,
        max_model_len=512, max_num_batched_tokens=512, max_num_seqs=512,
        gpu_memory_utilization=(memory - context) // (memory // 10000) / 10000,
    )  # fmt: skip
    ran = server.imagine("--gpu", "a10", "--memory", "6GiB", "--no-suggest", command=command)
    assert ran.code == 1 and ran.verdict["verdict"] == "oom" and ran.serving["step"] == "graphs", ran.out[-4000:]
    assert ran.serving["kv_bytes"] == categories(ran)["KV cache"] > 4 * GiB and "graph_bytes" not in ran.serving
    used, asked = ran.verdict["peak_device_used_bytes"], ran.verdict["asked_bytes"]
    assert memory - used < asked == 64 * MiB, "of one of the two halves of a perceptron"
    told = " ".join(ran.out.partition("\nhightide  ")[2].split())
    assert f"out of memory while it captured CUDA graphs, {used / GiB:.2f} GiB in use of 6.00 GiB and 64.0 MiB" in told
    assert "how much the rest of its start takes is not known" in told, "which a start with more memory would tell"
    assert "The largest part was held by vllm/v1/worker/gpu_model_runner.py:" in told, told[:3000]
    assert "a smaller --gpu-memory-utilization leaves more for CUDA graphs" in told, told[:3000]


def missing(ran: Ran, gpu: str) -> None:
    """Of Llama-3-8B's weights, as the engine would build the model, and what was free before."""
    needed, free = ran.serving["weights_needed_bytes"], ran.serving["free_bytes"]
    assert 0 < needed - weights(LLAMA_8B) <= 64 << 20, "the rotary table, of 131,072 × 128 numbers"
    told, lack = " ".join(ran.out.split()), needed - free
    sizes = f"the weights take {needed / GiB:.1f} GiB, and {free / GiB:.1f} GiB were free for them"
    lacks = f"{lack / GiB:.2f} GiB" if lack >= GiB else f"{lack / MiB:.0f} MiB"
    assert f"Does not serve on {gpu}: {sizes}: {lacks} are missing" in told, told[-3000:]


def test_other_failure_is_told_by_the_engines_own_exception(server: Server) -> None:
    ran = server.imagine("--gpu", "a10", command=server.script({**TINY, "num_attention_heads": 7}))
    assert ran.code == 5 and ran.verdict["verdict"] == "failed", ran.out[-4000:]
    failure = ran.verdict["failure"]
    assert "root cause" not in failure and "signal" not in failure, failure


def test_server_that_loads_its_model_at_a_request(server: Server) -> None:
    """transformers serve: it listens, and has touched no GPU. That is said, and no verdict."""
    command = (str(VLLM / "transformers"), "serve", "--port", str(port()))
    ran = server.imagine("--gpu", "a10", "--duration", "12s", command=command)
    assert ran.verdict["verdict"] == "unused" and "serving" not in ran.verdict, ran.verdict
    told = " ".join(ran.out.partition("\nhightide  ")[2].split())
    assert "No verdict: the program was stopped by --duration before it touched a GPU" in told, told[:2000]


LETTERS = {chr(code): code for code in range(32, 127)}
TOKENIZER = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": LETTERS, "merges": []}}


@pytest.mark.skipif(
    not NEWER.exists(), reason="the newer vLLM, with transformers 5, is not there: scripts/setup serving"
)
def test_transformers_serve(server: Server) -> None:
    """Its KV cache is made for the first request, and takes what its own arithmetic leaves. Which tokens are sampled, and
    what a seed is, decide nothing."""
    model = server.model(TINY)
    (model / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    command = (str(NEWER / "transformers"), "serve", str(model), "--continuous-batching", "--port", str(port()))
    ran = server.imagine("--gpu", "a10", "--fake-weights", "--load", "3x400+8", command=command)
    assert ran.code == 0 and ran.verdict["verdict"] == "fits", ran.out[-4000:]
    serving = ran.serving
    assert (serving["engine"], serving["ready"], serving["answers"]) == ("transformers", True, True)
    assert 0 <= serving["weights_bytes"] - weights(TINY) < MiB, "what the rotary table is made of"
    tokens, page = serving["kv_tokens"], serving["block_size"]
    assert tokens == serving["kv_blocks"] * page > 100_000
    assert serving["kv_bytes"] == (tokens + 2 * page) * token_bytes(TINY) == categories(ran)["KV cache"], (
        "two pages pad"
    )
    assert serving["load_answered"] == serving["load_running"] == 3 and serving["load_blocks"] == 3 * -(-407 // page)
    told = " ".join(ran.out.partition("\nhightide  ")[2].split())
    assert f"Serves on NVIDIA A10: {tokens:,} tokens of KV cache" in told, told[:2000]
    assert "no preemption" not in told, "which are not counted"


def test_interrupt_of_hightide_alone(server: Server) -> None:
    """SIGINT to its process id, while the server starts: it ends, and says what is known."""
    command = server.command("--gpu", "a10", command=server.serve(TINY, "--enforce-eager"))
    with (server.folder / "out").open("w") as out:
        run = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=server.env, cwd=server.folder, start_new_session=True
        )
        until = time.monotonic() + 300
        while "vLLM API server version" not in (server.folder / "out").read_text() and time.monotonic() < until:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) != 0
    told = (server.folder / "out").read_text()
    assert "No verdict" in told and "interrupted" in told, told[-3000:]


def test_plan_has_the_engines_own_tokens(answering: "tuple[Server, Ran]") -> None:
    """A GPU that the estimate says may do it is run; its row has what the same command has by itself."""
    server, ran = answering
    words = ("plan", server.folder / "model", "--users", "2000", "--seq", "4096", "--gpu", "t4,a10", "--imagine")
    done = subprocess.run(
        [str(word) for word in (HIGHTIDE, *words, "--python", VLLM / "python", "--json")],
        capture_output=True,
        text=True,
        env=server.env,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    plan = json.loads(done.stdout)
    rows = {row["gpu"]: row for row in plan["rows"]}
    assert plan["cheapest"] == "a10" and rows["a10"]["label"] == "imagined", plan["rows"]
    assert rows["t4"]["verdict"] == "no" and rows["t4"]["label"] == "estimated", rows["t4"]
    serving, row = ran.serving, rows["a10"]
    assert row["tokens"]["figure"] == serving["kv_tokens"], (row, serving)
    parts = {p["name"]: p["bytes"] for p in row["parts"]}
    assert parts["weights"] == serving["weights_bytes"] and parts["activations"] == serving["activation_bytes"]


@pytest.mark.skipif(not SGLANG.exists(), reason="SGLang is not there: scripts/setup serving")
class TestSGLang:
    """Schedulers are killed by the process that started them, so what they know is told before."""

    def test_two_gpus_answer_requests(self, server: Server) -> None:
        """Its own first request was answered, then those that were asked for, of which the cache holds fewer. A length that
        is not given is the one that is asked for. Its own all-reduce takes buffers from CUDA itself."""
        command = server.sglang(
            TINY, "--cuda-graph-max-bs", "2", "--tp-size", "2", "--max-total-tokens", "2600",
            "--schedule-conservativeness", "0.1",
        )  # fmt: skip
        ran = server.imagine(
            "--gpu", "a10", "--gpus", "2", "--users", "2", "--tokens", "1024", "--load", "4x512+256", command=command
        )
        assert ran.code == 0, ran.out[-4000:]
        serving = ran.serving
        assert (serving["engine"], serving["version"]) == ("SGLang", "0.5.5.post3"), serving
        assert serving["ready"] and serving["answers"] and "The server is fired up" in ran.out
        assert serving["kv_tokens"] == 2600 == int(logged(r"max_total_num_tokens=(\d+)", ran.out))
        page = serving["block_size"]  # a page more than it gives out, for tokens that pad a batch
        assert serving["kv_bytes"] * 2 == (2600 + page) * token_bytes(TINY) == 2 * categories(ran)["KV cache"]
        half = weights(TINY) // 2
        assert abs(serving["weights_bytes"] - half) < 64 << 20
        assert 0 <= categories(ran)["weights"] - half < 2 << 20, "two ends of blocks that are not split off"
        assert serving["cuda_graphs"] and serving["graph_bytes"] > 0
        assert 0 < ran.verdict["graph_pools_bytes"] <= serving["graph_bytes"]
        told = " ".join(ran.out.partition("\nhightide  ")[2].split())
        assert "Serves 2 users of 1,024 tokens each on 2 × NVIDIA A10" in told, told[:2000]
        assert serving["max_model_len"] == 1024 and int(serving["asked_concurrency"]) == 2600 // 1024
        assert serving["max_concurrency"] == pytest.approx(2600 / 1024)
        assert {"device", "weights", "kv_cache", "graphs"} <= {row["span"] for row in server.table(ran, "spans")}
        assert sum(categories(ran).values()) == ran.verdict["peak_allocated_bytes"]
        assert told.count("resident pages of mapped files") <= 1, "one line of all its helpers"
        assert "Setup Custom allreduce failed" not in ran.out
        for rank in ran.verdict["ranks"]:  # two buffers of 8 MiB, and signals, in pages of 2 MiB; one of PyTorch's
            beside = rank["parts_bytes"]["allocated"] - rank["peak_reserved_bytes"]
            assert 16 * MiB < beside <= 20 * MiB, rank
        assert any(m["module"].endswith("custom_all_reduce") for m in ran.verdict["peak_modules"])
        assert serving["load_answered"] == 4 and serving["load_running"] in (3, 4), (
            "4 × (512 + 256) are more than there is"
        )
        assert 3 * 512 < serving["load_blocks"] * page <= 2600
        assert serving["load_running"] == 3 or serving["load_preemptions"] >= 1

    @pytest.mark.skipif(not OLDER_SGLANG.exists(), reason="the older SGLang is not there: scripts/setup serving")
    @pytest.mark.parametrize("options", [(), ("--kv-cache-dtype", "fp8_e5m2")], ids=["plain", "cache of 8 bits"])
    def test_older_engine(self, server: Server, options: "tuple[str, ...]") -> None:
        command = server.sglang(
            TINY, "--disable-cuda-graph", "--context-length", "4096", *options, engine=OLDER_SGLANG
        )  # fmt: skip
        ran = server.imagine("--gpu", "a10", "--no-suggest", command=command)
        assert ran.code == 0, ran.out[-4000:]
        serving = ran.serving
        assert serving["version"] == "0.5.4.post3" and serving["ready"] and "cuda_graphs" not in serving, serving
        assert serving["kv_tokens"] == int(logged(r"max_total_num_tokens=(\d+)", ran.out))
        token, page = token_bytes(TINY) // (2 if options else 1), serving["block_size"]
        assert serving["kv_bytes"] == (serving["kv_tokens"] + page) * token == categories(ran)["KV cache"]

    def test_weights_do_not_fit(self, server: Server) -> None:
        """The scheduler's own exception is the reason, not the signal with which the server ends itself."""
        command = server.sglang(LLAMA_8B, "--dtype", "half", "--disable-cuda-graph", "--context-length", "2048")
        ran = server.imagine("--gpu", "t4", "--no-suggest", command=command)
        assert ran.code == 1 and ran.verdict["verdict"] == "oom" and ran.serving["step"] == "weights", ran.out[-4000:]
        missing(ran, "Tesla T4")
        assert "ended by SIGKILL after its engine's error" in ran.out
