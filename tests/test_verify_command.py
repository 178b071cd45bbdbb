"""`deepseek-edu verify`: rows, exit codes, and one sentence for each kind of wrong input."""

import json
import re
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from deepseek_edu.cli import app
from deepseek_edu.config import ModelConfig

ORACLES = Path(__file__).parent / "oracles"
CONFIG = ORACLES / "v41_tiny_config.json"


@cache
def recorded():
    with np.load(ORACLES / "v41_tiny.npz") as file:
        return {name: file[name] for name in file.files}


def some(*names):
    """The weights, the ids and a few of the outputs."""
    return {k: v for k, v in recorded().items() if k.startswith("w/") or k in ("ids", *names)}


SHORT = ("noquant/prefill2/logits", "quant/prefill1/logits")


@pytest.fixture
def verify(tmp_path):
    def run(outputs, *options, config=CONFIG):
        if isinstance(outputs, dict):
            np.savez(tmp_path / "outputs.npz", **outputs)
            outputs = tmp_path / "outputs.npz"
        return CliRunner().invoke(app, ["verify", str(outputs), str(config), *options])

    return run


def refusal(result):
    """The one line of a refusal."""
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    return result.stderr


def table(result):
    """{output: (difference, tolerance, result)} of the printed rows, in the order of the lines."""
    rows = [line.split() for line in result.stdout.splitlines()]
    return [(r[0], float(r[1]), r[2], r[3]) for r in rows if len(r) == 4 and r[3] in ("pass", "FAIL")]


def test_each_output_has_a_row_for_both_implementations(verify):
    result = verify(some(*SHORT))
    assert result.exit_code == 0, result.output
    rows = table(result)
    assert [(name, tolerance, end) for name, _, tolerance, end in rows] == [(n, "5e-05", "pass") for n in SHORT] * 2
    assert all(0 < difference < 5e-5 for _, difference, *_ in rows)  # float32 against float64: never quite equal
    assert [line for line in result.stdout.splitlines() if line in ("numpy", "torch")] == ["numpy", "torch"]
    assert result.stdout.count("2 of 2 outputs reproduced") == 2


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_only_one_implementation_runs_when_asked(verify, name):
    result = verify(some(*SHORT), "--only", name)
    assert (result.exit_code, len(table(result))) == (0, 2)
    assert result.stdout.splitlines()[0] == name


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_wrong_output_fails(verify, name):
    outputs = some(*SHORT)
    outputs[SHORT[0]] = outputs[SHORT[0]] + np.float32(2e-4) * (np.arange(96) == 7)
    result = verify(outputs, "--only", name)
    assert result.exit_code == 1
    ((first, difference, _, end), (_, _, _, other)) = table(result)
    assert (first, end, other) == (SHORT[0], "FAIL", "pass")
    assert 1.9e-4 < difference < 2.1e-4
    assert "1 of 2 outputs reproduced" in result.stdout


def test_ids_and_hashes_must_be_exact(verify):
    outputs = some("engram_hashes40")
    outputs["engram_hashes40"] = outputs["engram_hashes40"].copy()
    outputs["engram_hashes40"][0, 3, 1, 2] += 1
    result = verify(outputs, "--only", "numpy")
    assert result.exit_code == 1
    assert table(result) == [("engram_hashes40", 1.0, "exact", "FAIL")]


def test_a_value_that_is_not_a_number_fails(verify):
    outputs = some(SHORT[0])
    outputs[SHORT[0]] = np.full_like(outputs[SHORT[0]], np.nan)
    assert verify(outputs, "--only", "numpy").exit_code == 1


def test_unknown_outputs_are_listed_and_do_not_fail(verify):
    result = verify({**some(SHORT[0]), "noquant/novel/thing": np.zeros(2)}, "--only", "numpy")
    assert result.exit_code == 0
    assert "unknown: noquant/novel/thing" in result.stdout
    assert "1 of 1 outputs reproduced, 1 unknown" in result.stdout


def test_nothing_to_compare_is_a_failure(verify):
    result = verify(some(), "--only", "numpy")
    assert result.exit_code == 1
    assert "holds no output that can be compared" in result.stdout


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_missing_weight_is_an_error_that_names_it(verify, name):
    outputs = some(*SHORT)
    del outputs["w/layers.5.attn.indexer.wq_b.weight"]
    assert "1 missing: layers.5.attn.indexer.wq_b.weight" in refusal(verify(outputs, "--only", name))


def test_a_missing_input_is_an_error_that_names_it(verify):
    outputs = some(*SHORT)
    del outputs["ids"]
    assert "'ids'" in refusal(verify(outputs, "--only", "numpy"))


def test_a_file_that_is_not_there(verify, tmp_path):
    assert f"there is no file {tmp_path / 'none.npz'}" in refusal(verify(tmp_path / "none.npz"))
    assert "there is no file" in refusal(verify(ORACLES / "v41_tiny.npz", config=tmp_path / "none.json"))
    assert "is not a file" in refusal(verify(tmp_path))


@pytest.mark.parametrize("content", [b"", b"text", None], ids=["empty", "text", "cut short"])
def test_a_file_that_is_no_npz(verify, tmp_path, content):
    whole = (ORACLES / "v41_tiny.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(whole[:-400] if content is None else content)
    assert "is not a whole .npz file" in refusal(verify(tmp_path / "x.npz"))


def test_a_damaged_npz_and_one_with_python_objects(verify, tmp_path):
    damaged = bytearray((ORACLES / "v41_tiny.npz").read_bytes())
    damaged[5000:6000] = bytes(1000)
    (tmp_path / "x.npz").write_bytes(damaged)
    assert "cannot be read as arrays" in refusal(verify(tmp_path / "x.npz"))
    assert "cannot be read as arrays" in refusal(verify({"ids": np.array([{}], dtype=object)}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not JSON"),
        ("\udcff", "is not JSON"),
        ("[1]", "describes no model: released must be a dict"),
        ("{}", "describes no model: a released configuration must name every size"),
        ('{"text_config": 3}', "describes no model"),
        ('{"dim": 8, "n_layers": "two", "compress_ratios": [0]}', "describes no model"),
        ('{"dim": 8, "n_layers": 1, "compress_ratios": 5}', "describes no model"),
        ('{"dim": 1e400}', "describes no model"),
        ('{"rope_scaling": [1]}', "describes no model"),
        ("null", "describes no model: released must be a dict"),
    ],
)
def test_a_configuration_that_is_none(verify, tmp_path, text, expected):
    (tmp_path / "c.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert expected in refusal(verify(ORACLES / "v41_tiny.npz", config=tmp_path / "c.json"))


def test_a_configuration_with_a_byte_order_mark_is_read(verify, tmp_path):
    (tmp_path / "c.json").write_bytes(b"\xef\xbb\xbf" + CONFIG.read_bytes())
    assert verify(some(SHORT[0]), "--only", "numpy", config=tmp_path / "c.json").exit_code == 0


def test_an_archive_that_cannot_be_opened_or_holds_no_arrays(verify, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("ids.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': 'V99999")
        archive.writestr("notes.txt", "no array")
    assert "cannot be read as arrays" in refusal(verify(tmp_path / "x.npz"))
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("notes.txt", "no array")
    assert "the weights do not belong to this configuration" in refusal(verify(tmp_path / "y.npz"))


def test_a_configuration_of_another_model(verify, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(ModelConfig.tiny(dim=64).to_dict()))
    refused = refusal(verify(some(*SHORT), "--only", "numpy", config=tmp_path / "c.json"))
    assert "the weights do not belong to this configuration" in refused
    assert "embed.weight (96, 32) (expected (96, 64))" in refused


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("n_routed_experts", "the number of arrays of weights in the file"),
        ("dspark_n_routed_experts", "the number of arrays of weights in the file"),
        ("vision_n_layers", "the number of arrays of weights in the file"),
        ("engram_n_heads", "the number of rows or columns of the longest array of weights"),
        ("engram_max_ngram_size", "the number of rows or columns of the longest array of weights"),
    ],
)
def test_sizes_that_the_file_cannot_have_are_refused_before_anything_is_made_of_them(verify, tmp_path, field, most):
    (tmp_path / "c.json").write_text(json.dumps({**json.loads(CONFIG.read_text()), field: 10**9}))
    message = rf"{field} must be at most \d+, {most}; got 1000000000"
    assert re.search(message, refusal(verify(some(*SHORT), "--only", "numpy", config=tmp_path / "c.json")))


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_vocabulary_of_another_size_is_told_by_the_shapes(verify, tmp_path, name):
    (tmp_path / "c.json").write_text(json.dumps({**json.loads(CONFIG.read_text()), "vocab_size": 10**13}))
    refused = refusal(verify(some(*SHORT), "--only", name, config=tmp_path / "c.json"))
    assert "embed.weight (96, 32) (expected (10000000000000, 32))" in refused


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_the_vision_tower_may_have_any_size_where_the_file_has_none(verify, tmp_path, name):
    sizes = {"vision_n_layers": 10**7, "vision_dim": 8 * 10**9}
    (tmp_path / "c.json").write_text(json.dumps({**json.loads(CONFIG.read_text()), **sizes}))
    text = {k: v for k, v in some(*SHORT).items() if not k.startswith(("w/vision.", "w/aligner.", "w/image_"))}
    assert verify(text, "--only", name, config=tmp_path / "c.json").exit_code == 0


def test_too_little_memory_is_one_line(verify, monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr("deepseek_edu.verify.verify", fail)
    refused = refusal(verify(some(*SHORT), "--only", "numpy"))
    assert "there is not enough memory for its sizes; Unable to allocate 7 TiB" in refused


def test_weights_that_the_configuration_does_not_use_are_named(verify, tmp_path):
    shorter = ModelConfig.tiny(
        n_layers=7, compress_ratios=(0, 2, 2, 1, 1, 1, 1, 0, 0, 0), dspark_target_layer_ids=(4, 5, 6)
    )
    (tmp_path / "c.json").write_text(json.dumps(shorter.to_dict()))
    result = verify(some(*SHORT), "--only", "numpy", config=tmp_path / "c.json")
    assert result.exit_code == 1
    assert [end for *_, end in table(result)] == ["FAIL", "FAIL"]
    assert "unknown: w/layers.7.attn.wkv.weight" in result.stdout


def test_a_configuration_of_v4(verify, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(ModelConfig.v4_flash_0731().to_dict()))
    assert "generation v4" in refusal(verify(some(*SHORT), config=tmp_path / "c.json"))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (np.zeros((1, 3)), "ids must be integers [B T]; got float64 [1, 3]"),
        (np.zeros(3, np.int64), "ids must be integers [B T]; got int64 [3]"),
        (np.zeros((0, 3), np.int64), "ids must be integers [B T]"),
        (np.array([[5, 96]]), "ids must be token ids 0 … 95; got 5 … 96"),
        (np.array([[-1, 0]]), "ids must be token ids 0 … 95; got -1 … 0"),
    ],
)
def test_ids_that_are_none(verify, ids, expected):
    assert expected in refusal(verify({**some(*SHORT), "ids": ids}))


def test_without_pytorch_it_says_what_to_do(verify, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for options in ((), ("--only", "torch")):
        refused = verify(some(*SHORT), *options)
        assert "PyTorch is not installed: run `pip install torch`" in refusal(refused)
        assert "`--only numpy`" in refused.stderr
    assert verify(some(*SHORT), "--only", "numpy").exit_code == 0


def test_an_unknown_implementation_is_misuse(verify):
    assert verify(some(*SHORT), "--only", "jax").exit_code == 2
