"""Automatic mixed precision with a gradient scaler, gradients accumulated over four batches, and a schedule."""

import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(256, 1, 8, 8)
y = (x.mean((1, 2, 3)) > 0).long()
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 16)
scaler = torch.amp.GradScaler("cpu")
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(64):
    rows = torch.arange(16) + 16 * (step % 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = criterion(model(x[rows]), y[rows]) / 4
    scaler.scale(loss).backward()
    if step % 4 == 3:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
print(f"{loss.item():.17g}", sum(b.double().sum().item() for b in model.state_dict().values()))
