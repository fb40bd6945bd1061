"""Exchanges between ranks that the simulated GPU's NCCL does not cover: values of small tensors, and objects.

The simulated GPU's NCCL knows no other rank; it copies what this one holds. This module has the calls for which that is
not enough. Objects (all_gather_object() ...) go by the job's store, not by the GPU: under torchrun the ranks see each
other's, and a lone rank sees its own. A real GPU would have taken a few KB for them, for a moment.
"""
import ctypes
import pickle

from memreplay_record import card


class Objects:
    """The object collectives, with the signatures of torch.distributed."""

    def __init__(self, c10d, is_lone):
        self.c10d, self.is_lone = c10d, is_lone
        self.calls = {}  # ranks of a group -> how many exchanges it has had
        self.theirs = {}
        for name in ("all_gather_object", "gather_object", "broadcast_object_list",
                     "scatter_object_list", "send_object_list", "recv_object_list"):
            if hasattr(c10d, name):  # the last two came after 2.1
                self.theirs[name] = getattr(c10d, name)
                setattr(c10d, name, getattr(self, name))

    def _is_ours(self, group):
        """Returns whether the objects would go over the GPU."""
        return self.is_lone or "nccl" in str(self.c10d.get_backend(group))

    def _exchange(self, own, group):
        """Returns what each rank of the group gives, in the group's order; None if this one is not in it."""
        c10d = self.c10d
        ranks = tuple(c10d.get_process_group_ranks(group or c10d._get_default_group()))
        if c10d.get_rank() not in ranks:
            return None
        if self.is_lone:
            return [own] * len(ranks)
        self.calls[ranks] = self.calls.get(ranks, 0) + 1
        key, store = f"memreplay/{ranks}/{self.calls[ranks]}", c10d._get_default_store()
        store.set(f"{key}/{c10d.get_rank()}", pickle.dumps(own))
        return [pickle.loads(store.get(f"{key}/{rank}")) for rank in ranks]

    def _position(self, rank, group, group_rank):
        """Returns the position in the group of the rank that a call names, globally or within the group."""
        if group_rank is not None:
            return group_rank
        ranks = self.c10d.get_process_group_ranks(group or self.c10d._get_default_group())
        return list(ranks).index(rank or 0)

    def all_gather_object(self, object_list, obj, group=None):
        if not self._is_ours(group):
            return self.theirs["all_gather_object"](object_list, obj, group)
        found = self._exchange(obj, group)
        if found is not None:
            object_list[:] = found

    def gather_object(self, obj, object_gather_list=None, dst=None, group=None, group_dst=None):
        if not self._is_ours(group):
            more = {} if group_dst is None else {"group_dst": group_dst}
            return self.theirs["gather_object"](obj, object_gather_list, dst or 0, group, **more)
        found = self._exchange(obj, group)
        if found is not None and object_gather_list is not None:
            object_gather_list[:] = found

    def broadcast_object_list(self, object_list, src=None, group=None, device=None, group_src=None):
        if not self._is_ours(group):
            more = {} if group_src is None else {"group_src": group_src}
            return self.theirs["broadcast_object_list"](object_list, src or 0, group, device, **more)
        found = self._exchange(list(object_list), group)
        if found is not None:
            object_list[:] = found[self._position(src, group, group_src)]

    def scatter_object_list(self, scatter_object_output_list, scatter_object_input_list=None,
                            src=None, group=None, group_src=None):
        if not self._is_ours(group):
            more = {} if group_src is None else {"group_src": group_src}
            return self.theirs["scatter_object_list"](
                scatter_object_output_list, scatter_object_input_list, src or 0, group, **more)
        found = self._exchange(scatter_object_input_list, group)
        given = found and found[self._position(src, group, group_src)]
        if given:
            scatter_object_output_list[0] = given[self.c10d.get_rank(group)]


    def _message(self, sender, receiver):
        """Returns the key in the job's store of the next message from one rank to another."""
        number = self.calls[sender, receiver] = self.calls.get((sender, receiver), 0) + 1
        return f"memreplay/{sender}/to/{receiver}/{number}"

    def _global_rank(self, rank, group, group_rank):
        return rank if group_rank is None else self.c10d.get_global_rank(
            group or self.c10d._get_default_group(), group_rank)

    def send_object_list(self, object_list, dst=None, group=None, device=None, group_dst=None, **more):
        if not self._is_ours(group):
            return self.theirs["send_object_list"](
                object_list, dst, group, device, **more, **_given(group_dst=group_dst))
        if not self.is_lone:
            to = self._global_rank(dst, group, group_dst)
            self.c10d._get_default_store().set(
                self._message(self.c10d.get_rank(), to), pickle.dumps(list(object_list)))

    def recv_object_list(self, object_list, src=None, group=None, device=None, group_src=None, **more):
        if not self._is_ours(group):
            return self.theirs["recv_object_list"](
                object_list, src, group, device, **more, **_given(group_src=group_src))
        sender, own = self._global_rank(src, group, group_src), self.c10d.get_rank()
        if self.is_lone or sender is None:
            raise RuntimeError(
                f"recv_object_list: rank {own} waits for objects that only {_named(sender)} can create, and on "
                "simulated GPUs no other process sends any: name the sender, and run all ranks "
                "(--cards N -- torchrun ...)")
        object_list[:] = pickle.loads(self.c10d._get_default_store().get(self._message(sender, own)))
        return sender


def _given(**arguments):
    return {name: value for name, value in arguments.items() if value is not None}


def _named(rank):
    return "another rank" if rank is None else f"rank {rank}"


def give_values(c10d):
    """Makes all_gather() and gather() into lists return what this rank holds, as every part."""
    def filling(call, parts_of):
        def called(*args, **kwargs):
            work = call(*args, **kwargs)
            _fill(*parts_of(*args, **kwargs))
            return work
        called.__name__ = call.__name__
        return called

    c10d.all_gather = filling(c10d.all_gather,
                              lambda tensor_list, tensor, *args, **kwargs: (tensor_list, tensor))
    c10d.gather = filling(c10d.gather,
                          lambda tensor, gather_list=None, *args, **kwargs: (gather_list, tensor))


def _fill(parts, tensor):
    from memreplay_record.values import memory
    torch = memory.torch
    if not parts or not tensor.is_cuda or type(tensor) is not torch.Tensor or \
            not memory.is_small(tensor):
        return
    with torch._C.DisableTorchFunction(), torch.no_grad():
        known = memory.state(tensor)
        if known == memory.UNKNOWN:
            return
        values = memory.twin(tensor)
        for part in parts:
            if part.shape == tensor.shape and part.dtype == tensor.dtype and memory.is_small(part):
                memory.write(part, values, known)


def agree_on_parameters(ddp):
    """Answers DDP's check that all ranks have the same parameters, which counts them over NCCL."""
    verify = getattr(ddp, "_verify_param_shape_across_processes", None)
    if verify is None:
        return

    def verified(process_group, tensors, *args, **kwargs):
        for _ in range(process_group.size()):
            card.answer(bytes(ctypes.c_int64(len(tensors))))
        try:
            return verify(process_group, tensors, *args, **kwargs)
        finally:
            card.answer_clear()

    ddp._verify_param_shape_across_processes = verified
