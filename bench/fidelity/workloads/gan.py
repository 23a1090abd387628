"""Two networks, two optimizers: a DCGAN."""

import torch
from scale import pick
from torch import nn

batch, width = pick((128, 64), (8, 16))


def generator():
    layers, inside = [], 100
    for i, outside in enumerate((width * 8, width * 4, width * 2, width)):
        layers += [nn.ConvTranspose2d(inside, outside, 4, 2 if i else 1, 1 if i else 0, bias=False)]
        layers += [nn.BatchNorm2d(outside), nn.ReLU(True)]
        inside = outside
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


def critic():
    layers, inside = [], 3
    for outside in (width, width * 2, width * 4, width * 8):
        layers += [nn.Conv2d(inside, outside, 4, 2, 1, bias=False), nn.BatchNorm2d(outside), nn.LeakyReLU(0.2, True)]
        inside = outside
    return nn.Sequential(*layers, nn.Conv2d(inside, 1, 4, 1, 0, bias=False), nn.Flatten(0))


makes, judges = generator().cuda(), critic().cuda()
of_makes = torch.optim.Adam(makes.parameters(), lr=2e-4, betas=(0.5, 0.999))
of_judges = torch.optim.Adam(judges.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
for _ in range(3):
    real = torch.rand(batch, 3, 64, 64).cuda()
    fake = makes(torch.randn(batch, 100, 1, 1, device="cuda"))
    judges.zero_grad()
    criterion(judges(real), torch.ones(batch, device="cuda")).backward()
    criterion(judges(fake.detach()), torch.zeros(batch, device="cuda")).backward()
    of_judges.step()
    makes.zero_grad()
    criterion(judges(fake), torch.ones(batch, device="cuda")).backward()
    of_makes.step()
