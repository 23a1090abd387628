"""PyTorch, in eager mode, with torch.nn's own layers. Also any model that `hightide fit` knows."""

from __future__ import annotations

from typing import Any, List

from .._fit import models as fit_models
from .._fit import names as fit_names
from .._fit import training as fit_training
from .._fit.options import Options as FitOptions
from .models import CLASSES, COLOURS, MODELS, PIXELS, STAGES, VOCABULARY, Model, batches
from .options import DTYPES, Built, Options, Unavailable, Unknown

PACKAGE = "torch"


def build(options: Options) -> Built:
    """Make the model and its step.

    Raises:
        Unavailable: this PyTorch reaches no GPU, and one is asked for.
        Unknown: there is no such model.
    """
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        raise Unavailable(f"PyTorch {torch.__version__} reaches no GPU here")
    torch.manual_seed(options.seed)
    if options.model not in MODELS:
        return _as_fit_does(options)
    numbers = MODELS[options.model]
    model = _module(torch, numbers, options.seq_len)
    model.to(device=options.device, dtype=getattr(torch, DTYPES[options.dtype]))
    return Built(_step(torch, model, numbers, options), count(model))


def count(model: Any) -> int:
    """Numbers that are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _step(torch: Any, model: Any, numbers: Model, options: Options) -> Any:
    draw = batches(numbers, options.seq_len, options.seed, channels_first=True)
    dtype = getattr(torch, DTYPES[options.dtype])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3) if options.train else None
    model.train(options.train)

    def step(n: int) -> None:
        drawn, wanted = (torch.from_numpy(array).to(options.device) for array in draw(n))
        inputs = drawn if numbers.reads_text else drawn.to(dtype)
        if optimizer is None:
            with torch.inference_mode():
                model(inputs)
        else:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), wanted).backward()
            optimizer.step()
        if options.device == "cuda":
            torch.cuda.synchronize()

    return step


def _module(torch: Any, numbers: Model, seq_len: int) -> Any:
    """The model, on the CPU in float32."""
    return {"lenet": lenet, "resnet18": resnet18, "transformer": transformer}[numbers.build](torch, numbers, seq_len)


def lenet(torch: Any, _: Model, __: int) -> Any:
    """LeNet-5 for colour images."""
    nn = torch.nn
    side = ((PIXELS - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(COLOURS, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * side * side, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES),
    )  # fmt: skip


def resnet18(torch: Any, _: Model, __: int) -> Any:
    """ResNet-18 as torchvision builds it, with its stem for large images."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]  # torch is not there when types are checked
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(channels)
            self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(channels)
            self.shortcut = nn.Sequential()
            if stride > 1:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
                )
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            y = self.relu(self.first_norm(self.first(x)))
            return self.relu(self.second_norm(self.second(y)) + self.shortcut(x))

    layers: List[Any] = [
        nn.Conv2d(COLOURS, STAGES[0], 7, 2, 3, bias=False), nn.BatchNorm2d(STAGES[0]), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    before = STAGES[0]
    for i, channels in enumerate(STAGES):
        layers += [Block(before, channels, 2 if i else 1), Block(channels, channels, 1)]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


def transformer(torch: Any, numbers: Model, seq_len: int) -> Any:
    """Blocks of nn.TransformerEncoderLayer over tokens and learned positions, and the mean's class."""
    nn = torch.nn

    class Classifier(nn.Module):  # type: ignore[misc,name-defined]  # as above
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, numbers.width)
            self.positions = nn.Embedding(seq_len, numbers.width)
            self.blocks = nn.Sequential(
                *(
                    nn.TransformerEncoderLayer(numbers.width, numbers.heads, numbers.inner, dropout=0, batch_first=True)
                    for _ in range(numbers.blocks)
                )
            )
            self.norm = nn.LayerNorm(numbers.width)
            self.head = nn.Linear(numbers.width, CLASSES)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.positions.weight
            return self.head(self.norm(self.blocks(x).mean(1)))

    return Classifier()


def _as_fit_does(options: Options) -> Built:
    """A name that `hightide fit` knows, built and run as it does."""
    asked = FitOptions(
        model=options.model,
        device=options.device,
        dtype=options.dtype,
        optimizer="adam" if options.train else "none",
        train=options.train,
        inference=not options.train,
        seq_len=options.seq_len,
    )
    try:
        workload = fit_models.lookup(asked)
        fit_training.prepare(workload, asked)
        step = fit_training.step_function(workload, asked)
    except fit_names.Unknown as error:
        raise Unknown(str(error), error.hint) from error
    return Built(lambda n: step(n, False), None if workload.model is None else count(workload.model))
