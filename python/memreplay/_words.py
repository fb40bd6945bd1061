"""Sizes and categories in the words of the program; tests/data/words.tsv holds them to those."""

from __future__ import annotations

from typing import Optional

from memreplay import report_types as types

_NOUNS = {
    "parameter": "parameters", "buffer": "buffers", "gradient": "gradients", "optimizer_state": "optimizer state",
    "optimizer": "optimizer state", "activation": "activations", "logits": "logits and loss",
    "temporary": "temporaries", "input": "inputs", "cache": "KV cache",
    "kv_cache": "KV cache", "copy": "copies of weights in another type",
    "weight_cast": "copies of weights in another type", "workspace": "workspaces"}


def category_noun(category: str) -> str:
    """Returns "KV cache" for "cache"; a tag of the user's own is its own name."""
    return _NOUNS.get(category, category)


def diagnosis_text(diagnosis: Optional[types.Diagnosis]) -> str:
    """Returns what happened, why and what to do as one text."""
    return " ".join(filter(None, (diagnosis.what, diagnosis.why, diagnosis.do))) if diagnosis else ""


def size_text(size: int) -> str:
    """Writes a size as memreplay does: "6.56 GiB"."""
    value, units = float(abs(size)), ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    # A value that rounds up to 1024 belongs to the next unit.
    while len(units) > 1 and value >= (1024 if units[0] == "B" else 1023.5):
        value /= 1024
        units.pop(0)
    digits = 0 if units[0] == "B" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{'-' * (size < 0)}{value:.{digits}f} {units[0]}"
