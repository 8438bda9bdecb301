"""Gradients of tables of words: a batch looks up a few hundred rows of 30,000, and only these are handed around.

torch makes every lookup a gradient of the whole table, nearly all of it zeros. A step has a lookup for each part of its
batch, and clearing and adding up these tables took a tenth of it (docs/results/training-steps.md).
"""

import contextlib
from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor, nn

_LEAST_ROWS = 4096  # of a table that is worth it


class RowGradients:
    """The gradients of a module's tables: gathered by rows, micro-batch after micro-batch, given back as one tensor."""

    def __init__(self, module: nn.Module) -> None:
        modules = list(module.modules())
        owners = Counter(id(weight) for one in modules for weight in one._parameters.values() if weight is not None)
        tables = [one for one in modules if isinstance(one, nn.Embedding) and _is_plain(one)]
        # A table that also scores words has a gradient of every row anyway.
        self._tables = [table for table in tables if owners[id(table.weight)] == 1]
        # Kept from step to step: the system clears new memory before it lends it out.
        self._sums: dict[nn.Embedding, Tensor] = {}
        self._used: set[nn.Embedding] = set()

    def begin(self) -> None:
        """A new step: nothing has been gathered."""
        for table in self._used:
            self._sums[table].zero_()
        self._used.clear()

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """Within the block, which holds a forward and a backward pass, lookups leave the gradients of their rows."""
        tables = [table for table in self._tables if _is_free(table.weight)]
        for table in tables:
            table.sparse = True
        try:
            yield
        finally:
            for table in tables:
                table.sparse = False
        for table in tables:
            gradient = table.weight.grad
            if gradient is not None and gradient.is_sparse:
                table.weight.grad = None
                self._add(table, gradient.coalesce())

    def _add(self, table: nn.Embedding, rows: Tensor) -> None:
        if table not in self._sums:
            self._sums[table] = torch.zeros_like(table.weight)
        self._sums[table].index_add_(0, rows.indices()[0], rows.values())
        self._used.add(table)

    def give(self) -> None:
        """What was gathered in this step becomes the tables' gradients."""
        for table in self._used:
            rest = table.weight.grad
            table.weight.grad = self._sums[table] if rest is None else self._sums[table].add_(rest)


def _is_plain(table: nn.Embedding) -> bool:
    """Whether its rows may be gathered, and it is worth it: a GPU clears a table in no time."""
    by_rows = not table.sparse and not table.scale_grad_by_freq and table.max_norm is None
    return by_rows and table.num_embeddings >= _LEAST_ROWS and table.weight.device.type == "cpu"


def _is_free(weight: Tensor) -> bool:
    """Whether nobody else looks at its gradient: wrappers of a table freeze it, hooks expect a whole one."""
    return weight.requires_grad and not weight._backward_hooks and not weight._post_accumulate_grad_hooks
