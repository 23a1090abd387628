"""TRL's SFTTrainer on rows of 512 tokens.

gpu: 2 GiB
truth: fits
with: libraries
flags: --sandbox
"""

from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = {"<pad>": 0, "<eos>": 1, **{f"w{n}": n for n in range(2, 1000)}}
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(models.WordLevel(words, "<pad>")), pad_token="<pad>", eos_token="<eos>"
)
config = LlamaConfig(
    hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, vocab_size=1000
)
data = Dataset.from_list([{"input_ids": list(range(2, 514))} for _ in range(64)])
arguments = SFTConfig("out", per_device_train_batch_size=4, max_steps=8, report_to=[], save_strategy="no", bf16=False)
SFTTrainer(LlamaForCausalLM(config), arguments, train_dataset=data, processing_class=tokenizer).train()
