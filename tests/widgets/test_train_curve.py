"""The train-curve widget: the recorded run, the lines computed beside it, and a wrong count that moves a line."""

import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest

from deepseek_edu import widgets
from deepseek_edu.experiments import baseline
from deepseek_edu.reference import toy_language
from deepseek_edu.widgets import live, train_curve

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "assets" / "runs" / "baseline.json").read_text(encoding="utf-8"))
NAMES = (
    "uniform guess",
    "word counts (unigram)",
    "pair counts (bigram)",
    "the language without its colour rule",
    "the language",
)


def view(**values):
    return widgets.evaluate("train-curve", values)


def metrics(**values) -> dict:
    return {m.label: m.value for m in view(**values).parts[1].items}


def lines(data: dict) -> dict:
    """The references in the data of a view."""
    return data["parts"][0]["raw"]["references"]


def edited(values: dict, *replacements: tuple[str, str]) -> dict:
    """Data of the view with an edited mechanism."""
    source = live.mechanism_source(widgets.get("train-curve"))
    for old, new in replacements:
        assert source.count(old) == 1
        source = source.replace(old, new)
    answer = json.loads(live.evaluate_json("train-curve", json.dumps(values), source))
    assert answer["ok"], answer
    return answer["data"]


def test_the_browser_copy_is_a_part_of_the_record():
    text = (ROOT / "src/deepseek_edu/widgets/train_curve.json").read_text(encoding="utf-8")
    assert text == baseline.browser_copy(RECORD)
    copy = json.loads(text)
    for run in RECORD["runs"]:
        assert copy[f"seed {run['seed']}"] == run["steps"]
    assert copy["split_seed"] == RECORD["split"]["seed"]
    for key in ("command", "machine", "date", "reported", "samples", "probed"):
        assert copy[key] == RECORD[key]


@pytest.mark.parametrize(("seed", "run"), [("1", 0), ("2", 1)])
@pytest.mark.parametrize("step", [0, 100, 575, 600])
def test_the_figures_of_a_step_are_the_recorded_ones(seed, run, step):
    recorded = next(f for f in RECORD["runs"][run]["steps"] if f["step"] == step)
    got = metrics(seed=seed, step=step)
    assert got["Loss, trained on"] == recorded["train"] and got["Loss, held out"] == recorded["held_out"]
    assert got["Gap"] == pytest.approx(recorded["held_out"] - recorded["train"], abs=1e-9)
    assert got["Well formed"] == recorded["well_formed"]
    shown = view(seed=seed, step=step)
    assert [row[0] for row in shown.parts[4].rows] == recorded["samples"]
    assert shown.parts[3].raw["model"] == recorded["probed"][0]


def test_the_start_is_the_step_that_was_fixed_beforehand():
    assert widgets.get("train-curve").defaults["step"] == RECORD["reported"] == 600
    assert "fixed before the run" in view().parts[2].text
    assert "fixed before the run" not in view(step=575).parts[2].text


def test_a_step_that_is_not_the_lowest_so_far_says_which_was():
    run = RECORD["runs"][0]["steps"]
    for at, figures in enumerate(run):
        lowest = min(run[: at + 1], key=lambda f: f["held_out"])
        said = view(step=figures["step"]).parts[2].text
        assert (f"At step {lowest['step']} the loss was lower" in said) == (lowest is not figures)


def test_the_lines_are_what_counting_by_hand_gives():
    """From the words of the sentences, with dictionaries and logarithms alone."""
    train, held_out = toy_language.split(toy_language.sentences(), RECORD["split"]["seed"])
    words = [[*text.split(), "E"] for text in train]
    size = len({word for sentence in words for word in sentence}) + 1  # and the start
    singles = Counter(word for sentence in words for word in sentence)
    pairs = Counter(pair for sentence in words for pair in zip(["S", *sentence], sentence, strict=False))
    before = Counter(word for sentence in words for word in ["S", *sentence[:-1]])
    total = sum(singles.values()) + size
    losses = {"one": [], "two": []}
    for text in held_out:
        sentence = [*text.split(), "E"]
        for last, word in zip(["S", *sentence], sentence, strict=False):
            losses["one"].append(-math.log((singles[word] + 1) / total))
            losses["two"].append(-math.log((pairs[last, word] + 1) / (before[last] + size)))
    expected = (
        math.log(23),
        sum(losses["one"]) / len(losses["one"]),
        sum(losses["two"]) / len(losses["two"]),
        math.log(2400) / 11,
        math.log(1920) / 11,
    )
    assert size == 23
    found = lines(view().data())
    assert tuple(found) == NAMES
    assert tuple(found.values()) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("scale", ["loss", "above"])
def test_every_line_that_the_words_count_is_drawn_with_its_loss(scale):
    picture = view(scale=scale).parts[0]
    for drawing in (picture.wide, picture.narrow):
        texts = [text for text in re.findall(r">([^<]+)</text>", drawing.markup) if ", " in text]
        for name, loss in picture.raw["references"].items():
            assert sum(text.endswith(f"{loss:.3f}") or f", {loss:.3f}:" in text for text in texts) == 1, name
        lines = 'stroke-dasharray="5 4"'
        assert drawing.markup.count(lines) == len(picture.raw["references"]) - (scale == "above")


def test_perplexity_is_e_to_the_loss():
    for name, loss, perplexity in view().parts[5].rows:
        assert perplexity == pytest.approx(math.exp(loss), rel=1e-6), name
    assert [row[0] for row in view().parts[5].rows][-2:] == ["the model", "the language"]


@pytest.mark.parametrize(("step", "won"), [(0, 0), (25, 2), (50, 3), (600, 4)])
def test_the_model_passes_the_lines_one_after_the_other(step, won):
    found = lines(view().data())
    loss = metrics(step=step)["Loss, held out"]
    assert sum(loss < line for line in found.values()) == won
    assert f"{won} of 5 references beaten" in view(step=step).summary


def test_the_language_gives_choices_their_odds_and_fixed_words_certainty():
    raw = view(sentence="0").parts[3].raw
    assert raw["words"][:4] == ["move", "the", "yellow", "star"]
    odds = [1 / n for n in (2, 1, 5, 4, 4, 3, 1, 1, 1, 4, 1)]
    assert raw["language"] == pytest.approx(odds, abs=1e-6)


def test_a_sample_is_found_where_it_is():
    train, held_out = toy_language.split(toy_language.sentences(), RECORD["split"]["seed"])
    assert train_curve.verdict(train[0]) == "of the language, trained on"
    assert train_curve.verdict(held_out[0]) == "of the language, never seen"
    assert train_curve.verdict("move the red star left once then paint it red") == (
        "of the language but for the colour rule"
    )
    assert train_curve.verdict("left once then") == "not of the language"


# Wrong mechanisms


def test_more_smoothing_raises_the_line_of_the_pairs():
    wrong = (
        "minlength=vocabulary**2)\n    counts = pairs.reshape(vocabulary, vocabulary) + 1",
        "minlength=vocabulary**2)\n    counts = pairs.reshape(vocabulary, vocabulary) + 100",
    )
    right, found = lines(view().data()), lines(edited({}, wrong))
    assert found[NAMES[2]] > right[NAMES[2]] + 0.1
    assert {n: v for n, v in found.items() if n != NAMES[2]} == {n: v for n, v in right.items() if n != NAMES[2]}


def test_counting_the_inputs_instead_of_the_targets_is_a_worse_guess():
    wrong = ("next_token_pairs(tokens)[1].ravel()", "next_token_pairs(tokens)[0].ravel()")
    assert lines(edited({}, wrong))[NAMES[1]] > lines(view().data())[NAMES[1]] + 0.1


def test_a_loss_in_bits_is_seen():
    found = lines(edited({}, ("-np.log(probabilities)", "-np.log2(probabilities)")))
    assert found[NAMES[0]] == pytest.approx(math.log2(23))


def test_pairs_that_are_not_shifted_make_the_task_trivial():
    """Who is asked for the word that was just read is nearly always right: a loss far below what is possible."""
    found = lines(edited({}, ("tokens[:, :-1], tokens[:, 1:]", "tokens[:, 1:], tokens[:, 1:]")))
    assert found[NAMES[2]] < 0.2 < found[NAMES[4]]


def test_colours_of_kinds_stay_free_and_the_readers_step_is_the_accent():
    markup = view(step=300).parts[0].wide.markup
    for kind in ("series", "parameters", "hidden", "local", "global", "engram"):
        assert f"k-{kind}" not in markup
    line, dots = ('class="k-changed" stroke-width="1.5"', '<circle cx="0"')
    assert markup.count(line) == 1 and markup.count(dots) == 2


def test_a_sentence_without_words_says_so():
    table = next(p for p in view(step=25, seed="2").parts if isinstance(p, widgets.Table))
    assert [text or "(it ended at once)" for text, _ in table.rows] == [text for text, _ in table.text]
    assert "" in [text for text, _ in table.rows], "this step has one"
