"""The n-gram memory: compressed tokens, hash, gate."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import engram

from .tiny import ORACLES, gap, tiny_model, token_map


def real():
    return json.loads((ORACLES / "engram_real.json").read_text())


def test_the_released_primes_multipliers_and_table_sizes_are_the_recorded_ones():
    config = ModelConfig.v41_flash()
    primes = engram.prime_moduli(config)
    assert list(primes.values()) == real()["primes"]
    assert [sum(map(sum, primes[layer])) for layer in (1, 14)] == [384_006_168, 384_016_682]
    assert [engram.hash_multipliers(layer, config).tolist() for layer in (1, 14)] == real()["multipliers"]


def test_the_released_rows_of_five_tokens_are_the_recorded_ones():
    config = ModelConfig.v41_flash()
    history = engram.ngram_history(np.array(real()["compressed_ids"]), [engram.NO_TOKEN] * 3, 4, 2)
    for layer, expected in zip((1, 14), real()["rows"], strict=True):
        rows = engram.hash_rows(history, np.array(real()["multipliers"][layer > 1]), real()["primes"][layer > 1])
        np.testing.assert_array_equal(rows, expected)
        assert rows.max() < config.engram_num_embeddings[layer > 1]


def test_one_row_by_plain_integers():
    """mix = τ₀m₀ ⊕ τ₁m₁, then ⊕ τ₂m₂; remainders, each behind the primes before it."""
    history, multipliers = np.array([[7, 5, 3]]), np.array([11, 13, 17])
    got = engram.hash_rows(history, multipliers, [[5, 7], [11, 13]])
    two = (7 * 11) ^ (5 * 13)
    three = two ^ (3 * 17)
    assert got.tolist() == [[two % 5, 5 + two % 7, 12 + three % 11, 23 + three % 13]]


def test_hashes_are_the_same_in_another_process():
    """Python's own hash of a string is salted per process; these numbers must not be."""
    code = (
        "from deepseek_edu.config import ModelConfig; from deepseek_edu.reference import engram;"
        "print(*engram.hash_multipliers(14, ModelConfig.v41_flash()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [int(number) for number in out.split()] == real()["multipliers"][1]


def test_products_never_overflow():
    config = ModelConfig.v41_flash()
    for layer in (1, 14):
        for multiplier in engram.hash_multipliers(layer, config).tolist():
            assert multiplier % 2 == 1
            assert multiplier * 99_091 < 2**63


def test_a_blocked_position_hides_everything_before_it():
    no = engram.NO_TOKEN
    got = engram.ngram_history(np.array([4, 5, no, 6, 7, 8]), [1, 2, 3], 4, 0)
    assert got.tolist() == [[4, 3, 2, 1], [5, 4, 3, 2], [0, 0, 0, 0], [6, 0, 0, 0], [7, 6, 0, 0], [8, 7, 6, 0]]


def test_the_beginning_of_a_sequence_is_padding():
    got = engram.ngram_history(np.array([4, 5]), [engram.NO_TOKEN] * 3, 4, 9)
    assert got.tolist() == [[4, 9, 9, 9], [5, 4, 9, 9]]


def test_the_gate_keeps_the_sign_of_a_zero_and_is_never_a_half():
    expected = [1 / (1 + math.exp(-x)) for x in (0.001, -0.001, 2.0, -3.0)]
    assert gap(engram.gate(np.array([0.0, -0.0, 4.0, -9.0])), expected) < 1e-12


def test_the_read_is_a_gated_value_in_every_stream():
    config = ModelConfig.tiny(norm_eps=1e-6)
    rng = np.random.default_rng(0)
    streams, rows = rng.standard_normal((2, 2, 3)), np.array([[0, 2], [1, 3]])
    w = {
        "embed.weight": rng.standard_normal((4, 32)),
        "embed.scale": np.array([[1.0], [2.0], [4.0], [0.5]]),
        "wkv.weight": rng.standard_normal((9, 64)) / 8,
        "q_weight": rng.standard_normal((2, 3)),
        "k_weight": rng.standard_normal((2, 3)),
    }
    got = engram.engram(streams, rows, w, config, image_mask=[False, True])
    np.testing.assert_array_equal(got[1], streams[1])
    read = np.concatenate([w["embed.weight"][0] * 1.0, w["embed.weight"][2] * 4.0])
    projected = w["wkv.weight"] @ read
    value = projected[6:]
    for s in range(2):
        x, k = streams[0, s], projected[3 * s : 3 * s + 3]
        rms_x, rms_k = (math.sqrt((z**2).mean() + 1e-6) for z in (x, k))
        dot = sum(x * w["q_weight"][s] * w["k_weight"][s] * k) / rms_x / rms_k / math.sqrt(3)
        gate = 1 / (1 + math.exp(-math.copysign(math.sqrt(max(abs(dot), 1e-6)), dot)))
        assert gap(got[0, s], x + gate * value) < 1e-12


class Words:
    """A small tokenizer: decodes by a table, as `tokenizers.Tokenizer` would."""

    words = ("<pad>", "Hello", " hello", "HELLO", "hé", "he", " ", "  ", "\n", "\u0301", "\ufffd", "ﬁ", "fi", "\u4f60")

    def decode(self, ids, skip_special_tokens=True):
        assert skip_special_tokens is False
        return "".join(self.words[i] for i in ids)

    def id_to_token(self, token):
        return f"raw{token}"


def test_tokens_that_differ_in_case_accents_or_spaces_share_a_compressed_id():
    got = engram.compressed_token_map(Words(), 14)
    assert got.tolist() == [0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 5, 6, 6, 7]


def test_texts_are_normalised_as_the_tokenizers_library_does():
    """Recorded from its sequence NFKC, NFD, StripAccents, Lowercase, blanks to one space, Strip, a lone space kept."""
    cases = json.loads((ORACLES / "normalised_text.json").read_text(encoding="utf-8"))
    assert len(cases) > 400
    for text, expected in cases:
        assert engram.normalised_text(text) == expected, ascii(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  A\t\tB ", "a b"),
        ("\r\n", " "),
        ("Ünïcode", "unicode"),
        ("①", "1"),
        ("", ""),
        ("İ", "i"),
        ("\u0301", "\u0301"),
        ("ΟΔΟΣ", "οδοσ"),
        ("\u0915\u093e", "\u0915"),
        ("a\x1c", "a\x1c"),
        ("\u2003x", "x"),
    ],
)
def test_normalised_text(text, expected):
    assert engram.normalised_text(text) == expected


def test_a_map_or_table_that_does_not_fit_is_refused():
    for wrong, message in (
        (np.arange(96), "token_map must hold ids 0 … 47; got 0 … 95"),
        (np.arange(96) // 2 - 1, "token_map must hold ids 0 … 47; got -1 … 46"),
        (np.arange(95) // 2, r"token_map must be integers \(96,\); got int64 \(95,\)"),
        (np.arange(96) / 2, r"token_map must be integers \(96,\); got float64"),
    ):
        with pytest.raises(ValueError, match=message):
            engram.EngramHash(ModelConfig.tiny(), wrong)
    with pytest.raises(ValueError, match=r"must be \(384, 552\)"):
        engram.EngramHash(ModelConfig.tiny(engram_num_embeddings=(384, 553)), token_map())


def test_an_image_position_reads_padding_and_adds_nothing():
    hashes = tiny_model().hash
    ids = hashes.compress([8, 9, 95, 10], [False, False, True, False])
    assert ids.tolist() == [4, 4, engram.NO_TOKEN, 5]
    padding = hashes.rows(np.array([1]))  # compressed padding id 1 as the only token: all four places are padding
    np.testing.assert_array_equal(hashes.rows(ids)[2], padding[0])
