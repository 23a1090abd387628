"""Inference: EfficientNet in fp16 over growing batches, the cache emptied in between."""

import torch
import torchvision
from scale import pick

batches, size = pick((1, 8, 32, 64), (1, 2)), pick(224, 64)
model = torchvision.models.efficientnet_b0().cuda().half().eval()
with torch.inference_mode():
    for batch in batches:
        model(torch.randn(batch, 3, size, size).cuda().half()).softmax(1)
        torch.cuda.empty_cache()
