"""Quantised matrices, and reading a checkpoint in the released layout."""

import json
import tracemalloc

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import checkpoint, linear, quant, weights
from deepseek_edu.reference import model as models

from .tiny import gap

CONFIG = ModelConfig.tiny(moe_inter_dim=32, index_n_heads=2)  # every expert matrix is a multiple of 32 wide


def bfloat16(x):
    """Rounded to nearest even, as (numbers, stored bytes)."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return (bits << 16).astype(np.uint32).view(np.float32), bits.astype("<u2").tobytes()


def released(config, seed=0):
    """A random model in the released types: ({stored name: (type, shape, bytes)}, {name: numbers it stands for})."""
    stored, meaning = {}, {}
    for name, array in weights.random_weights(config, seed).items():
        array = array.astype(np.float32)
        if name.endswith("embed.scale"):
            continue
        if name.endswith("engram.embed.weight"):
            table = quant.quantize_fp8(array, 32)
            scale = name.replace("weight", "scale")
            stored[name] = ("F8_E4M3", array.shape, table.packed.tobytes())
            stored[scale] = ("F8_E8M0", table.scale_bytes.shape, table.scale_bytes.tobytes())
            meaning[name], meaning[scale] = quant.decode_e4m3(table.packed), table.scales
        elif ".experts." in name:
            packed, scales = linear.quantize_fp4_weight(array)
            stored[name] = ("I8", packed.shape, packed.tobytes())
            stored[name.replace("weight", "scale")] = ("F8_E8M0", scales.shape, scales.tobytes())
            meaning[name] = quant.quantize_fp4(array, 32, "e8m0").values
        elif name.endswith(("wq_a.weight", "attn.wq_b.weight", "attn.wkv.weight", "wo_b.weight")) or "shared" in name:
            codes, scales = linear.quantize_fp8_weight(array)
            stored[name] = ("F8_E4M3", codes.shape, codes.tobytes())
            stored[name.replace("weight", "scale")] = ("F8_E8M0", scales.shape, scales.tobytes())
            meaning[name] = linear.dequantize_fp8_weight(codes, scales)
        elif name.startswith(("embed", "head", "vision", "aligner")) or "wo_a" in name:
            meaning[name], content = bfloat16(array)
            stored[name] = ("BF16", array.shape, content)
        else:
            meaning[name], stored[name] = array, ("F32", array.shape, array.tobytes())
    return stored, meaning


def write(folder, stored, shards=3):
    """Write safetensors shards and their index by hand."""
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        header, body = {"__metadata__": {"format": "pt"}}, b""
        for name in list(stored)[shard::shards]:
            dtype, shape, content = stored[name]
            offsets = [len(body), len(body) + len(content)]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
            body += content
            weight_map[name] = file
        text = json.dumps(header).encode()
        (folder / file).write_bytes(len(text).to_bytes(8, "little") + text + body)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_a_checkpoint_in_the_released_layout_gives_the_numbers_it_stands_for(tmp_path):
    stored, meaning = released(CONFIG)
    write(tmp_path, stored)
    got = checkpoint.load_checkpoint(tmp_path, CONFIG, np.float32)
    assert set(got) == set(weights.weight_shapes(CONFIG))
    for name, expected in meaning.items():
        np.testing.assert_array_equal(got[name], expected, err_msg=name)
    model = models.Model(CONFIG, got, np.arange(96) // 2)
    assert np.isfinite(model.prefill([1, 2, 3], model.new_cache()).logits).all()


def test_pieces_of_any_size_are_the_whole(tmp_path, monkeypatch):
    """Pieces of at most 700 numbers, where rows and the rows that share scales are not larger."""
    stored, meaning = released(CONFIG)
    write(tmp_path, stored)
    monkeypatch.setattr(checkpoint, "PIECE", 700)
    got = checkpoint.load_checkpoint(tmp_path, CONFIG, np.float32)
    for name, expected in meaning.items():
        np.testing.assert_array_equal(got[name], expected, err_msg=name)
    opened = checkpoint.Checkpoint(tmp_path)
    for name, per_piece in (("embed.weight", 21), ("layers.0.attn.wq_b.weight", 32), ("layers.0.attn.wq_a.weight", 16)):
        rows = [len(numbers) for _, numbers in opened.pieces(name)]
        assert rows[:-1] == [per_piece] * (len(rows) - 1) and sum(rows) == len(meaning[name])


@pytest.mark.parametrize("kind", ["F8_E4M3", "I8", "BF16", "F32"])
def test_reading_needs_the_memory_of_a_piece(tmp_path, monkeypatch, kind):
    """48 bytes for each of its numbers, whatever the size of the tensor: 100 MB for 2 million."""
    monkeypatch.setattr(checkpoint, "PIECE", 1 << 14)
    array = np.random.default_rng(0).standard_normal((4096, 128)).astype(np.float32)
    stored = {"x.weight": ("F32", array.shape, array.tobytes())}
    if kind == "BF16":
        stored = {"x.weight": (kind, array.shape, bfloat16(array)[1])}
    elif kind != "F32":
        make = linear.quantize_fp8_weight if kind == "F8_E4M3" else linear.quantize_fp4_weight
        codes, scales = make(array)
        stored = {"x.weight": (kind, codes.shape, codes.tobytes())}
        stored["x.scale"] = ("F8_E8M0", scales.shape, scales.tobytes())
    write(tmp_path, stored, shards=1)
    opened = checkpoint.Checkpoint(tmp_path)
    for _ in opened.pieces("x.weight"):  # what is made once, at the first use
        break
    tracemalloc.start()
    try:
        total = sum(len(numbers) for _, numbers in opened.pieces("x.weight"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 4096
    assert peak < 48 * checkpoint.PIECE + 50_000 < array.nbytes / 2


def test_one_layer_can_be_read_alone(tmp_path):
    stored, meaning = released(CONFIG)
    write(tmp_path, stored, shards=1)
    got = checkpoint.load_checkpoint(tmp_path, CONFIG, only="layers.3.")
    assert set(got) == {name for name in meaning if name.startswith("layers.3.")}
    assert got["layers.3.attn.wq_a.weight"].dtype == np.float64


def test_text_models_need_no_vision_tower_and_no_index(tmp_path):
    stored, _ = released(CONFIG)
    text = {name: s for name, s in stored.items() if not name.startswith(("vision.", "aligner.", "image_"))}
    write(tmp_path, text)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert "vision.norm.weight" not in checkpoint.load_checkpoint(tmp_path, CONFIG)


def refusal(folder, stored):
    """What is said when a checkpoint of these tensors is loaded."""
    write(folder, stored)
    with pytest.raises(ValueError) as error:
        checkpoint.load_checkpoint(folder, CONFIG)
    return str(error.value)


def test_missing_unknown_and_misshapen_tensors_are_listed_together(tmp_path):
    stored, _ = released(CONFIG)
    del stored["norm.weight"], stored["mtp.2.norm.weight"]
    stored["surplus"] = ("F32", (1,), b"\0" * 4)
    stored["layers.0.attn.attn_sink"] = ("F32", (5,), b"\0" * 20)
    dtype, (rows, half), content = stored["layers.1.ffn.experts.0.w1.weight"]
    stored["layers.1.ffn.experts.0.w1.weight"] = (dtype, (rows, half // 2), content[: rows * half // 2])
    message = refusal(tmp_path, stored)
    assert "2 missing: norm.weight, mtp.2.norm.weight" in message
    assert "1 unknown: surplus" in message
    assert "2 of another shape" in message
    assert "layers.0.attn.attn_sink (5,) (expected (4,))" in message
    assert "layers.1.ffn.experts.0.w1.weight (32, 16) (expected (32, 32))" in message


def test_scales_and_types_that_cannot_be_read_are_listed_with_the_rest(tmp_path):
    stored, _ = released(CONFIG)
    dense, expert, table = "layers.0.attn.wq_b", "layers.0.ffn.experts.1.w1", "layers.1.engram.embed"
    kind, shape, content = stored[f"{dense}.scale"]
    stored[f"{dense}.scale"] = (kind, (shape[0] + 7, *shape[1:]), content + bytes(7 * shape[1]))
    kind, shape, content = stored[f"{expert}.scale"]
    stored[f"{expert}.scale"] = (kind, (shape[0], 2 * shape[1]), 2 * content)
    kind, shape, content = stored[f"{table}.scale"]
    stored[f"{table}.scale"] = ("F32", shape, 4 * content)
    kind, shape, content = stored["layers.2.attn.wkv.weight"]
    stored["layers.2.attn.wkv.weight"] = ("F8_E5M2", shape, content)
    del stored["norm.weight"]
    message = refusal(tmp_path, stored)
    assert "1 missing: norm.weight" in message
    assert "4 not readable: " in message
    for words in (
        f"{dense}.scale (scales of shape (11, 1) do not belong to a matrix of shape (128, 16))",
        f"{expert}.scale (32, 2) (for {expert}.weight (32, 16))",
        f"{table}.scale of type F32 (expected F8_E8M0)",
        "layers.2.attn.wkv.weight of type F8_E5M2",
    ):
        assert words in message, words


def test_a_tensor_in_two_shards_is_refused(tmp_path):
    stored, _ = released(CONFIG)
    write(tmp_path, stored)
    (tmp_path / "model.safetensors.index.json").unlink()
    first = tmp_path / "model-00001-of-00003.safetensors"
    (tmp_path / "model-00004.safetensors").write_bytes(first.read_bytes())
    with pytest.raises(ValueError, match=r"must be in one shard; it is in model-00001-of-00003.* and model-00004"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)


def test_damaged_files_are_named(tmp_path):
    stored, _ = released(CONFIG)
    write(tmp_path, stored)
    file = tmp_path / "model-00002-of-00003.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"model-00002-of-00003.safetensors is truncated"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)
    file.write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match="no complete safetensors file"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)
    file.unlink()
    with pytest.raises(ValueError, match="missing: model-00002"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)


def test_a_tensor_in_another_shard_than_the_index_says_is_an_error(tmp_path):
    stored, _ = released(CONFIG)
    write(tmp_path, stored)
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    place = content["weight_map"]["head.weight"]
    content["weight_map"]["head.weight"] = next(f for f in content["weight_map"].values() if f != place)
    index.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"1 not in their shard: head\.weight"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)


def test_a_scale_belongs_to_a_square_of_32_by_32():
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((70, 40)) * np.outer(
        np.repeat([1e-3, 1.0, 50.0], [32, 32, 6]), np.repeat([1.0, 7.0], [32, 8])
    )
    codes, scales = linear.quantize_fp8_weight(weight)
    assert scales.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            tile = weight[32 * i : 32 * i + 32, 32 * j : 32 * j + 32].astype(np.float32)
            scale = 2.0 ** np.ceil(np.log2(max(np.abs(tile).max(), 1e-4) / 448))
            assert quant.decode_e8m0(scales[i, j]) == scale
            expected = quant.round_to_e4m3(tile / np.float32(scale)) * np.float32(scale)
            got = linear.dequantize_fp8_weight(codes, scales)[32 * i : 32 * i + 32, 32 * j : 32 * j + 32]
            np.testing.assert_array_equal(got, expected)


def test_the_activations_of_a_quantised_product_are_rounded_to_fp8():
    rng = np.random.default_rng(1)
    x, weight = rng.standard_normal((3, 64)), rng.standard_normal((5, 64))
    expected = quant.quantize_fp8(x, 32).values.astype(float) @ weight.T
    assert gap(linear.product(x, linear.RoundedInput(weight)), expected) == 0
    assert 1e-4 < gap(linear.product(x, linear.RoundedInput(weight)), linear.product(x, weight)) < 1


def test_scales_that_fit_no_block_are_refused():
    with pytest.raises(ValueError, match="do not belong"):
        linear.block_size((64, 64), (3, 2))
    with pytest.raises(ValueError, match="needs scales"):
        linear.dequantize_fp4_weight(np.zeros((2, 16), np.uint8), np.zeros((2, 2), np.uint8))


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"x": ""}}', '{"weight_map": {"x": 3}}', DEEP]
)
def test_an_index_that_is_none_is_named(tmp_path, content):
    write(tmp_path, released(CONFIG)[0])
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match=r"index\.json is damaged: it holds no weight_map"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry.pop("dtype"), "does not describe tensors"),
        (lambda entry: entry.update(shape=[7, 9]), r"head\.weight of shape \[7, 9\] has bytes"),
        (lambda entry: entry.update(data_offsets=[-8, 4]), r"head\.weight of shape .* has bytes -8 … 4"),
        (lambda entry: entry.update(dtype="F4", data_offsets=[4, 0]), r"head\.weight of shape .* has bytes 4 … 0"),
        (lambda entry: entry.update(shape=[-96, -32]), r"head\.weight of shape \[-96, -32\] has bytes"),
        *(
            (lambda entry, change=change: entry.update(change), "does not describe tensors")
            for change in (
                {"data_offsets": [0, 4, 8]},
                {"data_offsets": ["0", "4"]},
                {"data_offsets": None},
                {"data_offsets": [0.0, 4.0]},
                {"data_offsets": [False, True]},
                {"shape": "ab"},
                {"shape": ["a", "b"]},
                {"shape": [96.0, 32.0]},
                {"dtype": ["F32"]},
            )
        ),
    ],
)
def test_a_header_that_contradicts_itself_is_named(tmp_path, change, message):
    stored, _ = released(CONFIG)
    write(tmp_path, stored, shards=1)
    file = tmp_path / "model-00001-of-00001.safetensors"
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    change(header["head.weight"])
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    with pytest.raises(ValueError, match=rf"model-00001-of-00001\.safetensors is damaged: .*{message}"):
        checkpoint.load_checkpoint(tmp_path, CONFIG)
    for text in (b"x" * length, DEEP.encode()):
        file.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
        with pytest.raises(ValueError, match="does not describe tensors"):
            checkpoint.load_checkpoint(tmp_path, CONFIG)


@pytest.mark.parametrize(
    ("places", "size", "message"),
    [
        ({"a": [0, 4], "b": [4, 8]}, 8, None),
        ({"a": [4, 8], "empty": [4, 4], "b": [0, 4]}, 8, None),
        ({"a": [0, 4], "b": [0, 4]}, 4, "b begins at byte 0; those before it end at 4"),
        ({"a": [0, 4], "b": [8, 12]}, 12, "b begins at byte 8; those before it end at 4"),
        ({"a": [4, 8]}, 8, "a begins at byte 4; those before it end at 0"),
        ({"a": [0, 4]}, 7, "3 bytes follow the last tensor"),
        ({}, 1, "1 bytes follow the last tensor"),
    ],
)
def test_tensors_fill_the_file_without_gaps_and_share_no_byte(tmp_path, places, size, message):
    header = {n: {"dtype": "F32", "shape": [(o[1] - o[0]) // 4], "data_offsets": o} for n, o in places.items()}
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    if message is None:
        assert set(checkpoint.Checkpoint(tmp_path).tensors) == set(places)
    else:
        with pytest.raises(ValueError, match=rf"x\.safetensors is damaged: {message}"):
            checkpoint.Checkpoint(tmp_path)


def test_a_folder_is_no_shard(tmp_path):
    (tmp_path / "x.safetensors").mkdir()
    with pytest.raises(ValueError, match=r"must hold safetensors shards; missing: x\.safetensors"):
        checkpoint.Checkpoint(tmp_path)


def test_codes_without_their_scales_are_missing_something(tmp_path):
    stored, _ = released(CONFIG)
    for name in ("layers.0.attn.wq_a.scale", "layers.1.ffn.experts.0.w1.scale", "layers.1.engram.embed.scale"):
        del stored[name]
    write(tmp_path, stored)
    with pytest.raises(ValueError, match="3 missing") as error:
        checkpoint.load_checkpoint(tmp_path, CONFIG)
    for name in ("layers.0.attn.wq_a.scale", "layers.1.ffn.experts.0.w1.scale", "layers.1.engram.embed.scale"):
        assert str(error.value).count(name) == 1
