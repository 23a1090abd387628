"""Mixed precision in bf16: Whisper's encoder and decoder."""

import torch
from scale import pick
from transformers import WhisperConfig, WhisperForConditionalGeneration

layers, batch = pick((6, 8), (1, 1))
config = WhisperConfig(encoder_layers=layers, decoder_layers=layers)
model = WhisperForConditionalGeneration(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    sound, text = torch.randn(batch, 80, 3000).cuda(), torch.randint(0, 50000, (batch, 64)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_features=sound, labels=text).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
