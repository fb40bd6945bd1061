"""Compares estimated times of training steps with published ones: throughput.py MEMREPLAY PYTHON FOLDER [NAME...]

FOLDER has clones of github.com/rasbt/LLMs-from-scratch, karpathy/build-nanogpt and huggingface/pytorch-image-models,
whose own scripts run here on a simulated GPU with `--remedy roofline`. PYTHON is an interpreter with torch, numpy,
torchvision, transformers and accelerate. For each row whose name contains a NAME, it prints a row of the
table in docs/advise.md: milliseconds of a step, published and by estimate. What is changed of a script is below: how
long it runs, where its data is from, and what its README says of the row. None of it changes an operation of a step.

Sources: the README of rasbt/LLMs-from-scratch, ch05/10_llm-training-speed (PyTorch 2.6, 8 x 1,024 tokens);
gilesthomas.com/2026/04/llm-from-scratch-32h-interventions-full-fat-float32 (the same model, 5 x 1,024 tokens); the
chapters of the video of karpathy/build-nanogpt (2024, 16 x 1,024 tokens); Transformers' documentation of 4.27,
perf_train_gpu_one (bert-large-uncased, 4 x 512 tokens); the tables of timm (PyTorch 1.12, 2022).
"""
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

# Instead of tiktoken, which downloads its vocabulary: a byte is a token.
TIKTOKEN = """
class Encoding:
    def encode(self, text, **options):
        return list(text.encode())
    def decode(self, tokens):
        return bytes(tokens).decode(errors="replace")
def get_encoding(name):
    return Encoding()
"""
MODULES = {"tiktoken.py": TIKTOKEN, "matplotlib/__init__.py": "", "matplotlib/pyplot.py": """
def __getattr__(name):
    import unittest.mock
    return unittest.mock.MagicMock()
"""}

LONG = [(r"num_epochs\"?: 15", 'num_epochs": 1'), (r"num_workers=4", "num_workers=0")]
TF32 = (r"torch\.manual_seed\(123\)", r"\g<0>; torch.set_float32_matmul_precision('high')")
FUSED = (r"weight_decay=settings\[\"weight_decay\"\]", r"\g<0>, fused=True")
BFLOAT16 = (r"model\.to\(device\)", r"\g<0>.to(torch.bfloat16)")
NATIVE = [(r"= LayerNorm\(", "= nn.LayerNorm("), (r"(?<=\s)GELU\(\),", 'nn.GELU(approximate="tanh"),')]
EAGER = [(r"^ *model = torch\.compile\(model\)$", ""), (r"50304", "50257"), (r"\"batch_size\": 32", '"batch_size": 8')]
FIVE = (r"\"batch_size\": 8", '"batch_size": 5')
RASCHKA = "LLMs-from-scratch", "HEAD", "ch05/10_llm-training-speed/"
KARPATHY = "build-nanogpt"
STEPS = (r"range\(50\)", "range(3)")
WITHOUT_TF32 = (r"^torch\.set_float32_matmul_precision.*$", "")


def raschka(tokens_per_second, file, *edits, batch=8, card="a100-sxm-40gb"):
    clone, commit, folder = RASCHKA
    return batch * 1024 / tokens_per_second * 1000, card, clone, commit, folder + file, [*LONG, *edits]


def thomas(tokens_per_second, *edits):
    return raschka(tokens_per_second, "00_orig.py", FIVE, *edits, batch=5, card="rtx-3090")


def karpathy(milliseconds, commit, *edits):
    return milliseconds, "a100-sxm-80gb", KARPATHY, commit, "train_gpt2.py", [STEPS, *edits]


# What was published: milliseconds; the GPU; the clone, commit and file of the script; edits.
SCRIPTS = {
    "Raschka, GPT-2, float32": raschka(12525, "00_orig.py"),
    "Raschka, + TF32": raschka(27648, "00_orig.py", TF32),
    "Raschka, + fused AdamW": raschka(28399, "00_orig.py", TF32, FUSED),
    "Raschka, + bfloat16": raschka(45486, "00_orig.py", TF32, FUSED, BFLOAT16),
    "Raschka, + LayerNorm and GELU of PyTorch": raschka(55256, "00_orig.py", TF32, FUSED, BFLOAT16, *NATIVE),
    "Raschka, + FlashAttention": raschka(91901, "01_opt_single_gpu.py", *EAGER),
    "Thomas, GPT-2, float32": thomas(12599),
    "Thomas, + TF32": thomas(15402, TF32),
    "Karpathy, GPT-2, float32": karpathy(1000, "5265b20", WITHOUT_TF32),
    "Karpathy, + TF32": karpathy(333, "5265b20"),
    "Karpathy, + bfloat16": karpathy(300, "177e4cd"),
}
# BERT large; what was published: samples per second; arguments of the script.
HUGGING_FACE = """
import sys, torch, transformers
model = transformers.BertForSequenceClassification(transformers.BertConfig(
    hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
    attn_implementation="eager"))
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 512
    def __getitem__(self, index):
        return {"input_ids": torch.randint(100, 30000, (512,)), "labels": index % 2}
parts = 4 if "accumulated" in sys.argv else 1
transformers.Trainer(model=model, train_dataset=Data(), args=transformers.TrainingArguments(
    output_dir="out", report_to="none", save_strategy="no", max_steps=3, per_device_train_batch_size=4 // parts,
    gradient_accumulation_steps=parts, gradient_checkpointing="checkpointed" in sys.argv, fp16="fp16" in sys.argv,
    use_cpu=False)).train()
"""
BERT = {
    "BERT large, float32": (8.86, []),
    "BERT large, + in four parts": (7.75, ["accumulated"]),
    "BERT large, + checkpointed": (5.99, ["accumulated", "checkpointed"]),
    "BERT large, float16": (18.64, ["fp16"]),
    "BERT large, float16, in four parts, checkpointed": (10.09, ["fp16", "accumulated", "checkpointed"]),
}
# Of the table of the clone; attention there was not yet one call.
TIMM = "pytorch-image-models"
MODELS = ("resnet18", "resnet50", "vgg16", "mobilenetv3_large_100", "convnext_tiny", "vit_small_patch16_224",
          "vit_base_patch16_224", "swin_tiny_patch4_window7_224", "mixer_b16_224")


def git(repository, *words):
    return subprocess.run(["git", "-C", repository, *words], capture_output=True, check=True).stdout.decode()


def estimate(memreplay, python, card, folder, words, environment):
    """Returns milliseconds of a step."""
    command = [memreplay, "record", "--json", "--card", card, "--capacity", "1TiB", "--fast-init", "--remedy",
               "roofline", "--python", python, "--out", str(folder / "snapshot.pickle"), "--", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    (folder / "output").write_text(done.stdout + done.stderr)
    work = max((process.get("work", {}) for process in json.loads(done.stdout or "{}").get("processes", ())),
               key=lambda work: work.get("seconds", 0), default={})
    if not work.get("steps"):
        sys.exit(f"throughput.py: no step was counted, see {folder}/output")
    return 1000 * work["seconds"] / int(work["steps"])


def script(folder, clones, clone, commit, file, edits):
    """Writes the script and what it imports and reads; returns its command line."""
    text = git(clones / clone, "show", f"{commit}:{file}")
    for pattern, by in edits:
        text, count = re.subn(pattern, by, text, flags=re.M)
        if count == 0:
            sys.exit(f"throughput.py: {file} of {clone} does not have {pattern}")
    (folder / "train.py").write_text(text)
    for name, lines in MODULES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(lines)
    for name in ("middlemarch.txt", "input.txt"):
        (folder / name).write_text("No tensor of a step depends on it. " * 1500)
    return ["train.py"]


def bert(folder, words):
    (folder / "train.py").write_text(HUGGING_FACE)
    return ["train.py", *words]


def main():
    memreplay, python, clones = os.path.abspath(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]).absolute()
    wanted, ratios = sys.argv[4:], []

    def row(name, published, card, words_in, **environment):
        if wanted and not any(each in name for each in wanted):
            return
        folder = clones / "runs" / re.sub(r"\W+", "-", name)
        folder.mkdir(parents=True, exist_ok=True)
        found = estimate(memreplay, python, card, folder, words_in(folder), environment)
        ratios.append(found / published)
        print(f"| {name} | {card} | {published:.0f} | {found:.0f} | {ratios[-1]:.2f} |", flush=True)

    for name, (published, card, *source) in SCRIPTS.items():
        row(name, published, card, lambda folder, source=source: script(folder, clones, *source))
    for name, (published, words) in BERT.items():
        row(name, 4000 / published, "v100-sxm-16gb", lambda folder, words=words: bert(folder, words))
    for layout in ("nchw", "nhwc"):
        table = f"results/benchmark-train-amp-{layout}-pt112-cu113-rtx3090.csv"
        for line in csv.DictReader(git(clones / TIMM, "show", f"HEAD:{table}").splitlines()):
            if line["model"] not in MODELS:
                continue
            words = [str(clones / TIMM / "benchmark.py"), "--bench", "train", "--model", line["model"], "--amp",
                     "--batch-size", line["train_batch_size"], "--img-size", line["train_img_size"], "--num-warm-iter",
                     "1", "--num-bench-iter", "1", *(["--channels-last"] if layout == "nhwc" else [])]
            row(f"timm, {line['model']}, {layout}, batch {line['train_batch_size']}", float(line["train_step_time"]),
                "rtx-3090", lambda folder, words=words: words, PYTHONPATH=str(clones / TIMM), TIMM_FUSED_ATTN="0")
    print(f"{len(ratios)} rows: estimates are {min(ratios):.2f} to {max(ratios):.2f} of what was published, "
          f"median {statistics.median(ratios):.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
