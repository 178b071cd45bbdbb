"""The comparison rules, on the vectors that the page's comparison is tested on too."""

import json
import math
from pathlib import Path

import pytest

from deepseek_edu.grading.compare import compare
from deepseek_edu.grading.harness import decode

VECTORS = json.loads(Path(__file__).with_name("compare_vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_comparison_agrees_with_the_shared_vector(vector):
    outcome = compare(decode(vector["expected"]), decode(vector["got"]), vector["tolerance"])
    assert outcome.ok is vector["ok"]
    if not vector["ok"]:
        assert outcome.path == vector["path"]
        assert outcome.gap == vector["gap"]
        assert outcome.reason


def test_there_are_at_least_forty_vectors_of_both_kinds():
    assert len(VECTORS) >= 40
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS)
    assert 20 <= sum(vector["ok"] for vector in VECTORS) <= len(VECTORS) - 20


def test_a_difference_is_reported_with_the_values_at_its_place():
    outcome = compare({"scale": [1.0, 2.0]}, {"scale": [1.0, 2.5]}, 0.25)
    assert (outcome.ok, outcome.path, outcome.got, outcome.expected, outcome.gap) == (
        False,
        '["scale"][1]',
        2.5,
        2.0,
        0.5,
    )


def test_comparison_as_json_is_tagged():
    assert compare(math.inf, math.nan).to_json() == {
        "ok": False,
        "path": "",
        "got": {"$float": "nan"},
        "expected": {"$float": "inf"},
        "gap": None,
        "reason": "one of the two is not a finite number",
    }


def test_only_plain_data_is_compared():
    with pytest.raises(TypeError, match="plain data"):
        compare(1, object())
