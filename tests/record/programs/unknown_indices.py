"""Chooses by large tensors that nobody computed: which token, which expert."""
import torch

d = "cuda"
for vocabulary in (32_000, 50_257, 151_936):
    special = {*range(100), *range(vocabulary - 400, vocabulary)}
    for rows in (1, 2, 8, 64):
        logits = torch.randn(rows, vocabulary, device=d)
        chosen = {
            "argmax": logits.argmax(-1, keepdim=True), "max": logits.max(-1).indices[:, None],
            "topk": logits.topk(50).indices, "multinomial": torch.multinomial(logits.softmax(-1), 5),
            "kthvalue": logits.kthvalue(3).indices[:, None], "median": logits.median(-1).indices[:, None],
            "the first": logits.argsort(-1, descending=True)[:, :3] if rows * vocabulary < 1 << 17 else None,
            "a distribution's": torch.distributions.Categorical(logits=logits).sample()[:, None],
            "of columns": logits.t().contiguous().topk(4, dim=0).indices.t()}
        for name, tokens in chosen.items():
            if tokens is None:
                continue
            tokens = tokens.tolist()
            assert len(tokens) == rows and not special & {token for row in tokens for token in row}, (name, tokens)
            assert all(len(set(row)) == len(row) for row in tokens), (name, tokens)
            assert all(one != other for one, other in zip(tokens, tokens[1:])), (name, tokens)
    for beams in range(2, 17):  # a search over beams chooses among the tokens of all
        for index in torch.randn(1, beams * vocabulary, device=d).topk(2 * beams).indices[0].tolist():
            assert index % vocabulary not in special, (beams, index)
order = torch.randn(20_000, device=d).sort()[1]
assert order.sort()[0].tolist() == list(range(20_000))
# A router's experts get equally many tokens, the first and the last one too.
experts = torch.randn(8192, 8, device=d).topk(2).indices
assert torch.bincount(experts.flatten()).tolist() == [2048] * 8
# The dimension is the one that was requested; of values alone there is no index.
assert torch.randn(4, 20_000, device=d).argmax(0).max() == 3
assert torch.randn(4, 20_000, device=d).argmax() >= 10_000
assert torch.randint(5, 9, (1 << 20,), device=d).max() == 0
print("all chosen")
