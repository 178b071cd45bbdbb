"""verify on files that are wrong: numbers, shapes, types, weights, and choices that float32 cannot decide."""

from dataclasses import replace

import numpy as np
import pytest

from deepseek_edu.verify import verify

from .plain_model import PlainModel
from .recordings import SMALL, only, record, rows_of, small_file, token_map

NAMES = [
    "noquant/prefill5/logits",
    "noquant/prefill8/main_hidden",
    "noquant/decode/logits",
    "noquant/decode_stale_index_k/logits",
    "noquant/draft/logits",
    "noquant/draft/conf",
    "noquant/image9/logits",
    "quant/prefill12/logits",
    "quant/decode/logits",
]
EXACT = ["noquant/draft/ids", "noquant/topk_idxs_L3", "engram_hashes12", "engram_hashes_image9"]


def with_changes(names, change):
    """The small file with these outputs only, each changed by a function from a copy of the array."""
    outputs = only(small_file(), *names)
    return {**outputs, **{name: np.asarray(change(outputs[name].copy())) for name in names}}


def one_more(array):
    """The last number wrong: by twice the largest tolerance, an id by one."""
    array[(-1,) * array.ndim] += 1 if array.dtype.kind == "i" else 2e-4
    return array


@pytest.mark.parametrize("implementation", ["numpy", "torch"])
def test_one_wrong_number_in_an_output_fails(implementation):
    rows = rows_of(verify(with_changes(NAMES + EXACT, one_more), SMALL, implementation))
    for name in NAMES + EXACT:
        assert not rows[name].passed, name
        assert rows[name].difference == 1 if name in EXACT else 1e-4 < rows[name].difference < 3e-4, name
        assert rows[name].remark == ""


@pytest.mark.parametrize("name", ["quant/decode/logits", "engram_hashes12"])
def test_one_wrong_output_leaves_the_others_alone(name):
    report = verify({**small_file(), **with_changes([name], one_more)}, SMALL)
    assert [row.output for row in report.rows if not row.passed] == [name]
    assert f"{len(report.rows) - 1} of {len(report.rows)} outputs reproduced" in report.text()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_recorded_value_that_is_no_finite_number_fails(value):
    def first(array):
        array[(0,) * array.ndim] = value
        return array

    outputs = {**only(small_file(), "noquant/draft/ids"), **with_changes(NAMES, first)}
    report = verify(outputs, SMALL)
    assert [row.output for row in report.rows if row.passed] == ["noquant/draft/ids"]
    assert str(value) in report.text()


CHANGES = {
    "cut short": lambda array: array[..., :-1],
    "another batch": lambda array: array[:1],
    "flat": lambda array: array.ravel(),
    "one number": lambda array: array.ravel()[0],
    "empty": lambda array: array[:0],
    "text": lambda array: array.astype(str),
    "complex": lambda array: array.astype(complex),
    "one dimension more": lambda array: array[None],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("implementation", ["numpy", "torch"])
def test_an_output_of_another_shape_or_type_fails_with_a_remark(implementation, change):
    names = [name for name in NAMES + EXACT if not name.startswith("quant/") and "stale" not in name]
    for row in verify(with_changes(names, change), SMALL, implementation).rows:
        assert not row.passed
        assert row.remark, row.output


def test_outputs_that_the_model_cannot_have_fail_with_a_remark():
    outputs = only(small_file())
    outputs["noquant/prefill13/logits"] = np.zeros((2, 13, 40), np.float32)
    outputs["noquant/topk_idxs_L9"] = outputs["noquant/topk_idxs_L1"] = np.zeros((2, 12, 4), np.int32)
    outputs["noquant/decode/logits"] = np.zeros((2, 14, 40), np.float32)
    outputs["quant/draft/ids"] = np.full((2, 2, 4), 40)
    config = replace(SMALL, engram_layer_ids=())
    rows = rows_of(verify({**outputs, "engram_hashes12": np.zeros((2, 12, 1, 6), int)}, config))
    assert not any(row.passed for row in rows.values())
    assert "needs 13 tokens; ids holds 12" in rows["noquant/prefill13/logits"].remark
    assert "model without such an output" in rows["noquant/topk_idxs_L9"].remark
    assert "model without such an output" in rows["engram_hashes12"].remark
    assert "needs 14 tokens to decode" in rows["noquant/decode/logits"].remark
    assert "ids 0 … 39" in rows["quant/draft/ids"].remark


def test_names_that_only_look_known_are_listed():
    names = [
        "noquant/prefill/logits",
        "noquant/prefill0/logits",
        "half/prefill2/logits",
        "noquant/prefill2/hidden",
        "x",
    ]
    report = verify({**only(small_file(), "noquant/prefill5/logits"), **dict.fromkeys(names, np.zeros(2))}, SMALL)
    assert report.unknown == names
    assert report.passed


def test_a_quantised_output_of_a_model_whose_widths_have_no_format_fails_alone():
    config = replace(SMALL, head_dim=12)
    outputs = record(config, 2, 1, 5, (5,), 0)
    outputs["quant/prefill5/logits"] = outputs["noquant/prefill5/logits"]
    for implementation in ("numpy", "torch"):
        rows = rows_of(verify(outputs, config, implementation))
        assert rows["noquant/prefill5/logits"].passed
        assert "cannot be computed" in rows["quant/prefill5/logits"].remark


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array(["a"]), "must be real numbers; got <U1"),
        (np.zeros(16, complex), "must be real numbers; got complex128"),
        (np.zeros(16, "V2"), r"must be real numbers; got \|V2; convert it to float32"),
        (np.full(16, np.nan, np.float32), "must be finite; it holds 16 other values"),
    ],
)
def test_weights_that_are_no_numbers_are_an_error(bad, message):
    with pytest.raises(ValueError, match=message):
        verify({**small_file(), "w/norm.weight": bad}, SMALL)


def test_missing_and_misshapen_weights_are_listed_together():
    outputs = {**small_file(), "w/norm.weight": np.zeros(15), "w/layers.0.attn.attn_sink": np.zeros((1, 2))}
    del outputs["w/layers.3.attn.indexer.wq_b.weight"]
    for implementation in ("numpy", "torch"):
        with pytest.raises(ValueError, match=r"1 missing: layers.3.attn.indexer.wq_b.weight; 2 of another shape"):
            verify(outputs, SMALL, implementation)


def test_a_draft_without_its_ids_is_a_missing_input():
    with pytest.raises(ValueError, match="noquant/draft/ids"):
        verify(only(small_file(), "noquant/draft/conf"), SMALL)


def test_a_choice_that_float32_cannot_decide_is_named_and_fails():
    """Two entries whose scores are equal but for the last digits; what is recorded has the other one."""
    config = replace(SMALL, index_topk=1, candidate_source_layer=-1)
    outputs = only(record(config, 23, 1, 8, (8,), 0, width=np.float64), "noquant/prefill8/logits")
    name = "layers.3.attn.indexer.weights_proj.weight"
    ends = outputs[f"w/{name}"], np.random.default_rng(0).standard_normal(outputs[f"w/{name}"].shape)

    def run(share):
        w = {n[2:]: array for n, array in outputs.items() if n.startswith("w/")}
        w[name] = (1 - share) * ends[0] + share * ends[1]
        model = PlainModel(config, w, token_map(config), dtype=np.float64)
        return w[name], np.array([[model.step(token) for token in outputs["ids"][0]]]), model.choices[3]

    low, high = 0.0, 1.0
    assert run(low)[2] != run(high)[2]
    while high - low > 1e-12:  # the choice changes somewhere between
        middle = (low + high) / 2
        low, high = (middle, high) if run(middle)[2] == run(0.0)[2] else (low, middle)
    outputs[f"w/{name}"] = run(low)[0]
    assert verify({**outputs, "noquant/prefill8/logits": run(low)[1]}, config).passed
    for implementation in ("numpy", "torch"):
        report = verify({**outputs, "noquant/prefill8/logits": run(high)[1]}, config, implementation)
        row = report.rows[0]
        assert row.difference > 1e-3
        assert not report.passed
        assert "float32 cannot decide this output" in row.remark
        assert float(row.remark.rsplit(" ", 1)[1]) < 5e-5  # a change of the last bits gives what is recorded
        assert row.remark in report.text()
