"""A change as a user writes it, for the programs that are compared with it: the loss in chunks of rows."""
import torch
import torch.nn.functional as F


class ChunkedCrossEntropy(torch.autograd.Function):
    """The mean cross entropy of logits; they hold their gradient after the backward pass."""

    @staticmethod
    def forward(ctx, logits, targets, ignore_index=-100, rows=1024):
        count = (targets != ignore_index).sum()
        loss = torch.zeros((), device=logits.device)
        for part, wanted in zip(logits.split(rows), targets.split(rows)):
            log_p = F.log_softmax(part, dim=-1, dtype=torch.float32)
            loss += F.nll_loss(log_p, wanted, ignore_index=ignore_index, reduction="sum")
        ctx.save_for_backward(logits, targets, count)
        ctx.options = ignore_index, rows
        return loss / count

    @staticmethod
    def backward(ctx, scale):
        logits, targets, count = ctx.saved_tensors
        ignore_index, rows = ctx.options
        gradient = logits.detach()
        for part, wanted in zip(gradient.split(rows), targets.split(rows)):
            kept = (wanted != ignore_index)[:, None]
            p = F.softmax(part, dim=-1, dtype=torch.float32)
            p.scatter_add_(1, wanted[:, None].where(kept, 0), -kept.float())
            part.copy_(p.mul_(kept * (scale / count.clamp(min=1))))
        return gradient, None, None, None
