"""Row formats and the growing store."""

import numpy as np
import pytest

from deepseek_edu.reference import quant, storage

from .tiny import gap

FORMATS = [storage.PlainRows(64), storage.FP8Rows(64), storage.FP4Rows(64, "e4m3", 16), storage.FP4Rows(64, "e8m0", 32)]
NAMES = ["plain", "fp8", "fp4 e4m3", "fp4 e8m0"]


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 64))


@pytest.mark.parametrize("row_format", FORMATS, ids=NAMES)
def test_rows_come_back_as_the_quantiser_reads_them(row_format):
    x = rows(5)
    expected = {
        "plain": x,
        "fp8": quant.quantize_fp8(x, 32).values,
        "fp4 e4m3": quant.quantize_fp4(x, 16, "e4m3").values,
        "fp4 e8m0": quant.quantize_fp4(x, 32, "e8m0").values,
    }[NAMES[FORMATS.index(row_format)]]
    store = storage.Entries(row_format)
    store.append(x[:2])
    store.append(x[2:])
    np.testing.assert_array_equal(store.read(), expected)
    np.testing.assert_array_equal(store.read([[4, 0]]), expected[[[4, 0]]])
    np.testing.assert_array_equal(storage.read_back(row_format, x[None]), expected[None])
    assert store.read().dtype == np.float64


def test_the_bytes_of_the_released_rows():
    """512 E4M3 codes and 16 scales; 256 + 32 bytes; 64 + 4 bytes."""
    assert storage.row_bytes(storage.FP8Rows(512)) == 528
    assert storage.row_bytes(storage.FP4Rows(512, "e4m3", 16)) == 288
    assert storage.row_bytes(storage.FP4Rows(128, "e8m0", 32)) == 68
    store = storage.Entries(storage.FP4Rows(64, "e4m3", 16))
    store.append(rows(7))
    assert store.nbytes == 7 * 36 == sum(part.nbytes for part in store.stored())


@pytest.mark.parametrize("row_format", FORMATS, ids=NAMES)
def test_an_empty_store_reads_as_no_rows(row_format):
    store = storage.Entries(row_format)
    store.append(rows(0))
    assert (store.read().shape, store.nbytes, len(store)) == ((0, 64), 0, 0)


def test_growing_keeps_what_is_there():
    store, kept = storage.Entries(storage.PlainRows(64)), rows(1000)
    for row in kept:
        store.append(row[None])
    np.testing.assert_array_equal(store.read(), kept)


def test_cut_rows_are_gone_and_can_be_written_anew():
    store = storage.Entries(storage.PlainRows(64))
    store.append(rows(5))
    store.truncate(3)
    with pytest.raises(IndexError, match="0 … 2"):
        store.read([3])
    store.append(rows(1, seed=9))
    assert gap(store.read([3]), rows(1, seed=9)) == 0
    with pytest.raises(ValueError, match="never stored"):
        store.truncate(5)


def test_stored_parts_restore_a_store_and_others_are_refused():
    store, other = storage.Entries(FORMATS[2]), storage.Entries(FORMATS[2])
    store.append(rows(4))
    other.restore(store.stored())
    np.testing.assert_array_equal(other.read(), store.read())
    for parts in ([], store.stored()[:1], [store.stored()[0][:, :3], store.stored()[1]]):
        with pytest.raises(ValueError, match="another configuration"):
            other.restore(parts)
