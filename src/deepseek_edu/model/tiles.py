"""Rows of different lengths as one tile [B T …]: padding what a caller gives, cutting chunks, keeping last tokens.

Source: our own.
"""

import torch
from torch import nn


def numbers(value, name, device=None):
    """Return what a caller gave as a tensor of any shape.

    Args:
        value: tensor, array, nested list or number.
        name: the argument's name in the caller, for the message.
        device: where the tensor is wanted, or None for where it is.

    Raises:
        ValueError: it is not made of numbers.
    """
    try:
        return torch.as_tensor(value, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{name} must be made of numbers; got {value!r}; give a tensor, an array or a list") from None


def padded(ids, counts, device):
    """Return (ids int64 [B T] on the device, counts int64 [B] on the CPU) of what a caller gave.

    Args:
        ids: tensor or nested list [B T]; lists of different lengths are padded with 0.
        counts: int [B], tokens of each row, or None for all (of each list).

    Raises:
        ValueError: another shape or type, an empty tile, or counts that are more than a row has.
    """
    if not isinstance(ids, torch.Tensor):
        try:
            rows = [torch.as_tensor(row) if len(row) else torch.zeros(0, dtype=torch.int64) for row in ids]
            lengths = [len(row) for row in rows]
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise ValueError(f"ids must be [B T]; got {ids!r}; put a single sequence in a list") from None
        if not rows:
            raise ValueError("ids must be [B T], not empty; got no rows")
        counts = torch.tensor(lengths) if counts is None else numbers(counts, "counts")
        if counts.shape == (len(rows),) and bool((counts.cpu() > torch.tensor(lengths)).any()):
            raise ValueError(f"counts must be at most {lengths}, what the rows have; got {counts.tolist()}")
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    if ids.ndim != 2 or not ids.numel() or ids.is_floating_point() or ids.dtype == torch.bool:
        raise ValueError(f"ids must be integers [B T], not empty; got shape {tuple(ids.shape)}, type {ids.dtype}")
    batch, width = ids.shape
    counts = torch.full((batch,), width) if counts is None else numbers(counts, "counts", "cpu")
    if counts.shape != (batch,) or counts.is_floating_point() or bool(((counts < 0) | (counts > width)).any()):
        raise ValueError(f"counts must be {batch} numbers from 0 to {width}; got {counts.tolist()}")
    return ids.to(device=device, dtype=torch.int64), counts.to(torch.int64)


def next_ids(ids, device):
    """Return what a caller gave to decode, one token for each row or several, as a tensor [B] or [B T].

    Args:
        ids: [B] or [B T], tensor or nested list; device: where the tensor is wanted.

    Raises:
        ValueError: it has another shape or is no array of numbers.
    """
    try:
        ids = torch.as_tensor(ids, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"ids must be integers [B] or [B T]; got {ids!r}") from None
    if ids.ndim not in (1, 2):
        raise ValueError(f"ids must be integers [B] or [B T]; got shape {tuple(ids.shape)}")
    return ids


def image_input(types, features, ids, counts, width):
    """Return (types int64 [B T], features [n C]) as tensors where the ids are, None for what was not given.

    Args:
        types: [B T] as a caller gave it, −1 text and 0 … 3 inside an image; or None.
        features: [n C] as a caller gave it, for the tokens inside images, row by row; or None.
        ids: int64 [B T]; counts: int64 [B], tokens of each row.
        width: C.

    Raises:
        ValueError: shapes or values do not fit, or there are features without types.
    """
    if types is None:
        if features is not None:
            raise ValueError("features need types, which say where they stand; got none")
        return None, None
    types = numbers(types, "types", ids.device)
    if types.shape != ids.shape:
        raise ValueError(f"types must have the shape of ids, {tuple(ids.shape)}; got {tuple(types.shape)}")
    real = torch.arange(ids.shape[1]) < counts[:, None]  # B T
    real = real.to(ids.device)
    own = types[real]
    if types.is_floating_point() or (own.numel() and (own.min() < -1 or own.max() > 3)):
        raise ValueError(f"types must be integers, -1 for text and 0 … 3 inside an image; got {own.unique().tolist()}")
    if features is None:
        return types, None
    features = numbers(features, "features", ids.device)
    inside = int((own >= 0).sum())
    if features.shape != (inside, width):
        raise ValueError(f"features must be {(inside, width)}; got {tuple(features.shape)}")
    if features.is_complex() or not bool(features.isfinite().all()):
        found = features.dtype if features.is_complex() else "an infinity or a NaN"
        raise ValueError(f"features must be finite real numbers; got {found}")
    return types, features


def cut(types, features, columns, counts):
    """Return the types and features of one chunk; features lie row by row, so each row's own are counted.

    Args:
        types: [B T] or None.
        features: [tokens inside image spans, C] or None.
        columns: slice of T, the chunk.
        counts: int64 [B], tokens of each row.

    Returns:
        (types [B t] or None, features [n C] or None).
    """
    if types is None:
        return None, None
    if features is None:
        return types[:, columns], None
    inside = (types >= 0) & (torch.arange(types.shape[1]) < counts[:, None]).to(types.device)  # B T
    places = torch.full(inside.shape, -1, device=types.device)
    places[inside] = torch.arange(len(features), device=types.device)
    some = places[:, columns]
    return types[:, columns], features[some[some >= 0]]


class Tail:
    """The last tokens of each row of several tiles, as one tile.

    Args:
        rows: how many tokens of each row are kept at most.
    """

    def __init__(self, rows):
        self.rows, self.tiles, self.counts = rows, None, None

    def add(self, counts, tiles):
        """Append {name: tile [B T …]} whose rows have counts[b] tokens."""
        if self.tiles is None:
            self.counts = torch.zeros_like(counts)
            self.tiles = {name: tile[:, :0] for name, tile in tiles.items()}
        total = self.counts + counts
        kept = total.clamp_max(self.rows)
        places = (total - kept)[:, None] + torch.arange(max(1, int(kept.max())))  # B R, in old tokens, then new ones
        old = self.tiles["pre"].shape[1]
        columns = torch.where(places < self.counts[:, None], places, places - self.counts[:, None] + old)
        new = tiles["pre"]
        columns = columns.clamp_max(old + new.shape[1] - 1).to(new.device)
        rows = torch.arange(len(counts), device=new.device)[:, None]
        self.tiles = {name: torch.cat([self.tiles[name], tile], dim=1)[rows, columns] for name, tile in tiles.items()}
        self.counts = kept
