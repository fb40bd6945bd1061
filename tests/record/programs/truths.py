"""Prints values that steer a script: each line is what a card makes of it."""
import torch

d = "cuda"
ones = torch.ones(4, device=d)
numbers = torch.tensor([1, 0, 3, 0, 5], device=d)
assert bool(ones.all()) and not bool(torch.isnan(ones).any())
assert numbers.nonzero().tolist() == [[0], [2], [4]]
assert [part.tolist() for part in torch.where(numbers > 2)] == [[2, 4]]
assert numbers[numbers > 0].tolist() == [1, 3, 5]
assert torch.masked_select(numbers, numbers > 1).tolist() == [3, 5]
assert torch.unique(torch.tensor([3, 1, 3], device=d)).tolist() == [1, 3]
values, inverse, counts = torch.unique(torch.tensor([3, 1, 3], device=d), return_inverse=True,
                                       return_counts=True)
assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1], [1, 2])
assert torch.unique_consecutive(torch.tensor([1, 1, 2], device=d)).tolist() == [1, 2]
assert torch.bincount(torch.tensor([1, 3, 3], device=d)).tolist() == [0, 1, 0, 2]
assert torch.repeat_interleave(torch.tensor([2, 3], device=d) + 1).shape == (7,)
assert torch.nn.functional.one_hot(torch.tensor([0, 2], device=d)).tolist() == [[1, 0, 0], [0, 0, 1]]
assert torch.equal(torch.arange(5, device=d), torch.arange(5, device=d).clone())
assert not torch.equal(torch.arange(5, device=d), torch.ones(5, device=d, dtype=torch.int64))
assert torch.allclose(ones, ones * 1.0)
assert torch.topk(torch.tensor([0.1, 0.9, 0.5], device=d), 2).indices.tolist() == [1, 2]
assert torch.randn(6, device=d).split((torch.tensor([1, 4], device=d) + torch.tensor([1, 0], device=d)).tolist())
table = torch.arange(6, device=d).view(2, 3)
assert table[:, 1].tolist() == [1, 4] and table[:, ::2].cpu().tolist() == [[0, 2], [3, 5]]
assert table.t().tolist() == [[0, 3], [1, 4], [2, 5]] and table[:, 2].to("cpu", torch.float64).sum() == 7
assert table.to("cpu", torch.float32).sum() == 15 and 5 in table and 7 not in table
here = torch.zeros(2, dtype=torch.int64)
here.copy_(table[:, 1])
assert here.tolist() == [1, 4]
numbers[numbers == 0] = 7
assert numbers.tolist() == [1, 7, 3, 7, 5]
numbers[1] += 1
assert numbers.sum().item() == 24
error, steps = torch.ones((), device=d), 0
while error > 1e-3:
    error, steps = error * 0.5, steps + 1
assert steps == 10
torch.distributions.Normal(torch.zeros(3, device=d), torch.ones(3, device=d)).sample()
assert 0 <= torch.multinomial(torch.softmax(torch.randn(5, device=d), 0), 1).item() < 5
assert torch.cuda.memory_allocated() > 0
with torch.inference_mode():  # tensors have no versions there
    ends = torch.zeros(2, dtype=torch.bool, device=d)
    steps = 0
    while not ends.all():
        steps += 1
        ends |= torch.full((2,), steps >= 3, device=d)
        ends[0] = True
    assert steps == 3 and ends.tolist() == [True, True]
    assert (torch.arange(6, device=d) % 2).nonzero().shape == (3, 1)
# Under these, tensors stand for others.
cube = lambda x: (x ** 3).sum()
assert torch.func.grad(cube)(ones).shape == (4,) and torch.func.hessian(cube)(ones).shape == (4, 4)
assert torch.func.vmap(torch.func.grad(cube))(torch.ones(3, 4, device=d)).shape == (3, 4)
# Host code that looks at its arguments finds nothing wrong with them.
assert torch.linalg.eigvals(torch.eye(3, device=d)).real.tolist() == [1, 1, 1]
torch.linalg.eig(torch.randn(200, 200, device=d))
torch.segment_reduce(torch.ones(10, device=d), "sum", lengths=torch.tensor([4, 6], device=d))

# Experts by a router, each with the tokens that chose it.
router, tokens = torch.nn.Linear(8, 4, device=d), torch.randn(16, 8, device=d)
_, chosen = torch.topk(router(tokens).softmax(-1), 2)
mask = torch.nn.functional.one_hot(chosen, 4).permute(2, 1, 0)
rows = sum(torch.where(mask[expert])[0].numel() for expert in range(4))
assert rows > 0
print("all true")
