"""Packed bytes, stores and caches on disk: order of nibbles, scale bytes, room, what is refused."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import cache_file, checkpoint, quant, storage
from deepseek_edu.model.model import Model

from ..reference.test_checkpoint import CONFIG as CHECKPOINT_CONFIG
from ..reference.test_checkpoint import released, write
from ..reference.tiny import vectors
from .test_properties_streams import random
from .tiny import gap, rows, tiny_model


def recorded_blocks(name):
    """(input, packed bytes or codes, scale bytes as numbers, values) of a recorded case."""
    case = vectors()[name]
    stored = case.get("packed_bytes_low_nibble_first", case.get("codes"))
    return torch.tensor(case["input_bf16"]), stored, case["scale"], case["dequant_bf16"]


def test_main_entries_have_the_recorded_bytes_low_nibble_first():
    x, stored, scales, values = recorded_blocks("fp4_e4m3_block16")
    packed, scale_bytes = quant.quantize_fp4(x, 16, "e4m3")
    np.testing.assert_array_equal(packed.reshape(-1), np.ravel(stored))
    np.testing.assert_array_equal(quant.decode_e4m3(scale_bytes).reshape(-1), np.ravel(scales))
    np.testing.assert_array_equal(quant.dequantize_fp4(packed, scale_bytes, 16, "e4m3"), values)


def test_index_keys_have_the_recorded_bytes_low_nibble_first():
    x, stored, scales, values = recorded_blocks("fp4_e8m0_block32")
    packed, scale_bytes = quant.quantize_fp4(x, 32, "e8m0")
    np.testing.assert_array_equal(packed.reshape(-1), np.ravel(stored))
    np.testing.assert_array_equal(quant.decode_e8m0(scale_bytes).reshape(-1), np.ravel(scales))
    np.testing.assert_array_equal(quant.dequantize_fp4(packed, scale_bytes, 32, "e8m0"), values)


def test_window_entries_have_the_recorded_bytes():
    x, stored, scales, values = recorded_blocks("fp8_e8m0_block32")
    codes, scale_bytes = quant.quantize_fp8(x)
    np.testing.assert_array_equal(codes.reshape(-1), np.ravel(stored))
    np.testing.assert_array_equal(quant.decode_e8m0(scale_bytes).reshape(-1), np.ravel(scales))
    np.testing.assert_array_equal(quant.dequantize_fp8(codes, scale_bytes), values)


def test_the_even_channel_lies_in_the_low_nibble():
    """Codes 0 … 15 in turn, scale 1: byte i holds code 2i low and 2i + 1 high."""
    codes = torch.arange(16)
    packed, scale_bytes = quant.quantize_fp4(quant.decode_e2m1(codes), 16, "e4m3")
    assert packed.tolist() == [2 * i | (2 * i + 1) << 4 for i in range(8)]
    assert quant.decode_e4m3(scale_bytes).tolist() == [1.0]
    assert torch.equal(quant.dequantize_fp4(packed, scale_bytes), quant.decode_e2m1(codes))


def test_the_seven_ties_go_to_the_even_code():
    middle = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    assert quant.encode_e2m1(middle).tolist() == [0, 2, 2, 4, 4, 6, 6]
    assert quant.encode_e2m1(-middle).tolist() == [8, 10, 10, 12, 12, 14, 14]


def test_values_beyond_the_largest_level_are_clipped_to_it():
    assert quant.encode_e2m1(torch.tensor([6.1, 100.0, -7.0])).tolist() == [7, 7, 15]
    assert quant.encode_e4m3(torch.tensor([449.0, 1e6, -1e6])).tolist() == [0x7E, 0x7E, 0xFE]


def test_a_block_of_huge_values_gets_the_largest_scale_not_a_nan():
    """amax/6 beyond 448 saturates; 448 · 6 = 2688 is the largest number."""
    packed, scale_bytes = quant.quantize_fp4(torch.full((16,), 1e4))
    assert scale_bytes.tolist() == [0x7E]
    assert quant.dequantize_fp4(packed, scale_bytes).tolist() == [2688.0] * 16


def test_an_e4m3_scale_is_rounded_to_nearest_and_not_up():
    """Section 8: 7/6 becomes 1.125, and 7 reads back as 6.75."""
    packed, scale_bytes = quant.quantize_fp4(torch.tensor([7.0, 1.0, -3.5] + [0.0] * 13))
    assert quant.decode_e4m3(scale_bytes).tolist() == [1.125]
    assert quant.dequantize_fp4(packed, scale_bytes)[:3].tolist() == [6.75, 1.125, -3.375]


def test_a_power_of_two_scale_is_rounded_up_and_exact_powers_stay():
    assert quant.power_of_two_byte(torch.tensor([1.0, 1.0000001, 1.5, 2.0, 0.75])).tolist() == [127, 128, 128, 128, 127]


def test_the_scale_follows_the_largest_magnitude():
    packed, scale_bytes = quant.quantize_fp4(torch.tensor([1.0, -12.0] + [0.0] * 14))
    assert quant.decode_e4m3(scale_bytes).tolist() == [2.0]
    assert quant.dequantize_fp4(packed, scale_bytes)[:2].tolist() == [1.0, -12.0]


def test_a_window_block_near_zero_keeps_the_scale_of_one_ten_thousandth():
    """amax counts as 1e-4: 1e-4/448 = 2.2e-7 lies between 2⁻²³ and 2⁻²²."""
    _, scale_bytes = quant.quantize_fp8(torch.full((32,), 1e-6))
    assert quant.decode_e8m0(scale_bytes).tolist() == [2.0**-22]


def test_blocks_of_zeros_keep_a_scale_and_read_as_zeros():
    for kind, block, expected in (("e4m3", 16, 2.0**-9), ("e8m0", 32, 2.0**-126)):
        packed, scale_bytes = quant.quantize_fp4(torch.zeros(32), block, kind)
        scales = quant.decode_e4m3(scale_bytes) if kind == "e4m3" else quant.decode_e8m0(scale_bytes)
        assert set(scales.tolist()) == {expected}
        assert quant.dequantize_fp4(packed, scale_bytes, block, kind).abs().max() == 0


def test_numbers_are_rounded_once():
    """5 + 2⁻²⁰ is nearer to 6; rounded to bfloat16 first it would be the tie 5 and go to 4."""
    assert quant.encode_e2m1(torch.tensor([5 + 2.0**-20, 2.5 + 2.0**-20])).tolist() == [7, 5]
    assert quant.encode_e2m1(torch.tensor([5 + 2.0**-20], dtype=torch.float64)).tolist() == [7]


def test_the_gradient_passes_a_rounding_unchanged():
    x = random(3, 32).requires_grad_()
    read = storage.FP4Rows(32, "e4m3", 16, torch.float64).read_back(x)
    (read * 3).sum().backward()
    assert not torch.equal(read, x)
    assert torch.equal(x.grad, torch.full_like(x, 3))


# Stores


def store():
    return storage.Entries(storage.PlainRows(1, torch.float64), 2, torch.device("cpu"))


def write_rows(entries, values, first, counts):
    tile = torch.tensor(values, dtype=torch.float64)[..., None]
    entries.write(tile, torch.tensor(first), torch.tensor(counts))


def kept(entries):
    return [entries.stored(row)[0][:, 0].tolist() for row in range(2)]


def test_rows_of_different_lengths_grow_side_by_side_and_padding_is_left_out():
    entries = store()
    write_rows(entries, [[1, 2, 3], [4, -1, -1]], [0, 0], [3, 1])
    write_rows(entries, [[5, -1], [6, 7]], [3, 1], [1, 2])
    assert kept(entries) == [[1, 2, 3, 5], [4, 6, 7]]
    assert entries.size == 4
    assert entries.nbytes == 7 * 8


def test_entries_that_a_row_has_already_are_passed_over():
    entries = store()
    write_rows(entries, [[1, 2, 3], [4, 5, 6]], [0, 0], [3, 3])
    write_rows(entries, [[-1, -1, 7], [-1, 8, 9]], [1, 2], [3, 3])
    assert kept(entries) == [[1, 2, 3, 7], [4, 5, 6, 8, 9]]


def test_growing_keeps_what_is_there():
    entries = store()
    for number in range(100):
        write_rows(entries, [[number], [-number]], [number, number], [1, 1])
    assert kept(entries) == [list(range(100)), [-n for n in range(100)]]


def test_cut_rows_are_gone_and_can_be_written_anew():
    entries = store()
    write_rows(entries, [[1, 2, 3], [4, 5, 6]], [0, 0], [3, 3])
    entries.truncate(torch.tensor([1, 3]))
    assert kept(entries) == [[1], [4, 5, 6]]
    write_rows(entries, [[9], [8]], [1, 3], [1, 1])
    assert kept(entries) == [[1, 9], [4, 5, 6, 8]]


def test_entries_are_gathered_from_their_own_row():
    entries = store()
    write_rows(entries, [[1, 2, 3], [4, 5, 6]], [0, 0], [3, 3])
    got = entries.gather(torch.tensor([[[2, 0]], [[1, 1]]]))[..., 0]
    assert got.tolist() == [[[3, 1]], [[5, 5]]]


def test_pieces_are_all_entries_in_order():
    """Pieces of 32 entries of both rows; one is read before the next is made."""
    formats = (storage.PlainRows(64, torch.float32), storage.FP4Rows(64, "e8m0", 32, torch.float64))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(storage, "SCANNED", 2 * 32 * 64)
        for row_format in formats:
            entries = storage.Entries(row_format, 2, torch.device("cpu"))
            values = torch.randn(2, 100, 64, generator=torch.Generator().manual_seed(0))
            entries.write(values, torch.tensor([0, 0]), torch.tensor([100, 70]))
            pieces = [piece.clone() for piece in entries.pieces()]
            assert [piece.shape[1] for piece in pieces] == [32, 32, 32, 4]
            assert torch.equal(torch.cat(pieces, dim=1), entries.read())


def test_pieces_are_what_is_stored_now_whatever_was_read_before():
    """Entries taken back and replaced by others, rows that grow apart, a row restored, more room."""
    entries = storage.Entries(storage.FP4Rows(64, "e8m0", 32, torch.float32), 2, torch.device("cpu"))

    def write(first, counts, seed):
        values = torch.randn(2, max(counts), 64, generator=torch.Generator().manual_seed(seed))
        entries.write(values, torch.tensor(first), torch.tensor(counts))

    def same():
        """Of every row its own entries; the same memory is read twice."""
        for _ in range(2):
            pieces = torch.cat([piece.clone() for piece in entries.pieces()], dim=1)
            for row, count in enumerate(entries.counts.tolist()):
                assert torch.equal(pieces[row, :count], entries.read()[row, :count])

    assert entries.unpacked_nbytes == 0
    write([0, 0], [9, 4], 0)
    same()
    assert entries.unpacked_nbytes == (9 + 4) * 64 * 2
    write([9, 4], [1, 3], 1)
    same()
    entries.truncate(torch.tensor([8, 2]))
    write([8, 2], [2, 7], 2)
    same()
    write([10, 9], [40, 1], 3)
    same()
    entries.restore(1, [part.clone() for part in entries.stored(0)])
    same()


def test_the_copy_that_decoding_keeps_is_counted_as_transient():
    """Index keys of 32 numbers: every second token's in layer 1, every token's in layer 3."""
    model = tiny_model()
    cache = model.new_cache()
    model.prefill(rows(21), cache)
    before = cache.nbytes
    assert before["unpacked"] == 0
    model.decode([5], cache)
    after = cache.nbytes
    assert after["unpacked"] == (11 + 22) * 32 * 2
    assert after["transient"] == before["transient"] + after["unpacked"]
    plain = model.new_cache(quantized=False)
    model.prefill(rows(21), plain)
    model.decode([5], plain)
    assert plain.nbytes["unpacked"] == 0


def test_an_entry_put_at_the_end_is_one_that_was_written():
    for row_format in (storage.PlainRows(64, torch.float32), storage.FP4Rows(64, "e8m0", 32, torch.float32)):
        written, put = (storage.Entries(row_format, 1, torch.device("cpu")) for _ in range(2))
        for number in range(40):
            value = torch.randn(1, 1, 64, generator=torch.Generator().manual_seed(number))
            written.write(value, torch.tensor([number]), torch.tensor([1]))
            put.put(number, value[0, 0])
            assert put.counts.tolist() == [number + 1]
            last = [piece.clone() for piece in put.pieces()][-1][0, -1]
            assert torch.equal(last, written.read()[0, number])
        assert torch.equal(put.read(), written.read())
        assert put.nbytes == written.nbytes


def test_rows_lie_in_the_bytes_of_the_released_formats():
    """512 E4M3 codes and 16 scales; 256 + 32 bytes; 64 + 4 bytes."""
    assert storage.row_bytes(storage.FP8Rows(512, torch.float32)) == 528
    assert storage.row_bytes(storage.FP4Rows(512, "e4m3", 16, torch.float32)) == 288
    assert storage.row_bytes(storage.FP4Rows(128, "e8m0", 32, torch.float32)) == 68


def test_every_ring_is_counted_in_the_bytes():
    cache = tiny_model().new_cache(2)
    parts = [part for ring in cache.rings for row in range(2) for part in ring.stored(row)]
    assert cache.nbytes["transient"] == sum(part.numel() * part.element_size() for part in parts)
    assert cache.nbytes["persistent"] == 0


# Files


def test_a_saved_row_is_that_row_and_goes_on_like_it():
    model = tiny_model()
    cache = model.new_cache(2)
    model.prefill(rows(13, 6), cache)
    model.decode([[1, 2, 3], [4, 5, 6]], cache)
    cache.rollback(cache.lengths - 2)
    with tempfile.TemporaryDirectory() as folder:
        cache_file.save(cache, Path(folder) / "row", row=1)
        loaded = cache_file.load([Path(folder) / "row"], model.config, torch.float64)
    assert (loaded.lengths.tolist(), loaded.highest.tolist()) == ([7], [9])
    got = model.decode([[5, 6]], loaded).logits[0]
    assert gap(got, model.decode([[5, 6], [5, 6]], cache).logits[1]) < 1e-9


def test_a_file_that_is_damaged_cut_or_of_another_model_is_refused():
    model = tiny_model()
    cache = model.new_cache()
    model.prefill(rows(9), cache)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache"
        cache_file.save(cache, path)
        content = path.read_bytes()
        with pytest.raises(cache_file.CacheFileError, match="another configuration; it differs in window_size"):
            cache_file.load([path], ModelConfig.tiny(window_size=9))
        for wrong in (content[:-100] + bytes([content[-100] ^ 1]) + content[-99:], content[:-7], b"", b"x" * 400):
            path.write_bytes(wrong)
            with pytest.raises(cache_file.CacheFileError):
                cache_file.load([path], model.config)


def test_a_released_checkpoint_becomes_the_numbers_it_means():
    """FP8 squares, FP4 experts, tables with scales, plain types; every tensor, and the logits."""
    config, token_map = CHECKPOINT_CONFIG, np.arange(96) // 2
    stored, meaning = released(config)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), stored)
        model = checkpoint.load_checkpoint(folder, config, token_map, torch.float64)
    for name, tensor in model.state_dict().items():
        assert gap(tensor, meaning[name]) == 0, name


def test_a_state_dict_of_released_names_is_taken_over_whole():
    torch.manual_seed(0)
    model = Model(ModelConfig.tiny())
    state = model.state_dict()
    assert "layers.7.ffn.experts.3.w2.weight" in state
    changed = {name: torch.randn_like(tensor) for name, tensor in state.items()}
    model.load_state_dict(changed)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, changed[name]), name
