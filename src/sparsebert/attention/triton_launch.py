"""The order of the Triton kernels in a forward and a backward pass, and what each is handed.

forward    tiles of rows; pieces of long rows, put together
backward   the same over rows (queries), then over columns (keys and values), which reads what the rows left
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from sparsebert.attention import triton_pieces, triton_tiles
from sparsebert.attention.inputs import bert_layout
from sparsebert.attention.triton_index import PIECE, CutLines, Index

TILE = 2048  # numbers of a tile, lines x head size: few enough that every kernel's tiles stay in registers
_MOST_LINES = 128
_STRETCH = 32  # entries of a long line taken at once
# How kernels are compiled; a multiply and an add may become one instruction, rounded once, as in the C++ kernel.
OPTIONS = {"num_warps": 4, "enable_fp_fusion": True}

Pool = dict[str, Any]


def forward(index: Index, tensors: Pool, scale: float, dropout: float) -> tuple[Tensor, Tensor]:
    """The output, and the log of each row's sum; tensors: query, key, value, bias, lengths, seed."""
    query = tensors["query"]
    output = bert_layout(query)
    logsums = query.new_empty(query.shape[:3], dtype=torch.float32)
    pool = _pool(index, tensors, scale, dropout) | {"output": output, "logsums": logsums}
    with _device_of(query):
        # In float32 the assembler would rather spill a number than take more than 128 registers.
        _over_tiles(triton_tiles.tile_forward, pool, maxnreg=168 if query.dtype == torch.float32 else None)
        pieces = _of(index.row_pieces, pool, others=index.keys)
        if len(index.row_pieces.lines):
            shape = (_groups(pool) * len(index.row_pieces.pieces),)
            pieces |= {name: query.new_empty(shape, dtype=torch.float32) for name in ("tops", "totals")}
            pieces["partial"] = query.new_empty(*shape, query.shape[-1], dtype=torch.float32)
            _over_pieces(triton_pieces.piece_forward, pieces)
            _over_lines(triton_pieces.merge_rows, index.row_pieces, pieces)
    return output, logsums


def backward(index: Index, tensors: Pool, scale: float, dropout: float) -> tuple[list[Tensor], Tensor | None]:
    """The gradients of query, key and value, and of each score where there is a bias: [batch, (heads,) kept].

    tensors: those of forward(), its two results, and grad, laid out as bert_layout()."""
    query = tensors["query"]
    grads = [bert_layout(query) for _ in range(3)]
    batch, heads = query.shape[:2]
    slopes = None
    if tensors["bias"] is not None:  # entries that only longer examples use are never written
        slopes = query.new_zeros((batch, heads, index.kept) if index.heads == 1 else (batch, index.kept)).float()
    pool = _pool(index, tensors, scale, dropout)
    pool |= {"deltas": torch.empty_like(tensors["logsums"]), "slopes": tensors["logsums"] if slopes is None else slopes}
    pool |= dict(zip(("grad_query", "grad_key", "grad_value"), grads, strict=True))
    with _device_of(query):
        _over_tiles(triton_tiles.tile_backward_rows, pool)
        rows = _of(index.row_pieces, pool, others=index.keys)
        _backward_pieces(triton_pieces.piece_backward_rows, index.row_pieces, rows, {"partial": grads[0]})
        columns = {"starts": index.column_starts, "others": index.queries}
        _over_tiles(triton_tiles.tile_backward_columns, pool | columns)
        _backward_pieces(
            triton_pieces.piece_backward_columns,
            index.column_pieces,
            _of(index.column_pieces, pool, others=index.queries),
            {"partial_key": grads[1], "partial_value": grads[2]},
        )
    return grads, slopes


def launch(kernel: Any, programs: int, pool: Pool, **options: Any) -> None:
    """Run a kernel, which takes what it names from the pool."""
    if programs:
        kernel[(programs,)](**{name: pool[name] for name in kernel.arg_names}, **OPTIONS, **options)


def _pool(index: Index, tensors: Pool, scale: float, dropout: float) -> Pool:
    """Everything that kernels name, but for what differs between them."""
    query, bias = tensors["query"], tensors["bias"]
    _, heads, n, d = query.shape
    batch_stride, head_stride, row_stride, _ = query.stride()
    width = _power_of_two(d)
    given = {name: index.row_starts if tensor is None else tensor for name, tensor in tensors.items()}
    return given | {
        "row_starts": index.row_starts,
        "starts": index.row_starts,
        "others": index.keys,
        "entries": index.entries,
        "offsets": index.offsets,
        "bounds": index.bounds,
        "bases": index.bases,
        "heads": heads,
        "n": n,
        "d": d,
        "positions": index.positions,
        "longest": PIECE,
        "batch_stride": batch_stride,
        "head_stride": head_stride,
        "row_stride": row_stride,
        "bias_stride": index.kept if bias is not None and bias.ndim == 2 else 0,
        "num_kept": index.kept,
        "scale": scale,
        "threshold": min(int(dropout * 2**32), 2**32 - 1),
        "factor": 1 / (1 - dropout),
        "SHARED": index.heads == 1,
        "SHIFTED": index.shifted,
        "BORDER": index.border,
        "RUN": index.shifted,
        "TOKEN": index.token,
        "PADDED": tensors["lengths"] is not None,
        "BIASED": bias is not None,
        "DROPS": dropout > 0,
        "LINES": min(TILE // width, _MOST_LINES, _power_of_two(n)),
        "STRETCH": _STRETCH,
        "WIDTH": width,
    }


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _of(cut: CutLines, pool: Pool, others: Tensor) -> Pool:
    pieces = {"table": cut.pieces, "count": len(cut.pieces), "num_pieces": len(cut.pieces)}
    return pool | pieces | {"others": others}


def _groups(pool: Pool) -> int:
    """How many times the lines of the pattern are walked: for each example, and each head that shares them."""
    return int(pool["query"].shape[0] * (pool["heads"] if pool["SHARED"] else 1))


def _over_tiles(kernel: Any, pool: Pool, **options: Any) -> None:
    batch, heads, n, _ = pool["query"].shape
    launch(kernel, batch * heads * -(-n // pool["LINES"]), pool, **options)


def _over_pieces(kernel: Any, pool: Pool) -> None:
    launch(kernel, _groups(pool) * pool["count"], pool)


def _over_lines(kernel: Any, cut: CutLines, pool: Pool) -> None:
    launch(kernel, _groups(pool) * len(cut.lines), pool | {"table": cut.lines, "count": len(cut.lines)})


def _backward_pieces(kernel: Any, cut: CutLines, pool: Pool, targets: dict[str, Tensor]) -> None:
    """What the pieces add, and its sums in the gradients that they belong to."""
    if not len(cut.lines):
        return
    shape = (_groups(pool) * len(cut.pieces), pool["d"])
    partial = {name: pool["query"].new_empty(shape, dtype=torch.float32) for name in targets}
    _over_pieces(kernel, pool | partial)
    for name, gradient in targets.items():
        _over_lines(triton_pieces.add_pieces, cut, pool | {"partial": partial[name], "gradient": gradient})


def _device_of(tensor: Tensor) -> AbstractContextManager[Any]:
    """Kernels run on the current device, which need not be the tensor's."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
