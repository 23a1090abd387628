"""U-Net for segmentation: transposed convolutions, skips, RMSprop."""

import torch
from scale import pick
from torch import nn

batch, size, width = pick((4, 512, 64), (1, 64, 16))


def double(inside, outside):
    layers = []
    for i in (inside, outside):
        layers += [nn.Conv2d(i, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        widths = [width * 2**i for i in range(depth + 1)]
        self.down = nn.ModuleList([double(i, o) for i, o in zip([3, *widths], widths)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(i, i // 2, 2, stride=2) for i in widths[:0:-1]])
        self.join = nn.ModuleList([double(i, i // 2) for i in widths[:0:-1]])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for block in self.down[:-1]:
            x = block(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.down[-1](x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


model = UNet().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
for _ in range(3):
    images, masks = torch.randn(batch, 3, size, size).cuda(), torch.rand(batch, 1, size, size).cuda()
    loss = nn.functional.binary_cross_entropy_with_logits(model(images), masks)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
