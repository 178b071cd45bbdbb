"""What four choices save: keep one vector, for several positions; share it between layers; store fewer bits; read less.

A toy small enough to count by hand, with the same rules as the released model, and the path to the released 890 bytes
per token. Three of the choices change what is stored. The fourth, selection, changes what is read and nothing else;
in the released model it even stores more, since every entry that may be selected has an index key.

The toy is invented.

Source: report, sections 2.3 and 2.4.4.
"""

from dataclasses import dataclass

from deepseek_edu.accounting import caches


@dataclass(frozen=True)
class Toy:
    """A cache of a few layers and positions.

    Attributes:
        positions: tokens that have been processed.
        layers: that attend to them.
        values: numbers in a vector.
        vectors: stored for an entry: 2 for a key and a value, 1 for a latent that serves as both.
        ratio: positions that share an entry.
        owners: layers that store entries; the others read those of an owner.
        bits: of a stored number; below 16 a vector also has a scale byte.
        selected: entries that a layer reads for one query; None for all.

    Raises:
        ValueError: a number that no cache has.
    """

    positions: int = 8
    layers: int = 4
    values: int = 8
    vectors: int = 2
    ratio: int = 1
    owners: int = 4
    bits: int = 16
    selected: int | None = None

    def __post_init__(self):
        for name in ("layers", "values", "vectors", "ratio", "bits"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more; got {getattr(self, name)}")
        if min(self.positions, self.selected or 0) < 0:
            raise ValueError(f"positions and selected must be 0 or more; got {self.positions} and {self.selected}")
        _require_owners(self.layers, self.owners)


def _require_owners(layers, owners):
    if not 1 <= owners <= layers:
        raise ValueError(f"owners must be 1 … {layers}, the number of layers; got {owners}")


def vector_bytes(values, bits):
    """Return the bytes of one stored vector: `values` numbers of `bits` bits, and a scale byte where bits < 16.

    >>> [vector_bytes(8, bits) for bits in (16, 8, 4)]
    [16, 9, 5]
    """
    return values * bits // 8 + (1 if bits < 16 else 0)


def entries_stored(toy):
    """Return the entries that one owner of `toy` stores; a half-filled group has none yet."""
    return toy.positions // toy.ratio


def stored_bytes(toy):
    """Return the bytes that `toy` keeps between tokens.

    >>> stored_bytes(Toy()), stored_bytes(Toy(vectors=1, ratio=2, owners=1, bits=4))
    (1024, 20)
    """
    return toy.owners * entries_stored(toy) * toy.vectors * vector_bytes(toy.values, toy.bits)


def read_bytes(toy):
    """Return the bytes that one query moves in all layers of `toy`: each one reads, whether it owns entries or not.

    >>> read_bytes(Toy()), read_bytes(Toy(owners=1)), read_bytes(Toy(selected=3))
    (1024, 1024, 384)
    """
    stored = entries_stored(toy)
    entries = stored if toy.selected is None else min(toy.selected, stored)
    return toy.layers * entries * toy.vectors * vector_bytes(toy.values, toy.bits)


def owner_of(layer, layers, owners):
    """Return the owner whose entries a layer reads: the first layer of its group; groups are as equal as they can be.

    Args:
        layer: 0 … layers − 1.
        layers: that read entries.
        owners: groups, 1 … layers.

    Raises:
        ValueError: there is no such layer, or there are no such groups.

    >>> [owner_of(layer, 8, 3) for layer in range(8)]
    [0, 0, 0, 3, 3, 3, 6, 6]
    """
    _require_owners(layers, owners)
    if not 0 <= layer < layers:
        raise ValueError(f"layer must be 0 … {layers - 1}; got {layer}")
    return -(-(layer * owners // layers) * layers // owners)


def released_steps(config):
    """Return the way to a configuration's bytes per token, one choice after the other: {what is done: bytes}.

    It begins with a cache that no such model had: every layer that reads global entries keeps its own latent for every
    token, in BF16. In another order the single steps would save other amounts; the end is the same.

    >>> from deepseek_edu.config import ModelConfig
    >>> released_steps(ModelConfig.v41_flash())["four bits"]
    720.0
    """
    c = config
    bf16, size = 2 * c.head_dim, caches.entry_bytes(c)
    ratios = [ratio for ratio in c.compress_ratios[: c.n_layers] if ratio]
    owners = sum(1 / c.compress_ratios[layer] for layer in c.kv_source_layers)
    return {
        "a latent per layer": float(len(ratios) * bf16),
        "compress": sum(bf16 / ratio for ratio in ratios),
        "share": owners * bf16,
        "four bits": owners * size["main"],
        "index keys": caches.global_bytes_per_token(c),
    }
