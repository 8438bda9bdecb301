"""BERT's table of positions has 512 rows: inputs beyond it raise, and it can be extended."""

import inspect
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sparsebert.errors import ModelError


def extend_positions(model: Any, length: int, how: Literal["tile", "interpolate"] = "tile") -> Any:
    """Give the model positions for inputs up to `length`; saved with it.

    tile: repeats the table, so that every stretch of it looks like what was trained. interpolate: stretches it.
    """
    embeddings = _embeddings(model)
    if embeddings is None:
        raise ModelError(
            f"{type(model).__name__} has no table of positions to extend; "
            "a model that rotates instead takes longer inputs as it is"
        )
    table = embeddings.position_embeddings
    reserved = _reserved_rows(embeddings)
    trained = table.weight.detach()[reserved:]
    if length <= len(trained):
        raise ModelError(f"the model already has {len(trained)} positions; ask for more than that, not {length}")
    if how not in ("tile", "interpolate"):
        raise ModelError(f"how is {how!r}; expected 'tile' or 'interpolate'")
    stretched = _tiled(trained, length) if how == "tile" else _interpolated(trained, length)
    extended = nn.Embedding(reserved + length, table.embedding_dim, padding_idx=table.padding_idx)
    extended.weight = nn.Parameter(torch.cat([table.weight.detach()[:reserved], stretched]), table.weight.requires_grad)
    embeddings.position_embeddings = extended
    rows = torch.arange(reserved + length, device=extended.weight.device)[None]
    embeddings.position_ids = rows
    if hasattr(embeddings, "token_type_ids"):
        embeddings.token_type_ids = torch.zeros_like(rows)
    model.config.max_position_embeddings = reserved + length
    return model


def positions_of(model: Any) -> int:
    """How long inputs may be: rows of the table, or what a model that rotates instead was made for."""
    embeddings = _embeddings(model)
    if embeddings is None:
        return int(getattr(model.config, "max_position_embeddings", 512))
    return int(embeddings.position_embeddings.num_embeddings) - _reserved_rows(embeddings)


def positions_by_config(family: type[Any], config: Any) -> int:
    """As positions_of(), of a model that is not loaded: its parts are made without room for numbers."""
    with torch.device("meta"):
        return positions_of(family(config))


def guard_positions(model: Any) -> list[Any]:
    """Make an input beyond the table raise by name instead of failing deep inside; returns the hooks that do it."""
    embeddings = _embeddings(model)
    return [] if embeddings is None else [embeddings.register_forward_pre_hook(_check_length, with_kwargs=True)]


def packed_positions(
    model: Any, ids: Int[Tensor, " tokens"], lengths: Int[Tensor, " examples"]
) -> Int[Tensor, " tokens"]:
    """The position of every token of a packed row, as the family counts them, anew for each example."""
    embeddings = _embeddings(model)
    reserved = 0 if embeddings is None else _reserved_rows(embeddings)
    # RoBERTa counts tokens that are none of padding, to which it gives the last reserved row, wherever they stand.
    counted = ids != reserved - 1 if reserved else torch.ones_like(ids, dtype=torch.bool)
    total = counted.cumsum(0)
    before = torch.nn.functional.pad(total, (1, 0))[lengths.cumsum(0) - lengths]
    return (total - before.repeat_interleave(lengths)) * counted + reserved - 1


def _check_length(embeddings: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    given = [*args, kwargs.get("input_ids"), kwargs.get("inputs_embeds")]
    found = next((value for value in given if isinstance(value, Tensor)), None)
    room = int(embeddings.position_embeddings.num_embeddings) - _reserved_rows(embeddings)
    if found is not None and found.shape[1] > room and not _has_positions(embeddings, args, kwargs):
        raise ModelError(
            f"the input has {found.shape[1]} tokens but the model has {room} positions; "
            f"call extend_positions(model, {found.shape[1]}) first, or shorten the input"
        )


def _has_positions(embeddings: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the caller says where each token stands, as for a packed row, and all of these are in the table."""
    given = inspect.signature(embeddings.forward).bind(*args, **kwargs).arguments.get("position_ids")
    return isinstance(given, Tensor) and int(given.max()) < int(embeddings.position_embeddings.num_embeddings)


def _embeddings(model: Any) -> Any:
    embeddings = getattr(getattr(model, "base_model", model), "embeddings", None)
    table = getattr(embeddings, "position_embeddings", None)
    return embeddings if isinstance(table, nn.Embedding) else None


def _reserved_rows(embeddings: Any) -> int:
    """RoBERTa's positions start after its padding index; BERT's at zero."""
    padding = embeddings.position_embeddings.padding_idx
    return 0 if padding is None else int(padding) + 1


def _tiled(trained: Tensor, length: int) -> Tensor:
    repeats = -(-length // len(trained))
    return trained.repeat(repeats, 1)[:length]


def _interpolated(trained: Tensor, length: int) -> Tensor:
    columns = trained.T[None].float()
    stretched = nn.functional.interpolate(columns, size=length, mode="linear", align_corners=True)
    return stretched[0].T.contiguous().to(trained.dtype)
