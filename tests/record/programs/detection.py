"""Trains and evaluates a model of torchvision that finds objects: detection.py MODEL"""
import sys

import torch
from torchvision.models import detection

name = sys.argv[1]
torch.manual_seed(0)
model = getattr(detection, f"{name}_resnet50_fpn")(weights=None, weights_backbone=None).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
images = [torch.rand(3, 320, 480, device="cuda"), torch.rand(3, 300, 400, device="cuda")]
targets = []
for image, objects in zip(images, (3, 2)):
    corners = torch.rand(objects, 2) * 150
    targets.append({key: value.cuda() for key, value in {
        "boxes": torch.cat([corners, corners + 20 + torch.rand(objects, 2) * 100], 1),
        "labels": torch.ones(objects, dtype=torch.int64),
        "masks": torch.ones(objects, *image.shape[1:], dtype=torch.uint8),
        "keypoints": torch.cat([torch.rand(objects, 17, 2) * 100, torch.ones(objects, 17, 1)], 2)}.items()})
for step in range(2):
    losses = model(images, targets)
    optimizer.zero_grad()
    sum(losses.values()).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    found = model(images)
print(name, [len(each["boxes"]) for each in found])
