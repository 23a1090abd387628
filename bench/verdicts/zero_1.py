"""ZeRO-1 of DeepSpeed in bfloat16, one of two ranks: its masters and moments are halved. At the peak, in the optimizer,
it has gradients of its half in float32, and the denominators.

gpu: 1 GiB
truth: fits, 32 + 32 + 64 + 32 + 32 MiB
with: deepspeed
flags: --world-size 2 --play 0 --steps 6
"""

import deepspeed
import torch


def train(**zero):
    """Sixteen layers: 32 MiB in bfloat16, 64 MiB in float32. Steps that DeepSpeed skips would take no moments."""
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(16)])
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "bf16": {"enabled": True},
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
        "zero_optimization": {"reduce_bucket_size": 4 << 20, "allgather_bucket_size": 4 << 20, **zero},
        "zero_force_ds_cpu_optimizer": False,
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for step in range(6):
        x = torch.randn(4, 1024, device=engine.device, dtype=torch.bfloat16)
        engine.backward(engine(x).float().pow(2).mean())
        engine.step()
        if engine.skipped_steps or engine.global_steps != step + 1:
            raise SystemExit("a step was skipped")


if __name__ == "__main__":
    train(stage=1)
