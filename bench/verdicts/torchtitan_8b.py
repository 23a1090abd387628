"""Torchtitan's own trainer with its 8B model: 8.03e9 weights of fp32 are 29.9 GiB.

gpu: 24 GiB
truth: out of memory
with: libraries
env: HF_HOME=.
env: RANK=0
env: WORLD_SIZE=1
env: LOCAL_RANK=0
env: LOCAL_WORLD_SIZE=1
env: MASTER_ADDR=127.0.0.1
env: MASTER_PORT=0
"""

import json
import os
import pathlib
import runpy
import sys

from tokenizers import Tokenizer, models

flavor = os.environ.get("FLAVOR", "8B")
words = {"<|begin_of_text|>": 0, "<|end_of_text|>": 1, **{f"w{n}": n for n in range(2, 2000)}}
assets, data = pathlib.Path("tokenizer"), pathlib.Path("tests/assets/c4_test")
assets.mkdir()
data.mkdir(parents=True)
(assets / "tokenizer.json").write_text(Tokenizer(models.WordLevel(words, "w2")).to_str())
special = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
(assets / "tokenizer_config.json").write_text(json.dumps(special))
with open(data / "data.json", "w") as file:
    for _ in range(64):
        file.write(json.dumps({"text": " ".join(["w3"] * 2000)}) + "\n")
sys.argv = [
    "train", "--model.name", "llama3", "--model.flavor", flavor, "--model.hf-assets-path", str(assets),
    "--training.dataset", "c4_test", "--training.steps", "5", "--training.seq-len", "512",
    "--training.local-batch-size", "2", "--job.dump-folder", "out",
]  # fmt: skip
runpy.run_module("torchtitan.train", run_name="__main__")
