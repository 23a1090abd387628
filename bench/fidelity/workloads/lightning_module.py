"""Lightning: its Trainer, mixed precision, a validation loop."""

import lightning
import torch
from scale import pick
from torch import nn

batch, width = pick((512, 4096), (8, 32))


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
        )

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = torch.utils.data.TensorDataset(torch.rand(4 * batch, 784), torch.randint(0, 10, (4 * batch,)))
loader = torch.utils.data.DataLoader(data, batch)
trainer = lightning.Trainer(
    max_epochs=1, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(Module(), loader, loader)
