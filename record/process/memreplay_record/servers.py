"""What an inference server knows of its cache of keys and values, at the end of its process."""
import gc
import sys

from memreplay_record import on_import
from memreplay_record._lost import name_of, quietly

_configs = []  # vLLM's, which its workers drop before their process ends


def begin():
    on_import.after("vllm.v1.kv_cache_interface", _watch_vllm)


@quietly("the size of a server's cache")
def _watch_vllm(interface):
    _keep_instances(interface.KVCacheConfig)


def _keep_instances(kind):
    """Keeps all instances of a class of plain data, those that are unpickled too."""
    def new(cls, *args, **kwargs):
        made = object.__new__(cls)
        _configs.append(made)
        return made

    if kind.__new__ is object.__new__:
        kind.__new__ = new


@quietly("the size of a server's cache")
def cache():
    """Returns the blocks of the largest cache in this process and the tokens that they hold; None without a server."""
    most = None
    for server, kind, read in (("vllm", "KVCacheConfig", _of_vllm), ("sglang", "TokenToKVPool", _of_sglang)):
        if server not in sys.modules:
            continue
        for found in gc.get_objects():
            if not name_of(type(found)).endswith(kind):
                continue
            try:
                blocks, tokens = read(found)
            except (AttributeError, TypeError, ValueError, ZeroDivisionError):  # half made, or of another release
                continue
            if most is None or blocks > most["blocks"]:
                most = {"blocks": blocks, "tokens": tokens}
    return most


def _of_vllm(config):
    """Every group of layers takes blocks of its own for the same tokens."""
    sizes = [int(group.kv_cache_spec.block_size) for group in config.kv_cache_groups]
    return int(config.num_blocks), int(config.num_blocks) // len(sizes) * min(sizes)


def _of_sglang(pool):
    return int(pool.size) // int(pool.page_size), int(pool.size)
