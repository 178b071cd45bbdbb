"""The part that runs beside a learner's code: plain data, loading with line numbers, running one case."""

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepseek_edu.grading import harness
from deepseek_edu.grading.harness import SubmissionError, Unsupported, decode, encode, load_submission, run_case

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_plain_data_survives_the_way_through_json(value):
    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert repr(back) == repr(value)


def test_nan_survives_and_the_sign_of_zero_is_kept():
    back = decode(json.loads(json.dumps(encode([math.nan, -0.0, math.inf]))))
    assert math.isnan(back[0]) and math.copysign(1, back[1]) == -1 and back[2] == math.inf


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1, 2]], dtype=np.uint8), [[1, 2]]),
        ((1, (2,)), [1, [2]]),
        (bytearray(b"\x01"), {"$bytes": "01"}),
        (2**53, 2**53),
        (2**53 + 1, {"$int": str(2**53 + 1)}),
        ({"$x": 1}, {"$dict": [["$x", 1]]}),
        ({1: 2}, {"$dict": [[1, 2]]}),
    ],
)
def test_values_are_encoded(value, expected):
    got = encode(value)
    assert got == expected and type(got) is type(expected)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "a object"),
        ({1, 2}, "a set"),
        (1j, "complex"),
        pytest.param(10**5000, "thousands of digits", id="long integer"),
        ([0] * 200_001, "200000 items"),
        ("x" * 1_000_001, "1000000 characters"),
        (lambda: 0, "function"),
    ],
)
def test_other_values_are_refused_with_the_reason(value, reason):
    with pytest.raises(Unsupported, match=reason):
        encode(value)


def test_a_circular_list_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(Unsupported, match="64 levels"):
        encode(loop)


@pytest.mark.parametrize(
    "data", [{"$float": "1"}, {"$other": 1}, {"$dict": [[[1], 2]]}, {"$bytes": "0"}, {"a": 1, "$b": 2}]
)
def test_data_that_encode_cannot_have_made_is_refused(data):
    with pytest.raises(ValueError):
        decode(data)


@pytest.mark.behaviour(25)
def test_subclasses_with_their_own_rules_arrive_as_plain_values():
    class Liar(float):
        __eq__ = lambda self, other: True  # noqa: E731
        __float__ = lambda self: 1.0  # noqa: E731
        __hash__ = float.__hash__

    (value,) = encode([Liar(7.0)])
    assert type(value) is float and value == 7.0


@pytest.mark.behaviour(26)
@pytest.mark.parametrize(
    ("source", "kind", "line", "words"),
    [
        ("", "empty", 1, "empty"),
        ("# only\n# words\n", "empty", 1, "only comments"),
        ("x = 1\ndef f(:\n  pass", "syntax", 2, "def f(:"),
        ("def f():\n    return 1\n  return 2\n", "syntax", 3, "return 2"),
        ("def f(): pass\n\ndef f(): pass\n", "duplicate", 3, "lines 1, 3"),
        ("def F(): pass\n", "missing", 1, "F (line 1)"),
        ("import math\n\nfrom deepseek_edu.reference import quant\n", "forbidden", 3, "deepseek_edu.reference"),
        ("x = 1\n\ny = 1 / 0\ndef f(): pass", "ZeroDivisionError", 3, "division by zero"),
        ("import sys\nsys.exit(0)\n", "SystemExit", 2, "SystemExit"),
        ("f = 3\n", "missing", 1, "no function f"),
        ("(" * 300 + ")" * 300, "syntax", 1, "nested"),
    ],
)
def test_a_submission_that_cannot_load_names_the_line(source, kind, line, words):
    with pytest.raises(SubmissionError, match=re.escape(words)) as caught:
        load_submission(source, ["f"])
    assert (caught.value.kind, caught.value.line) == (kind, line)
    assert caught.value.as_dict() == {"type": kind, "message": caught.value.message, "line": line}


def test_a_function_may_be_bound_by_assignment_or_import():
    namespace = load_submission("from math import sqrt as f\ng = f\n", ["f", "g"])
    assert run_case(namespace, "g", [9.0])["value"] == 3.0


def test_partial_loading_needs_one_of_the_functions():
    namespace = load_submission("def f(): return 1", ["f", "g"], partial=True)
    assert run_case(namespace, "g", [])["error"]["type"] == "missing"
    with pytest.raises(SubmissionError, match="no function f"):
        load_submission("x = 1", ["f", "g"], partial=True)


def test_a_case_returns_raises_or_is_unsupported():
    source = (
        "def f(x):\n    if x == 1:\n        raise KeyError('no')\n    print('hello')\n    return {2} if x == 2 else x\n"
    )
    namespace = load_submission(source, ["f"])
    assert run_case(namespace, "f", [{"$float": "inf"}]) == {
        "status": "returned",
        "value": {"$float": "inf"},
        "stdout": "hello\n",
        "threads": 0,
    }
    assert run_case(namespace, "f", [1])["error"] == {"type": "KeyError", "message": "'no'", "line": 3}
    assert run_case(namespace, "f", [2])["status"] == "unsupported"


def test_arguments_are_fresh_for_each_call():
    namespace = load_submission("def f(x):\n    x.append(1)\n    return x\n", ["f"])
    args = [[0]]
    assert [run_case(namespace, "f", args)["value"] for _ in range(2)] == [[0, 1], [0, 1]]


def test_output_is_kept_from_the_beginning_and_counted():
    namespace = load_submission("def f():\n    print('x' * 10_000)\n", ["f"])
    stdout = run_case(namespace, "f", [])["stdout"]
    assert len(stdout) < 4100 and stdout.endswith("6001 more characters")


@pytest.mark.behaviour(25)
def test_patched_builtins_are_put_back():
    before = len
    load_submission("import builtins\nbuiltins.len = lambda x: 1\nbuiltins.isinstance = lambda a, b: True\n")
    assert len is before and not isinstance(1, str)


def test_importing_the_harness_stays_light():
    code = (
        "import sys; import deepseek_edu.grading.harness; "
        "heavy = {'numpy', 'typer', 'subprocess', 'deepseek_edu.grading.runner'} & set(sys.modules); assert not heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert harness.FORBIDDEN == ("deepseek_edu",)
