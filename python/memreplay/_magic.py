"""%%memreplay: records a notebook's cell; the output is its page."""

from __future__ import annotations

from typing import Any

from memreplay._load import load
from memreplay._recording import recording


def register(shell: Any) -> None:
    """Gives an IPython shell the cell magic %%memreplay."""
    from IPython.display import display

    def memreplay(line: str, cell: str) -> None:
        """Records the GPU memory of a cell and shows the diagnosis and the page.

        %%memreplay [FILE]: the snapshot is written to FILE (cell.pickle), also if the cell fails.
        """
        path = line.strip() or "cell.pickle"
        with recording(path):
            shell.run_cell(cell)  # shows the error, if there is one
        recorded = load(path)
        print(recorded.inspect(deep=True).diagnosis)
        display(recorded)

    shell.register_magic_function(memreplay, "cell")
