"""TRL's DPOTrainer: a second model of 256 MiB that is not trained stands beside the first, its gradients and Adam's states.

gpu: 1 GiB
truth: out of memory
with: libraries
flags: --sandbox
"""

from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

words = {"<pad>": 0, "<eos>": 1, **{f"w{n}": n for n in range(2, 1000)}}
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(models.WordLevel(words, "<pad>")), pad_token="<pad>", eos_token="<eos>"
)
config = LlamaConfig(
    hidden_size=2048, intermediate_size=8192, num_hidden_layers=1, num_attention_heads=16, vocab_size=1000
)
data = Dataset.from_list([{"prompt": "w2 w3", "chosen": "w4 w5", "rejected": "w6"} for _ in range(64)])
arguments = DPOConfig("out", per_device_train_batch_size=2, max_steps=4, report_to=[], save_strategy="no", bf16=False)
DPOTrainer(
    LlamaForCausalLM(config), LlamaForCausalLM(config), arguments, train_dataset=data, processing_class=tokenizer
).train()
