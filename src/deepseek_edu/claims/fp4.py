"""Checks of the claims about four-bit storage of the main KV cache.

Sources: technical report of DeepSeek-V4.1-Flash, section 2.4.4; its released configuration; the rounding rules from a
public PyTorch port of its FP4 kernel, whose own source was not seen.
Only sizes and rounding rules are recomputed. What the report observed in training cannot be.
"""

import itertools
import math

import numpy as np

from deepseek_edu import accounting
from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import quant

FLASH = ModelConfig.v41_flash()


def distinct_levels() -> int:
    """Number of different values among the 16 codes.

    >>> distinct_levels()
    15
    """
    return len(np.unique(quant.decode_e2m1(np.arange(16, dtype=np.uint8))))


def largest_magnitude() -> float:
    """Largest value that a code can stand for."""
    return float(np.max(quant.decode_e2m1(np.arange(16, dtype=np.uint8))))


def bits_per_value() -> float:
    """Bits per value, scale included, of a group of 16."""
    return float(quant.bits_per_value(16))


def main_entry_bytes() -> int:
    """Bytes of one entry of the main cache."""
    return accounting.entry_bytes(FLASH)["main"]


def index_entry_bytes() -> int:
    """Bytes of one index key."""
    return accounting.entry_bytes(FLASH)["index"]


def global_kv_bytes_per_token() -> float:
    """Bytes by which the global cache grows with each token."""
    return accounting.global_bytes_per_token(FLASH)


def range_with_e4m3_scale() -> float:
    """Largest scale times largest level."""
    scales = quant.decode_e4m3(np.arange(256, dtype=np.uint8))
    return float(np.nanmax(scales)) * largest_magnitude()


def latent_bound() -> float:
    """Largest channel of a normalised latent: all of its norm in one channel.

    The norm is the square root of the number of channels, since the mean square is one.
    """
    latent = np.zeros(FLASH.head_dim)
    latent[0] = 1.0
    latent /= math.sqrt(float(np.mean(latent**2)))
    return float(np.max(np.abs(latent)))


def range_covers_the_bound() -> bool:
    """Whether one scale per group reaches every magnitude that a latent can have."""
    return latent_bound() < range_with_e4m3_scale()


def window_entry_bytes() -> int:
    """Bytes of one window entry: a byte per channel and a scale byte per 32 channels."""
    return accounting.entry_bytes(FLASH)["window"]


def ties_go_to_even() -> bool:
    """Whether all seven midpoints round to the neighbour with the even code, on both sides of zero."""
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    expected = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    up = np.array_equal(quant.round_to_e2m1(ties), expected)
    down = np.array_equal(quant.round_to_e2m1(-ties), -expected)
    return bool(up and down)


def largest_of_seven_read_back() -> float:
    """What a 7 reads back as when it is the largest value of its group."""
    group = np.zeros(16)
    group[0] = 7.0
    return float(quant.quantize_fp4(group, block=16, scale_kind="e4m3").values.reshape(-1)[0])


def power_of_two_scale_never_clips() -> bool:
    """Whether the largest magnitude divided by its power-of-two scale stays within the largest level."""
    largest = np.geomspace(1e-6, 2688.0, 997).astype(np.float32)
    return all(float(amax) / float(np.max(quant.scale_e8m0_for_fp4(amax))) <= 6.0 for amax in largest)


def zero_group_is_harmless() -> bool:
    """Whether zeros keep the scale 2**-9 (E4M3, 16 values) or 2**-126 (E8M0, 32) and read back as zeros."""
    groups = ((16, "e4m3", 2.0**-9), (32, "e8m0", 2.0**-126))
    stored = [(quant.quantize_fp4(np.zeros(size), size, kind), scale) for size, kind, scale in groups]
    return all(bool(np.all(group.values == 0.0) and np.all(group.scales == scale)) for group, scale in stored)


def even_channel_is_low_nibble() -> bool:
    """Whether codes 1 and 2 pack to the byte 0x21."""
    return bytes(quant.pack_nibbles(np.array([1, 2], dtype=np.uint8))) == b"\x21"


def largest_group_whose_floor_differs() -> float:
    """Largest magnitude whose window scale depends on where the floor of 1e-4 is applied.

    The engine that applies it to the quotient never stores a scale below the power of two above 1e-4, which is 2**-13.
    A group differs if its own scale is smaller: up to 448 times the next smaller power.
    """
    floor = 2.0 ** math.ceil(math.log2(1e-4))
    largest = quant.FP8_MAX * floor / 2
    beyond = np.nextafter(np.float32(largest), np.float32(1))
    assert quant.scale_e8m0_for_fp8(largest) < floor == quant.scale_e8m0_for_fp8(beyond)
    return largest


def _column(record: dict, latents: str, column: str = "relative RMS error") -> dict[str, float]:
    """One column of the record by format, for one kind of latents."""
    number = {name: number for number, name in enumerate(record["columns"])}
    rows = [row for row in record["rows"] if row[number["latents"]] == latents]
    return {row[number["format"]]: row[number[column]] for row in rows}


def four_bits_err_three_to_four_times_as_much(record: dict) -> bool:
    """Whether the main cache's format errs three to four times as much as FP8, on both kinds of latents."""
    both = [_column(record, latents) for latents in ("Gaussian", "heavy-tailed")]
    return all(3 < errors["FP4, E4M3 per 16"] / errors["FP8, power of two per 32"] < 4 for errors in both)


def finer_scale_beats_smaller_group(record: dict) -> bool:
    """Whether, on Gaussian latents, changing the scale of the index format helps more than changing its group."""
    errors, spread = (_column(record, "Gaussian", c) for c in ("relative RMS error", "spread over 5 seeds"))
    order = ("FP4, E4M3 per 16", "FP4, E4M3 per 32", "FP4, power of two per 16", "FP4, power of two per 32")
    gaps = [errors[worse] - errors[better] for better, worse in itertools.pairwise(order)]
    return min(gaps) > max(spread[name] for name in order)


def heavy_tails_show_in_zeros_only(record: dict) -> bool:
    """Whether heavy tails change the main format's relative error by less than a tenth, its zeros by more than half."""

    def change(column: str) -> float:
        plain, heavy = (_column(record, kind, column) for kind in ("Gaussian", "heavy-tailed"))
        return heavy["FP4, E4M3 per 16"] / plain["FP4, E4M3 per 16"] - 1

    return abs(change("relative RMS error")) < 0.1 and change("stored as zero") > 0.5


def formats_in_order_of_error(record: dict) -> bool:
    """Whether, on Gaussian latents, FP8 errs least and the four-bit format of the main cache less than MXFP4.

    The differences have to exceed the spread over seeds that the record states.
    """
    errors, spread = (_column(record, "Gaussian", c) for c in ("relative RMS error", "spread over 5 seeds"))
    order = ("FP8, power of two per 32", "FP4, E4M3 per 16", "FP4, power of two per 32")
    gaps = [errors[worse] - errors[better] for better, worse in itertools.pairwise(order)]
    return min(gaps) > max(spread[name] for name in order)
