"""Lightning, whose validation keeps what it computed: 128 of 16 MiB, after an epoch of 4,000 batches.

gpu: 1 GiB
truth: out of memory
with: libraries
flags: --until evaluation --sandbox
"""

import lightning
import torch


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 64)
        self.kept = []

    def training_step(self, batch, _):
        return self.net(batch[0]).square().mean()

    def validation_step(self, batch, _):
        self.kept.append(self.net(batch[0]).repeat(1, 512))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


def loader(batches):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(batches * 128, 64)), 128)


trainer = lightning.Trainer(
    max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    num_sanity_val_steps=0,
)  # fmt: skip
trainer.fit(Module(), loader(4000), loader(128))
