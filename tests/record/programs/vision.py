"""Trains networks of convolutions: vision.py resnet|unet"""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, wide, out, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, wide), nn.Conv2d(wide, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.norm2, self.conv2 = nn.GroupNorm(32, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(wide, out, 1) if wide != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(y))) + self.skip(x)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(32, width), nn.Conv2d(width, 3 * width, 1), \
            nn.Conv2d(width, width, 1)

    def forward(self, x):
        batch, width, rows, columns = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, 3, 4, width // 4, rows * columns) \
            .transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(batch, width, rows, columns))


class UNet(nn.Module):
    """As diffusion models have it: residual blocks, attention where it is small, skips."""

    def __init__(self, widths=(64, 128, 256), time=256):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, time), nn.SiLU(), nn.Linear(time, time))
        self.first, self.last = nn.Conv2d(3, widths[0], 3, padding=1), nn.Conv2d(widths[0], 3, 3, padding=1)
        pairs = list(zip((widths[0], *widths), widths))
        self.down = nn.ModuleList(Residual(a, b, time) for a, b in pairs)
        self.shrink = nn.ModuleList(nn.Conv2d(b, b, 3, stride=2, padding=1) for _, b in pairs)
        self.middle = nn.ModuleList([Residual(widths[-1], widths[-1], time), Attention(widths[-1])])
        self.up = nn.ModuleList(Residual(2 * b, a, time) for a, b in reversed(pairs))

    def forward(self, x, steps):
        turns = steps[:, None] * torch.exp(torch.arange(32, device=x.device) * -0.3)
        time = self.time(torch.cat([turns.sin(), turns.cos()], 1))
        x, skips = self.first(x), []
        for block, shrink in zip(self.down, self.shrink):
            skips.append(block(x, time))
            x = shrink(skips[-1])
        x = self.middle[1](self.middle[0](x, time))
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skips.pop()], 1), time)
        return self.last(x)


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
if sys.argv[1] == "resnet":
    import torchvision
    model = torchvision.models.resnet50(weights=None).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
else:
    model = UNet().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
scaler = torch.amp.GradScaler("cuda")
for step in range(2):
    with torch.autocast("cuda", dtype=torch.float16):
        if sys.argv[1] == "resnet":
            images = torch.randn(16, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
            loss = F.cross_entropy(model(images), torch.randint(1000, (16,), device="cuda"))
        else:
            noise = torch.randn(8, 3, 64, 64, device="cuda")
            steps = torch.randint(0, 1000, (8,), device="cuda")
            loss = F.mse_loss(model(noise, steps), noise)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"step {step}: {loss.item():.3f}")
model.eval()
with torch.inference_mode():
    model(torch.randn(4, 3, 224, 224, device="cuda")) if sys.argv[1] == "resnet" else \
        model(torch.randn(4, 3, 64, 64, device="cuda"), torch.zeros(4, device="cuda"))
