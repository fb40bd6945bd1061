"""Takes large tensors apart by values that nobody computed, but that are few: levels, classes, bins."""
import torch

d, count = "cuda", 1 << 20
x = torch.randn(count, device=d)
levels = torch.floor(4 + torch.log2(x.abs() / 224)).clamp(2, 5).to(torch.int64) - 2
of_anchors = torch.cat([torch.full((n,), level, dtype=torch.int64, device=d)
                        for level, n in enumerate((200_000, 50_000, 12_000, 3_000))])
best = torch.randn(2, len(of_anchors), device=d).topk(2000, dim=1).indices
few = {
    "levels": (levels, range(4)),
    "of a part": (levels.view(4, -1)[1, :3000], range(4)),
    "of the best": (of_anchors.reshape(1, -1).expand(2, -1)[torch.arange(2, device=d)[:, None], best], range(4)),
    "classes": (torch.randn(200_000, 10, device=d).argmax(1), range(10)),
    "classes of a few": (torch.randn(3000, 4, device=d).sum(1).view(-1, 4).argmax(1), range(4)),
    "remainders": ((x * 1000).long() % 7, range(7)),
    "truth values": ((x > 0).int(), range(2)),
    "tenths": ((x.sigmoid() * 10).long(), range(11)),
    "drawn": (torch.randint(3, 91, (count,), device=d), range(3, 91)),
    "one hot": (torch.nn.functional.one_hot(levels, 4), range(2)),
    "bins": (torch.bucketize(x, torch.tensor([-1., 0., 1.], device=d)), range(4)),
}
marked = levels.clone()
marked[marked == 2] = -1
few["marked"] = marked, range(-1, 4)
with torch.inference_mode():
    few["without versions"] = torch.clamp((x * 9).to(torch.int32), min=0, max=3).view(2, -1)[0], range(4)
for name, (values, expected) in few.items():
    found = torch.unique(values)
    assert found.tolist() == list(expected), (name, found.tolist())
    taken = [len(torch.where(values.flatten() == value)[0]) for value in found]
    assert max(taken) - min(taken) <= 1 and 0 <= sum(taken) - values.numel() < len(taken), (name, taken)

# Of what may be anything, all may be different; and so of memory that something else was written to.
assert len(torch.unique((x * 1000).long())) == count
levels.random_()
assert len(torch.unique(levels)) == count
del few, values, marked
for _ in range(8):
    again = torch.empty(count, dtype=torch.int64, device=d)  # where others were
    assert len(torch.unique(again)) == count
print("few are few")
