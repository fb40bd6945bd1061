"""Trains torch.nn's own transformer and evaluates it, where it takes its fast path."""
import torch

torch.manual_seed(0)
model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
for _ in range(2):
    model(torch.randn(8, 128, 256, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.inference_mode():
    print(model(torch.randn(8, 128, 256, device="cuda")).shape)
