"""The small language: its sentences, the split, and the losses of predictors that only count."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from deepseek_edu.reference import toy_language as language

ALL = language.sentences()


def test_the_language_has_two_orders_and_one_rule():
    assert len(ALL) == len(set(ALL)) == 2 * 5 * 4 * 4 * 3 * 4
    for text in ALL:
        words = text.split()
        assert len(words) == 10
        moved = words[0] == "move"
        colour, new = words[2], words[9] if moved else words[4]
        assert colour != new and {colour, new} <= set(language.COLOURS)
        frame = (0, 1, 6, 7, 8) if moved else (0, 1, 5, 6, 7)
        fixed = ["move", "the", "then", "paint", "it"] if moved else ["paint", "the", "then", "move", "it"]
        assert [words[i] for i in frame] == fixed


def test_without_the_rule_there_are_the_repainted_ones_besides():
    more = set(language.sentences(colour_rule=False)) - set(ALL)
    assert len(more) == 2 * 5 * 4 * 4 * 3
    assert "move the red circle left once then paint it red" in more


def test_the_split_is_by_sentence_and_the_same_for_the_same_seed():
    train, held_out = language.split(ALL, 0)
    assert (len(train), len(held_out)) == (1536, 384)
    assert set(train).isdisjoint(held_out) and set(train) | set(held_out) == set(ALL)
    assert language.split(ALL, 0) == (train, held_out) != language.split(ALL, 1)


def test_encoding_keeps_the_words_and_refuses_others():
    rows = language.encode(ALL)
    assert rows.shape == (1920, 12)
    assert (rows[:, 0] == 0).all() and (rows[:, -1] == 1).all()
    assert [language.decode(row) for row in rows] == ALL
    assert language.decode([0, 2, 1, 4]) == "move", "what follows the end is not read"
    assert language.decode([2, 4]) == "move the"
    with pytest.raises(ValueError, match="octagon"):
        language.encode(["move the red octagon left once then paint it blue"])


def test_next_token_pairs_are_shifted_by_one():
    inputs, targets = language.next_token_pairs(np.array([[5, 6, 7, 8]]))
    assert inputs.tolist() == [[5, 6, 7]] and targets.tolist() == [[6, 7, 8]]


def test_counts_by_hand():
    """Targets 1 1 2 | 2 1 2 and one more of each of three: 4/9, 4/9, 1/9. Pairs behind 1: 1 2 2; one more of each."""
    tokens = np.array([[0, 1, 1, 2], [0, 2, 1, 2]])
    assert language.unigram(tokens, 3) == pytest.approx([float(Fraction(n, 9)) for n in (1, 4, 4)])
    table = language.bigram(tokens, 3)
    assert table[1] == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert table[2] == pytest.approx([1 / 4, 2 / 4, 1 / 4])
    assert language.predicted(table, tokens[:1]) == pytest.approx(np.array([[2 / 5, 2 / 6, 3 / 6]]))
    assert language.predicted(language.uniform(4), tokens).tolist() == [[0.25] * 3] * 2


def test_cross_entropy_and_perplexity_by_hand():
    assert language.cross_entropy(np.array([[0.5, 0.25]])) == pytest.approx(1.5 * math.log(2))
    assert language.perplexity(1.5 * math.log(2)) == pytest.approx(8**0.5)


def test_who_knows_the_language_pays_for_its_choices_and_nothing_else():
    rows = language.encode(ALL)
    shares = language.predicted_by_the_language(rows, rows)
    choices = {"move": [2, 1, 5, 4, 4, 3, 1, 1, 1, 4, 1], "paint": [2, 1, 5, 4, 4, 1, 1, 1, 4, 3, 1]}
    for text, row in zip(ALL[::97], shares[::97], strict=True):
        assert row == pytest.approx([1 / n for n in choices[text.split()[0]]])
    assert language.cross_entropy(shares) == pytest.approx(math.log(1920) / 11)
    looser = language.encode(language.sentences(colour_rule=False))
    assert language.cross_entropy(language.predicted_by_the_language(rows, looser)) == pytest.approx(
        math.log(2400) / 11
    )


def test_the_more_a_predictor_sees_the_lower_its_loss():
    train, held_out = (language.encode(texts) for texts in language.split(ALL, 0))
    size = len(language.VOCABULARY)
    tables = (language.uniform(size), language.unigram(train, size), language.bigram(train, size))
    losses = [language.cross_entropy(language.predicted(table, held_out)) for table in tables]
    losses.append(language.cross_entropy(language.predicted_by_the_language(held_out, language.encode(ALL))))
    assert all(a > b for a, b in itertools.pairwise(losses))
    assert losses[0] == pytest.approx(math.log(23))
