"""Trainings to be tuned: trainings.py NAME BATCH [--steps N]. On a GPU where there is one, else on the CPU.

Each prints the exact loss of every step. Models are small enough to train on a CPU with a batch of 2; with a large batch
their activations are what takes memory on a GPU.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
WORDS = 2000


class Attention(nn.Module):
    def __init__(self, width: int, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(width, 3 * width), nn.Linear(width, width), causal

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 4, c // 4).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int, causal: bool = True, dropout: float = 0.1) -> None:
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, layers: int = 8, width: int = 128, length: int = 128, block=Block) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(block(width) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class Experts(nn.Module):
    """A mixture of experts: every token through the two of four that the router likes best."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln, self.attn, self.router = nn.LayerNorm(width), Attention(width, True), nn.Linear(width, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(4)
        )

    def forward(self, x):
        x = x + self.attn(self.ln(x))
        weights, chosen = self.router(x).softmax(-1).topk(2)
        mixed = torch.zeros_like(x)
        for n, expert in enumerate(self.experts):
            mixed = mixed + expert(x) * (weights * (chosen == n)).sum(-1, keepdim=True)
        return x + mixed


def tokens(batch: int, length: int = 128):
    return torch.randint(0, WORDS, (batch, length), device=DEVICE)


def images(batch: int, size: int = 64):
    return torch.randn(batch, 3, size, size, device=DEVICE), torch.randint(0, 10, (batch,), device=DEVICE)


Loss = Callable[[], torch.Tensor]


def adamw(model: nn.Module, **settings):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, **settings)


def train(
    model: nn.Module, loss: Loss, optimizer=None, clip: bool = False, accumulate: int = 1, zero: bool = True
) -> Iterator[float]:
    """The plain loop."""
    model.train()
    optimizer = optimizer or adamw(model)
    while True:
        total = 0.0
        for _ in range(accumulate):
            value = loss() / accumulate
            value.backward()
            total += value.detach()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=zero)
        yield total


def gpt(batch, **settings):
    model = GPT().to(DEVICE)
    return train(model, lambda: model(tokens(batch)), **settings)


def gpt_autocast(batch):
    model = GPT().to(DEVICE)

    def loss():
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            return model(tokens(batch))

    return train(model, loss)


def gpt_compiled(batch):
    model = GPT(layers=4).to(DEVICE)
    compiled = torch.compile(model)
    return train(model, lambda: compiled(tokens(batch)))


def gpt_own_checkpoint(batch):
    """A program that checkpoints every second block by itself."""
    from torch.utils.checkpoint import checkpoint

    class Half(Block):
        def forward(self, x):
            return checkpoint(super().forward, x, use_reentrant=False) if self.half else super().forward(x)

    model = GPT(block=Half).to(DEVICE)
    for n, block in enumerate(model.h):
        block.half = n % 2 == 0
    return train(model, lambda: model(tokens(batch)))


def moe(batch):
    model = GPT(layers=4, block=Experts).to(DEVICE)
    return train(model, lambda: model(tokens(batch)))


def encoder_decoder(batch):
    model = nn.Transformer(128, 4, 4, 4, 512, batch_first=True).to(DEVICE)
    return train(model, lambda: model(torch.randn(batch, 96, 128, device=DEVICE),
                                      torch.randn(batch, 96, 128, device=DEVICE)).square().mean())  # fmt: skip


def lstm(batch):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.lstm = nn.Embedding(WORDS, 128), nn.LSTM(128, 256, 2, batch_first=True, dropout=0.2)
            self.head = nn.Linear(256, WORDS)

        def forward(self, x):
            return F.cross_entropy(self.head(self.lstm(self.embed(x))[0]).flatten(0, 1), x.flatten())

    model = Net().to(DEVICE)
    return train(model, lambda: model(tokens(batch)), clip=True)


def gnn(batch):
    class Layer(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.message, self.norm = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU()), nn.LayerNorm(width)

        def forward(self, x, source, target):
            messages = self.message(torch.cat([x[source], x[target]], dim=-1))
            return self.norm(x + torch.zeros_like(x).index_add_(0, target, messages))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.head = nn.ModuleList(Layer(64) for _ in range(6)), nn.Linear(64, 7)

        def forward(self, x, source, target):
            for layer in self.layers:
                x = layer(x, source, target)
            return self.head(x)

    model, nodes = Net().to(DEVICE), 500 * batch
    x, edges = torch.randn(nodes, 64, device=DEVICE), torch.randint(0, nodes, (2, 4 * nodes), device=DEVICE)
    labels = torch.randint(0, 7, (nodes,), device=DEVICE)
    return train(model, lambda: F.cross_entropy(model(x, edges[0], edges[1]), labels))


def unet(batch):
    class Res(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
            self.norm = nn.GroupNorm(8, width)

        def forward(self, x):
            return x + self.b(F.silu(self.a(F.silu(self.norm(x)))))

    class UNet(nn.Module):
        def __init__(self, width: int = 32) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
            self.down = nn.ModuleList(Res(width) for _ in range(3))
            self.middle = nn.Sequential(Res(width), Res(width))
            self.up = nn.ModuleList(Res(width) for _ in range(3))

        def forward(self, x):
            x, kept = self.first(x), []
            for block in self.down:
                x = block(x)
                kept.append(x)
                x = F.avg_pool2d(x, 2)
            x = self.middle(x)
            for block in self.up:
                x = block(F.interpolate(x, scale_factor=2) + kept.pop())
            return self.last(x)

    model = UNet().to(DEVICE)
    return train(model, lambda: F.mse_loss(model(images(batch)[0]), torch.randn(batch, 3, 64, 64, device=DEVICE)))


def vision(name, batch, size=64, optimizer=None, **settings):
    import torchvision

    model = getattr(torchvision.models, name)(weights=None, num_classes=10, **settings).to(DEVICE)

    def loss():
        x, y = images(batch, size)
        return F.cross_entropy(model(x), y)

    return train(model, loss, optimizer=optimizer(model) if optimizer else None)


def resnet(batch):
    return vision("resnet18", batch, optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9))


def resnet_zeroed(batch):
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).to(DEVICE)

    def loss():
        x, y = images(batch, 32)
        return F.cross_entropy(model(x), y)

    return train(model, loss, zero=False)


def mixer(batch):
    class Mixer(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
            self.across, self.along = nn.Linear(64, 64), nn.Linear(width, width)

        def forward(self, x):
            x = x + F.gelu(self.across(self.a(x).transpose(1, 2))).transpose(1, 2)
            return x + F.gelu(self.along(self.b(x)))

    body = nn.Sequential(*[Mixer(96) for _ in range(6)])

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.body, self.head = nn.Conv2d(3, 96, 8, 8), body, nn.Linear(96, 10)

        def forward(self, x):
            return self.head(self.body(self.patch(x).flatten(2).transpose(1, 2)).mean(1))

    model = Net().to(DEVICE)

    def loss():
        x, y = images(batch)
        return F.cross_entropy(model(x), y)

    return train(model, loss)


def recommender(batch):
    """Large tables, whose gradients and states are what takes memory."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(20000 * 10, 32) for _ in range(4))
            self.top = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

        def forward(self, x):
            return self.top(torch.cat([t(x[:, i]) for i, t in enumerate(self.tables)], dim=1)).squeeze(1)

    model = Net().to(DEVICE)
    return train(model, lambda: F.binary_cross_entropy_with_logits(
        model(torch.randint(0, 200000, (batch, 4), device=DEVICE)), torch.rand(batch, device=DEVICE)))  # fmt: skip


def gan(batch):
    """Two models with an optimizer each; a sample has 256 points."""

    class Generator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(6))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    one, two = Generator().to(DEVICE), nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1)).to(DEVICE)
    first, second = adamw(one), adamw(two)
    while True:
        made = one(torch.randn(256 * batch, 256, device=DEVICE))
        critic = two(torch.randn(256 * batch, 256, device=DEVICE)).mean() - two(made.detach()).mean()
        second.zero_grad()
        critic.backward()
        second.step()
        first.zero_grad()
        value = two(made).mean()
        value.backward()
        first.step()
        yield value.detach()


def hf(kind, batch, clip=False, lora=False, **settings):
    """A model of transformers, in a plain loop."""
    import transformers

    config = getattr(transformers, kind + "Config")(**settings)
    name = {"GPT2": "GPT2LMHeadModel", "Llama": "LlamaForCausalLM", "Bert": "BertForMaskedLM", "ViT":
            "ViTForImageClassification", "T5": "T5ForConditionalGeneration", "Qwen3": "Qwen3ForCausalLM"}[kind]  # fmt: skip
    config.num_labels = 10
    model = getattr(transformers, name)(config)
    if lora:
        import peft

        model = peft.get_peft_model(
            model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        )
    model = model.to(DEVICE)

    def loss():
        if kind == "ViT":
            x, y = images(batch)
            return model(pixel_values=x, labels=y).loss
        x = tokens(batch)
        return model(input_ids=x, labels=x).loss

    return train(model, loss, clip=clip)


WIDE = {
    "vocab_size": WORDS,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
}


def hf_trainer(batch, **arguments):
    """The Trainer of transformers, which clips gradients."""
    import tempfile

    import transformers

    config = transformers.GPT2Config(vocab_size=WORDS, n_embd=128, n_layer=6, n_head=4, n_positions=128)
    data = [{"input_ids": (row := tokens(1)[0].cpu()), "labels": row} for _ in range(8 * batch)]
    losses = []

    class Kept(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **more):
            losses.append((logs or {}).get("loss"))

    with tempfile.TemporaryDirectory() as folder:
        transformers.Trainer(
            transformers.GPT2LMHeadModel(config), train_dataset=data, callbacks=[Kept()],
            args=transformers.TrainingArguments(
                output_dir=folder, per_device_train_batch_size=batch, max_steps=STEPS, logging_steps=1, report_to=[],
                save_strategy="no", use_cpu=not CUDA, disable_tqdm=True, **arguments),
        ).train()  # fmt: skip
    yield from (torch.tensor(float(x)) for x in losses if x is not None)


def lightning(batch):
    import lightning as L

    losses = []

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = GPT()

        def training_step(self, batch, index):
            value = self.net(batch)
            losses.append(value.detach().cpu())
            return value

        def configure_optimizers(self):
            return adamw(self)

    data = torch.utils.data.DataLoader([tokens(1)[0].cpu() for _ in range(batch * STEPS)], batch_size=batch)
    L.Trainer(max_steps=STEPS, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator=(
        "gpu" if CUDA else "cpu"), devices=1, enable_model_summary=False).fit(Module(), data)  # fmt: skip
    yield from losses


def accelerated(batch):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=not CUDA)
    model = GPT()
    model, optimizer = accelerator.prepare(model, adamw(model))
    model.train()
    while True:
        value = model(tokens(batch))
        accelerator.backward(value)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        yield value.detach()


def of_ranks(batch: int, wrap: Callable[[nn.Module], nn.Module]) -> Iterator[float | None]:
    """Each rank of torchrun with data of its own; rank 0 tells its losses."""
    torch.distributed.init_process_group("nccl" if CUDA else "gloo")
    rank = torch.distributed.get_rank()
    if CUDA:
        torch.cuda.set_device(rank)
    model = wrap(GPT().to(DEVICE))
    torch.manual_seed(1 + rank)
    for loss in train(model, lambda: model(tokens(batch))):
        yield loss if rank == 0 else None


def ddp(batch):
    return of_ranks(batch, torch.nn.parallel.DistributedDataParallel)


def fsdp(batch):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def wrap(model):
        mesh = init_device_mesh(DEVICE, (torch.distributed.get_world_size(),))
        for block in model.h:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    return of_ranks(batch, wrap)


TRAININGS: dict[str, Callable[[int], Iterable[torch.Tensor]]] = {
    "gpt": gpt,
    "gpt-clipped": lambda b: gpt(b, clip=True),
    "gpt-accumulated": lambda b: gpt(b, accumulate=2),
    "gpt-zeroed": lambda b: gpt(b, zero=False),
    "gpt-autocast": gpt_autocast,
    "gpt-compiled": gpt_compiled,
    "gpt-own-checkpoint": gpt_own_checkpoint,
    "moe": moe,
    "encoder-decoder": encoder_decoder,
    "lstm": lstm,
    "gnn": gnn,
    "unet": unet,
    "resnet": resnet,
    "resnet-zeroed": resnet_zeroed,
    "vgg": lambda b: vision("vgg11_bn", b, 32),
    "convnext": lambda b: vision("convnext_tiny", b),
    "swin": lambda b: vision("swin_t", b),
    "mixer": mixer,
    "recommender": recommender,
    "gan": gan,
    "hf-gpt2": lambda b: hf("GPT2", b, vocab_size=WORDS, n_embd=128, n_layer=6, n_head=4, n_positions=128),
    "hf-llama": lambda b: hf("Llama", b, clip=True, **WIDE),
    "hf-qwen3": lambda b: hf("Qwen3", b, num_key_value_heads=2, head_dim=32, **WIDE),
    "hf-lora": lambda b: hf("Llama", b, lora=True, **WIDE),
    "hf-bert": lambda b: hf("Bert", b, **WIDE),
    "hf-t5": lambda b: hf("T5", b, vocab_size=WORDS, d_model=128, d_ff=512, num_layers=4, num_heads=4, d_kv=32,
                          decoder_start_token_id=0),
    "hf-vit": lambda b: hf("ViT", b, image_size=64, patch_size=8, **{k: v for k, v in WIDE.items() if k != "vocab_size"}),
    "hf-trainer": hf_trainer,
    "hf-trainer-accumulated": lambda b: hf_trainer(b, gradient_accumulation_steps=2),
    "lightning": lightning,
    "accelerate": accelerated,
    "ddp": ddp,
    "fsdp": fsdp,
}  # fmt: skip

STEPS = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else 6

if __name__ == "__main__":
    torch.manual_seed(1)
    random.seed(1)
    torch.set_num_threads(1)
    for number, loss in enumerate(TRAININGS[sys.argv[1]](int(sys.argv[2])), 1):
        if loss is not None:
            print("loss", number, "?" if CUDA else float(loss).hex())
        if number >= STEPS:
            break
