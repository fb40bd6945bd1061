"""Runs operators whose host code queries the card, a library or a kernel's result; none may fail."""
import torch
import torch.nn.functional as F
from torch import nn

d = "cuda"


def draw(*shape):
    return torch.randn(*shape, device=d)


def transforms():
    fourier = torch.fft.rfft(draw(16, 1024))
    torch.fft.irfft(fourier)
    torch.fft.fft2(draw(4, 64, 64))
    torch.stft(draw(16, 1024), 256, window=torch.hann_window(256, device=d), return_complex=True)


def linear_algebra():
    for shape in ((64, 64), (32, 16, 16)):
        a = draw(*shape)
        s = a @ a.mT + 64 * torch.eye(shape[-1], device=d)
        for function in (torch.linalg.cholesky, torch.linalg.svd, torch.linalg.qr, torch.linalg.eigh,
                         torch.linalg.inv, torch.linalg.det, torch.linalg.lu_factor, torch.linalg.pinv,
                         torch.linalg.slogdet, torch.linalg.eig):
            function(s)
        torch.linalg.solve(s, a)
        torch.linalg.lstsq(s, a)
        torch.cholesky_solve(a, s)


def sparse():
    indices = torch.tensor([[0, 1, 2], [2, 0, 1]], device=d)
    matrix = torch.sparse_coo_tensor(indices, torch.ones(3, device=d), (3, 3))
    torch.sparse.mm(matrix, draw(3, 4))
    matrix.coalesce().to_sparse_csr() @ draw(3, 4)
    embedding = nn.Embedding(1000, 32, sparse=True).to(d)
    optimizer = torch.optim.SparseAdam(embedding.parameters())
    embedding(torch.randint(0, 1000, (64,), device=d)).sum().backward()
    optimizer.step()


def convolutions():
    nn.Conv3d(16, 32, 3).to(d)(draw(2, 16, 8, 32, 32)).sum().backward()
    nn.ConvTranspose2d(16, 8, 4, 2).to(d)(draw(2, 16, 32, 32)).sum().backward()
    torch.backends.cudnn.benchmark = True
    with torch.autocast(d, torch.float16):
        nn.Conv2d(3, 64, 7, 2).to(d)(draw(4, 3, 64, 64)).sum().backward()
    F.grid_sample(draw(2, 3, 16, 16).requires_grad_(), torch.rand(2, 8, 8, 2, device=d)).sum().backward()


def losses():
    lengths = torch.full((4,), 50), torch.full((4,), 30)
    steps = draw(50, 4, 20).requires_grad_().log_softmax(2)
    F.ctc_loss(steps, torch.randint(1, 20, (4, 30), device=d), *lengths).backward()


def order_and_place():
    x = draw(10000)
    for function in (torch.sort, torch.median, torch.histc, torch.nonzero, torch.unique):
        function(x)
    torch.quantile(x, 0.3)
    torch.searchsorted(x.sort()[0], x)
    index = torch.randint(0, 100, (50,), device=d)
    F.embedding_bag(index, draw(100, 8), torch.tensor([0, 10], device=d))
    torch.zeros(100, 8, device=d).index_put_((index,), draw(50, 8), accumulate=True)
    torch.segment_reduce(draw(10), "sum", lengths=torch.tensor([4, 6], device=d))


def samples():
    torch.multinomial(torch.rand(8, 100, device=d), 5)
    torch.distributions.Dirichlet(torch.ones(3, device=d)).rsample()
    torch.distributions.Categorical(logits=draw(3, 5)).sample()
    torch.randperm(100000, device=d)
    torch.poisson(torch.rand(5, device=d))


def products():
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
        draw(64, 64).to(dtype) @ draw(64, 64).to(dtype)
    integers = torch.randint(-5, 5, (64, 64), device=d, dtype=torch.int8)
    torch._int_mm(integers, integers)
    torch.cdist(draw(64, 64), draw(64, 64))


@torch.jit.script
def scripted(x, mask, scale: float):
    return torch.where(mask, torch.nn.functional.softmax(x * scale, dim=-1), x)


def functions():
    scripted(draw(4, 4), draw(4, 4) > 0, 2.0)
    loss = lambda w, x: (x @ w).sum()
    torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(draw(8, 8), draw(3, 4, 8))
    torch.func.hessian(lambda x: (x ** 3).sum())(draw(4))


def tools():
    with torch.profiler.profile():
        draw(10).sum()
    with torch.autograd.detect_anomaly(check_nan=True):
        (draw(4).requires_grad_() ** 2).sum().backward()
    graph = torch.cuda.CUDAGraph()
    x = draw(100)
    with torch.cuda.graph(graph):
        x * 3
    graph.replay()
    torch.from_dlpack(x)


for part in (transforms, linear_algebra, sparse, convolutions, losses, order_and_place, samples, products,
             functions, tools):
    part()
    print(part.__name__)
print("all ran")
