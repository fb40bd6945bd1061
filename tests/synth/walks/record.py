#!/usr/bin/env python3
"""Records what PyTorch itself allocates and frees in a training run, without a GPU.

  record.py --python VENV/bin/python [--python ...] --out tests/data/walks [--only NAME...]

Each run of CASES goes through PyTorch's dispatcher, autocast and autograd engine with CUDA tensors on the fake CUDA
runtime of tests/conformance. A dispatch mode below autograd replaces each kernel by empty results of the right sizes,
which fake tensors know, and notes the birth of every storage, and before each op which of them are gone. It does not
see what kernels and cuBLAS take for themselves. It leaves out one or two numbers (16 bytes or less), some of which
live as long as a Python frame happens to, or are made by the fakes alone.

NAME.txt has a comment with the run's settings and release, then for each phase "P phase" and below it, in order, the
bytes of each allocation and "-n" where the n-th of the file, from 0, is freed (those of one moment are sorted).
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "conformance" / "recorder")]

LLAMA = dict(model="llama", n_layers=2, dim=64, n_heads=4, n_kv_heads=2, ffn_dim=192, vocab_size=1000, seq_len=48,
             batch_size=2, gradient_accumulation_steps=2, dtype="bfloat16", attention="flash", rms_norm="eager",
             tie_weights=False, upcast_logits=False, checkpoint="none")
GPT = dict(model="nanogpt", n_layer=2, n_embd=64, n_head=4, vocab_size=1000, block_size=48, batch_size=2,
           gradient_accumulation_steps=2, dtype="bfloat16", attention="flash", dropout=0.0, bias=False,
           checkpoint="none")
CASES = {
    "llama_bf16": LLAMA,
    "llama_tied": LLAMA | dict(tie_weights=True),
    "llama_all_heads": LLAMA | dict(n_kv_heads=4),
    "llama_one_kv_head": LLAMA | dict(n_kv_heads=1),
    "llama_fp32": LLAMA | dict(dtype="float32", attention="efficient"),
    "llama_checkpoint": LLAMA | dict(checkpoint="block"),
    "llama_upcast": LLAMA | dict(upcast_logits=True),
    "llama_fused_norm": LLAMA | dict(rms_norm="fused"),
    "nanogpt_bf16": GPT,
    "nanogpt_dropout": GPT | dict(dropout=0.1),
    "nanogpt_fp32": GPT | dict(dtype="float32", attention="efficient"),
    "nanogpt_checkpoint": GPT | dict(checkpoint="block"),
}
# Outputs share the input's storage, though the schema does not say so.
SHARING = ("aten::_unsafe_view",)
# From 2.8 on RMSNorm is one kernel.
SINCE = {"llama_fused_norm": (2, 8)}


def is_recorded_by(name, release):
    return release >= SINCE[name] if name in SINCE else release < (2, 8)


# ------------------------------------------------------------------------------------------- inside the environment

def make_log():
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map_only

    def like(tensor):
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device)


    def storage_uses(tensor):
        return torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)

    def is_engine_sum(first):
        """The engine adds a second gradient in place if nothing else has the first, but not under a dispatch mode.

        References while we are called: the engine's buffer, the dispatcher's argument, ours and the tuple's.
        """
        in_engine = torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()
        return in_engine and first._use_count() <= 4 and storage_uses(first) == storage_uses(torch.empty(1))

    def without_kernel(func, args, kwargs):
        """Returns what func returns, as far as sizes, strides, types and aliases go."""
        returns = func._schema.returns
        if func.name() in SHARING or (returns and all(r.alias_info and not r.alias_info.is_write for r in returns)):
            return func(*args, **kwargs)  # a view: no kernel
        if func.name() == "aten::add.Tensor" and is_engine_sum(args[0]):
            return args[0]
        if func._schema.is_mutable:  # returns what it writes to, if anything
            written = [a for a, spec in zip(args, func._schema.arguments)
                       if spec.alias_info and spec.alias_info.is_write]
            return written[0] if len(returns) == 1 else tuple(written) if returns else None
        with FakeTensorMode():
            fake_args, fake_kwargs = tree_map_only(torch.Tensor, like, (args, kwargs))
            fakes = func(*fake_args, **fake_kwargs)
        return tree_map_only(torch.Tensor, like, fakes)

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.forget()

        def forget(self):
            self.lines = []
            self.happened = []  # in this phase
            self.live = {}  # storage's address -> (ordinal, weak reference)
            self.births = 0
            self.freed = []  # since the last birth or phase

        def note_deaths(self):
            dead = [key for key, (_, ref) in self.live.items() if ref.expired()]
            self.freed += [self.live.pop(key)[0] for key in dead]

        def note_freed(self):
            self.happened += [f"-{n}" for n in sorted(self.freed)]
            self.freed = []

        def note_birth(self, tensor):
            storage = tensor.untyped_storage()
            if storage._cdata in self.live or storage.nbytes() <= 16:
                return
            self.live[storage._cdata] = (self.births, StorageWeakRef(storage))
            self.births += 1
            self.note_freed()
            self.happened.append(str(storage.nbytes()))

        def row(self, text):
            """Writes what has happened, then a line of its own."""
            self.note_freed()
            self.lines += [*textwrap.wrap(" ".join(self.happened), 100, break_on_hyphens=False), text]
            self.happened = []

        def phase(self, name):
            self.note_deaths()
            self.row("P " + name)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.note_deaths()
            out = without_kernel(func, args, kwargs or {})
            if os.environ.get("WALK_OPS"):
                self.row(f"# {func}")
            outputs = tree_leaves(out)
            if func.name() == "aten::native_dropout":
                outputs.reverse()  # the kernel makes the mask first
            for tensor in outputs:
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda":
                    self.note_birth(tensor)
            return out

    return Log()


def walk(name):
    warnings.simplefilter("ignore")
    ctypes.CDLL("libmemreplay_card.so").memreplay_card_simulate(ctypes.c_uint64(8 << 30))
    import torch
    import torch.utils.checkpoint

    import models

    c = types.SimpleNamespace(**CASES[name])
    length = c.seq_len if c.model == "llama" else c.block_size
    log = make_log()

    @contextlib.contextmanager
    def autocast():  # torch.autocast would query what the GPU can do
        before = torch.is_autocast_enabled("cuda")
        torch.set_autocast_enabled("cuda", c.dtype != "float32")
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        torch.autocast_increment_nesting()
        try:
            yield
        finally:
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()
            torch.set_autocast_enabled("cuda", before)

    def get_batch():
        x = torch.empty(c.batch_size, length, dtype=torch.int64, device="cuda")
        y = torch.empty(c.batch_size, length, dtype=torch.int64, device="cuda")
        return x, y

    def train():
        with torch.device("cuda"):
            model = (models.Llama if c.model == "llama" else models.Gpt)(c)
        log.forget()  # building it on the GPU is not what moving it there does
        log.phase("model")
        for tensor in [*model.parameters(), *model.buffers()]:
            log.note_birth(tensor)
        decay = [p for p in model.parameters() if p.dim() >= 2]
        rest = [p for p in model.parameters() if p.dim() < 2]
        optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], fused=True)
        x, y = get_batch()
        for iteration in range(2):
            for micro_step in range(c.gradient_accumulation_steps):
                log.phase(f"it{iteration}.fwd{micro_step}")
                with autocast():
                    logits, loss = model(x, y)
                    loss = loss / c.gradient_accumulation_steps
                x, y = get_batch()
                log.phase(f"it{iteration}.bwd{micro_step}")
                loss.backward()
            log.phase(f"it{iteration}.step")
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            log.phase(f"it{iteration}.after")

        log.phase("eval")

        @torch.no_grad()
        def estimate_loss():
            model.eval()
            for _ in range(3):
                a, b = get_batch()
                with autocast():
                    out, error = model(a, b)
            model.train()

        estimate_loss()
        log.phase("end")

    with log:
        train()
    release = ".".join(torch.__version__.split("+")[0].split(".")[:2])
    settings = " ".join(f"{key}={value}" for key, value in CASES[name].items())
    return [f"# torch {release}: {settings}", *log.lines]


# -------------------------------------------------------------------------------------------------------- outside

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("\n".join(walk(options.child)), flush=True)
        os._exit(0)  # nothing of the simulated GPU needs an orderly end
    import record_fixtures

    for python in options.python:
        with tempfile.TemporaryDirectory() as folder:
            preload, _, version = record_fixtures.build(python, pathlib.Path(folder))
            release = tuple(int(part) for part in version.split(".")[:2])
            environment = os.environ | {"LD_PRELOAD": ":".join(map(str, preload)), "LD_LIBRARY_PATH": folder}
            for name in CASES:
                if (options.only and name not in options.only) or not is_recorded_by(name, release):
                    continue
                done = subprocess.run([python, __file__, "--child", name], env=environment, text=True,
                                      capture_output=True, check=False)
                if done.returncode != 0:
                    print(f"{name}: FAILED {done.returncode}\n{done.stderr[-1500:]}", flush=True)
                    continue
                (options.out / (name + ".txt")).write_text(done.stdout)
                print(f"{name}: {len(done.stdout.splitlines())} lines", flush=True)


if __name__ == "__main__":
    sys.exit(main())
