"""Makes batches on the card in one process and trains on them in another, as torch.multiprocessing shares tensors."""
import torch
import torch.multiprocessing as mp


def make(queue, done):
    for step in range(3):
        queue.put((step, torch.randn(256, 1024, device="cuda"), torch.arange(10, device="cuda")))
    done.wait()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, done = context.Queue(maxsize=2), context.Event()
    maker = context.Process(target=make, args=(queue, done))
    maker.start()
    model = torch.nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        step, batch, index = queue.get()
        assert batch.is_cuda and batch.shape == (256, 1024) and index.shape == (10,)
        loss = model(batch).square().mean() + batch.clone().sum()
        loss.backward()
        optimizer.step()
        del batch, index
    done.set()
    maker.join()
    print("shared", step, maker.exitcode)
