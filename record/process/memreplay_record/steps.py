"""Counts the steps of optimizers, and ends a script after some (--steps)."""
import sys
import weakref


class Steps:
    """The steps that each optimizer has made, those within another step of the same one not counted.

    With a `limit` the script ends where an optimizer begins the step after it: everything between the steps has then
    happened so many times, and what comes before a step once more. A script ends by itself if no optimizer makes more.
    """

    def __init__(self, limit=0):
        self.limit, self.stopped = limit, False
        self.most = 0  # of one optimizer
        self._made = weakref.WeakKeyDictionary()
        self._open = weakref.WeakKeyDictionary()  # how many of its steps run: a subclass may call super().step()
        hooks = sys.modules["torch.optim.optimizer"]  # torch.optim has no such attribute
        hooks.register_optimizer_step_pre_hook(self._before)
        hooks.register_optimizer_step_post_hook(self._after)

    def _before(self, optimizer, args, kwargs):
        is_inner = self._open.get(optimizer, 0) > 0
        self._open[optimizer] = self._open.get(optimizer, 0) + 1
        if is_inner:
            return
        made = self._made.get(optimizer, 0)
        if self.limit and made == self.limit:
            self.stopped = True
            sys.exit(0)
        self._made[optimizer] = made + 1
        self.most = max(self.most, made + 1)

    def _after(self, optimizer, args, kwargs):
        self._open[optimizer] -= 1
