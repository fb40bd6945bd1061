"""Counts the steps of optimizers, and ends a script after some (--steps)."""
import sys
import weakref

from memreplay_record._lost import quietly


class Steps:
    """The steps that each optimizer has made, those within another step of the same one not counted.

    With a `limit` the script ends where an optimizer begins the step after it: everything between the steps has then
    happened so many times, and what comes before a step once more. A script ends by itself if no optimizer makes more.
    """

    def __init__(self, limit=0):
        self.limit, self.stopped = limit, False
        self.most = 0  # of one optimizer
        # By id, as a script's optimizers may compare and hash in their own way: a weak reference, how many steps it has
        # made, and how many of them run, since a subclass may call super().step().
        self._of = {}
        hooks = sys.modules["torch.optim.optimizer"]  # torch.optim has no such attribute
        hooks.register_optimizer_step_pre_hook(self._before)
        hooks.register_optimizer_step_post_hook(self._after)

    @quietly("the number of an optimizer's steps")
    def _before(self, optimizer, args, kwargs):
        known = self._of.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            known = self._of[id(optimizer)] = [weakref.ref(optimizer), 0, 0]
        known[2] += 1
        if known[2] > 1:
            return
        if self.limit and known[1] == self.limit:
            self.stopped = True
            sys.exit(0)
        known[1] += 1
        self.most = max(self.most, known[1])

    @quietly("the number of an optimizer's steps")
    def _after(self, optimizer, args, kwargs):
        self._of[id(optimizer)][2] -= 1
