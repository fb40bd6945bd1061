"""Trains a classifier as tutorials do: DataLoader workers, pinned memory, autocast in float16 with a
GradScaler, clipping, a scheduler, a checkpoint saved and loaded."""
import gc
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

gc.disable()  # threads of the loader make objects too: when it ran would be a matter of timing
torch.manual_seed(0)
device = torch.device("cuda")
x, y = torch.randn(2048, 512), torch.randint(0, 10, (2048,))
loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True, pin_memory=True, num_workers=2)
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.BatchNorm1d(2048), nn.Dropout(0.1),
                      nn.Linear(2048, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
scaler = torch.cuda.amp.GradScaler()
steps = 0
for epoch in range(2):
    correct = 0
    for features, labels in loader:
        features, labels = features.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(features)
            loss = nn.functional.cross_entropy(out, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isnan(loss):
            raise SystemExit("the loss is not a number")
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() >= before, "a step was skipped"
        correct += (out.argmax(1) == labels).sum().item()
        steps += 1
    scheduler.step()
assert steps == 16
path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
back = torch.load(path, map_location=device)
model.load_state_dict(back["model"])
optimizer.load_state_dict(back["optimizer"])
assert optimizer.state_dict()["state"][0]["step"].item() == steps
os.remove(path)
