"""Distributions whose arguments are the results of kernels, checked as PyTorch does by itself."""
import torch
from torch import distributions

scores = torch.randn(64, 50304, device="cuda")
shares = torch.softmax(scores, -1)
for made in (distributions.Categorical(probs=shares), distributions.Categorical(logits=scores),
             distributions.OneHotCategorical(probs=shares), distributions.Bernoulli(probs=torch.sigmoid(scores)),
             distributions.Normal(scores, scores.exp()), distributions.Uniform(scores, scores + 1),
             distributions.Categorical(probs=torch.softmax(scores[:2, :30].contiguous(), -1))):
    assert made.log_prob(made.sample()).numel() > 1
small = torch.softmax(torch.ones(4, 8, device="cuda"), -1)
assert distributions.Categorical(probs=small).entropy().shape == (4,)
try:
    distributions.Normal(torch.zeros(4, device="cuda"), torch.tensor([1.0, 2.0, -1.0, 1.0], device="cuda"))
except ValueError:
    print("what is known is checked")
