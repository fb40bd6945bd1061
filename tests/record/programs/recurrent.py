"""Runs cuDNN's recurrent networks: their weights in one block, packed sequences, projections, no biases."""
import torch
from torch import nn

d = "cuda"
for more in (dict(num_layers=2, batch_first=True, dropout=0.1, bidirectional=True), dict(proj_size=32)):
    lstm = nn.LSTM(64, 128, **more).to(d)
    lstm(torch.randn(8, 30, 64, device=d, requires_grad=True))[0].sum().backward()
    lstm.flatten_parameters()
    assert all(p.grad.shape == p.shape for p in lstm.parameters())
gru = nn.GRU(64, 128).to(d)
packed = nn.utils.rnn.pack_padded_sequence(torch.randn(30, 4, 64, device=d), torch.tensor([30, 20, 10, 5]))
nn.utils.rnn.pad_packed_sequence(gru(packed)[0])[0].sum().backward()
gru.eval()(torch.randn(3, 4, 64, device=d))
nn.RNN(10, 20, nonlinearity="relu", bias=False).to(d)(torch.randn(3, 2, 10, device=d))[0].sum().backward()
print("recurrent")
