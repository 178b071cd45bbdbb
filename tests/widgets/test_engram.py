"""The numbers of the engram widget in plain integers and loops: groups, rows, gates, released sizes; mutants."""

import itertools
import json
import math
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu import widgets
from deepseek_edu.reference import engram as reference
from deepseek_edu.widgets import engram_words, live

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "engram_real.json").read_text())


def view(**values) -> widgets.View:
    return widgets.evaluate("engram", values)


def raw(**values) -> dict:
    return view(**values).parts[0].raw


def metrics(**values) -> dict:
    return {item.label: item.value for item in view(**values).parts[1].items}


def edited(old: str, new: str, **values) -> dict:
    """The raw numbers of the picture when one place of the mechanism is written otherwise."""
    source = live.mechanism_source(widgets.get("engram"))
    assert source.count(old) == 1, old
    answer = json.loads(live.evaluate_json("engram", json.dumps(values), source.replace(old, new)))
    assert answer["ok"], answer
    return answer["data"]["parts"][0]["raw"]


def own(text: str, token: int, image: bool = False) -> dict:
    return raw(sentence="own", text=text, token=token, image=image)


# A sentence


SAMPLE = ("New", "york", "CAFÉ", "cafe", "zebra", "Zebra", "fjord", "ice")


def folded(word: str) -> str:
    """A word without capitals and accents."""
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c)).lower()


def numbers_of(words: list[str]) -> list[int]:
    """Compressed ids by order of first appearance, the known words first."""
    seen = list(dict.fromkeys(map(folded, (*engram_words.KNOWN, *words))))
    return [seen.index(folded(word)) for word in words]


def primes_above(number: int):
    return (n for n in itertools.count(number) if n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)))


def rows_by_hand(newest_first: list[int]) -> list[int]:
    """The rows of layer 1 of the tiny model: two heads for each of three orders, primes from 50 up."""
    bound = (2**63 - 1) // 96 // 2
    factors = [2 * int(v) + 1 for v in np.random.default_rng(10007).integers(0, bound, 4)]
    primes, rows, offset, mixed = primes_above(50), [], 0, newest_first[0] * factors[0]
    for token, factor in zip(newest_first[1:], factors[1:], strict=True):
        mixed ^= token * factor
        for _ in range(2):
            prime = next(primes)
            rows.append(mixed % prime + offset)
            offset += prime
    return rows


def test_the_window_moves_over_i_love_new_york_city_with_padding_at_the_start():
    sentence = "I love New York City"
    ids = numbers_of(sentence.split())
    pad = 2
    assert own(sentence, 1)["history"].tolist() == [ids[0], pad, pad, pad]
    assert own(sentence, 2)["history"].tolist() == [ids[1], ids[0], pad, pad]
    assert own(sentence, 3)["history"].tolist() == [ids[2], ids[1], ids[0], pad]
    assert own(sentence, 4)["history"].tolist() == [ids[3], ids[2], ids[1], ids[0]]
    assert own(sentence, 5)["history"].tolist() == [ids[4], ids[3], ids[2], ids[1]]
    assert "groups New York, love New York, I love New York read" in view(token=4).summary
    assert "groups pad I, pad pad I, pad pad pad I read" in view(token=1).summary


@pytest.mark.parametrize("token", range(1, 9))
@pytest.mark.parametrize("sentence", ["york", "spelling"])
def test_rows_in_plain_integers_and_the_same_for_another_spelling(token, sentence):
    words = ["I", "love", "New", "York", "City", "and", "New", "York"]
    ids = numbers_of(words)
    window = [ids[token - 1 - k] if token > k else 2 for k in range(4)]
    shown = raw(sentence=sentence, token=token)
    assert shown["compressed"].tolist() == ids
    assert shown["rows"].tolist() == rows_by_hand(window)
    assert max(shown["rows"]) < 384


def test_new_york_reads_the_same_rows_twice_and_the_longer_groups_do_not():
    first, second = raw(token=4), raw(token=8)
    assert first["rows"][:2].tolist() == second["rows"][:2].tolist()
    assert not set(first["rows"][2:].tolist()) & set(second["rows"][2:].tolist())
    assert np.abs(first["gates"] - second["gates"]).max() > 0.1


@settings(max_examples=25, deadline=None)
@given(
    words=st.lists(st.sampled_from(SAMPLE), min_size=1, max_size=8),
    token=st.integers(1, 8),
    image=st.booleans(),
)
def test_groups_and_rows_of_any_sentence(words, token, image):
    shown = own(" ".join(words), token, image)
    at, ids = min(token, len(words)) - 1, numbers_of(words)
    place = len(words) // 2 if image else None
    window, blocked = [], False
    for k in range(4):
        blocked = blocked or at - k < 0 or at - k == place
        window.append(2 if blocked else ids[at - k])
    assert shown["history"].tolist() == window
    assert shown["rows"].tolist() == rows_by_hand(window)
    assert (place == at) == (not np.any(shown["added"]))


@pytest.mark.parametrize("token", [1, 4, 8])
def test_key_value_gate_and_contribution_by_loops(token):
    shown = raw(token=token)
    w = engram_words._settings()[1]
    read = [float(v) for row in shown["rows"] for v in w["layers.1.engram.embed.weight"][row]]
    made = [
        math.fsum(float(a) * b for a, b in zip(line, read, strict=True)) for line in w["layers.1.engram.wkv.weight"]
    ]
    assert shown["vectors"].ravel().tolist() == pytest.approx(read, abs=1e-12)
    value = made[32:]
    assert shown["value"].tolist() == pytest.approx(value, abs=1e-12)
    for stream in range(4):
        key, state = made[8 * stream : 8 * stream + 8], [float(v) for v in shown["state"][stream]]
        gains = [float(a * b) for a, b in zip(*(w[f"layers.1.engram.{n}_weight"][stream] for n in "qk"), strict=True)]
        dot = math.fsum(x * g * k for x, g, k in zip(state, gains, key, strict=True))
        dot /= (
            math.sqrt(math.fsum(x * x for x in state) / 8) * math.sqrt(math.fsum(k * k for k in key) / 8) * math.sqrt(8)
        )
        gate = 1 / (1 + math.exp(-math.copysign(math.sqrt(max(abs(dot), 1e-6)), dot)))
        assert float(shown["dots"][stream]) == pytest.approx(dot, abs=1e-12)
        assert float(shown["gates"][stream]) == pytest.approx(gate, abs=1e-9)
        assert shown["added"][stream].tolist() == pytest.approx([gate * v for v in value], abs=1e-12)


@pytest.mark.parametrize("image", [False, True])
def test_the_memory_meets_the_streams_that_the_model_gives_it(monkeypatch, image):
    run = engram_words.read("I love New York City and New York", image)
    model, seen, real = engram_words._model(engram_words.KNOWN), [], reference.engram
    monkeypatch.setattr(reference, "engram", lambda *given: seen.append(given[:2]) or real(*given))
    types = None if run.image is None else np.where(np.arange(8) == run.image, 1, -1)
    model.forward(run.ids, model.new_cache(quantized=False), types=types)
    ((streams, rows),) = seen
    np.testing.assert_allclose(run.before, streams, atol=1e-12)
    np.testing.assert_array_equal(run.rows, rows)


def test_a_word_behind_the_end_of_a_sentence_is_said_to_be_missing():
    asked = {"sentence": "own", "text": "ice cream Ice"}
    short, there = view(**asked, token=4), view(**asked, token=3)
    assert short.parts[2].text == "The sentence has 3 words, so there is no word 4: this is the last one."
    assert short.summary == there.summary.replace("Word 3", "There is no word 4. Word 3, the last")
    assert short.parts[0].svg == there.parts[0].svg and len(short.parts) == len(there.parts) + 1


def test_an_image_blocks_the_view_and_gets_nothing():
    assert raw(token=5, image=True)["history"].tolist() == [2, 2, 2, 2]
    assert not raw(token=5, image=True)["added"].any()
    ids = numbers_of(["and", "New", "York"])
    assert raw(token=6, image=True)["history"].tolist() == [ids[0], 2, 2, 2]
    assert raw(token=8, image=True)["history"].tolist() == [ids[2], ids[1], ids[0], 2]
    assert raw(token=4, image=True)["rows"].tolist() == raw(token=4)["rows"].tolist(), "nothing changes before it"


def test_the_vocabulary_has_no_word_twice_and_room_for_eight_more():
    assert len(set(engram_words.KNOWN)) == len(engram_words.KNOWN) <= engram_words.SIZE - 1 - engram_words.MOST_WORDS
    assert engram_words.KNOWN[2] == "<pad>"


# Released sizes


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("token", range(1, 6))
def test_rows_at_the_released_size_are_the_recorded_ones(place, token):
    shown = raw(part="real", layer=str(ORACLE["layers"][place]), token_real=token)
    assert shown["rows"] == ORACLE["rows"][place][token - 1]
    assert shown["primes"] == ORACLE["primes"][place]
    assert shown["sum"] == ORACLE["sums"][place] == (384_006_168, 384_016_682)[place]


def test_sizes_and_multipliers_of_the_released_model():
    for place, layer in enumerate(("1", "14")):
        shown = view(part="real", layer=layer)
        found = metrics(part="real", layer=layer)
        assert found["Lookups for a token"] == 24 and found["Numbers read"] == 6144
        assert found["Compressed ids"] == 99_092
        words = shown.parts[2].text
        assert ", ".join(f"{m:,}".replace(",", "\u202f") for m in ORACLE["multipliers"][place]) in words
        assert "48 different ones" in words


# Wrong mechanisms


def test_wrong_mechanisms_move_numbers_that_are_checked_here():
    flat = edited("mixed % prime + offset", "mixed % prime", part="packed")
    assert flat["indices"] == [1, 1]
    assert edited("mixed ^ (history", "mixed + (history")["rows"] != raw()["rows"].tolist()
    through = edited("np.where(blocked, pad, table)", "np.where(table == NO_TOKEN, pad, table)", token=6, image=True)
    assert through["history"] != raw(token=6, image=True)["history"].tolist()
    loud = edited("c.lower() for c", "c for c", sentence="spelling")
    assert loud["rows"] != raw()["rows"].tolist()
    half = edited("np.copysign(np.sqrt(np.maximum(np.abs(dot), 1e-6)), dot)", "dot", part="gate")
    assert half["gate"] == pytest.approx(1 / (1 + math.exp(-(math.log(4) ** 2)))) and half["gate"] > 0.85
    even = edited("draws * 2 + 1", "draws * 2", part="real")
    assert even["rows"] != ORACLE["rows"][0][0]
    shown = edited("gates = np.where(np.asarray(image_mask, bool)[:, None], 0, gates)", "pass", token=5, image=True)
    assert np.any(shown["added"])
