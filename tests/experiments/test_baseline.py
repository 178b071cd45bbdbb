"""The record of the baseline: its split, its claims, its figures, and a model that sees no later token."""

import copy
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from deepseek_edu.claims import baseline as claims
from deepseek_edu.drawing.chart import Axis, Chart, Series
from deepseek_edu.experiments import baseline
from deepseek_edu.reference import toy_language

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "assets" / "runs" / "baseline.json"
LENGTH = 11


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small matrices gain nothing from more, and wait for each other where cores are shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(5)
    return baseline.Transformer(len(toy_language.VOCABULARY), LENGTH)


def test_the_record_says_what_was_measured_and_how(record):
    assert record["id"] == RECORD.stem and record["label"] == "measured"
    assert f"--seed {record['seed']}" in record["command"]
    assert {"python", "numpy", "torch", "deepseek-edu"} <= set(record["versions"])
    assert "/" not in record["machine"] and "CPU" in record["machine"]
    assert record["reported"] == 600 and "fixed before the run" in record["notes"][0]


def test_both_lists_are_saved_and_are_what_the_seed_gives(record):
    texts, saved = toy_language.sentences(), record["split"]
    held_out = [texts[number] for number in saved["held_out"]]
    train = [text for number, text in enumerate(texts) if number not in set(saved["held_out"])]
    assert (len(train), len(held_out)) == (saved["train"], 384) == (1536, 384)
    assert [hashlib.sha256("\n".join(some).encode()).hexdigest() for some in (train, held_out)] == saved["sha256"]
    assert toy_language.split(texts, saved["seed"]) == (train, held_out)
    assert set(record["probed"]) <= set(held_out)


def test_two_seeds_are_recorded_every_25_steps_to_step_600(record):
    assert [run["seed"] for run in record["runs"]] == [1, 2]
    for run in record["runs"]:
        assert [figures["step"] for figures in run["steps"]] == list(range(0, 601, 25))
        assert len({figures["held_out"] for figures in run["steps"]}) > 20
    assert record["runs"][0]["steps"] != record["runs"][1]["steps"]


def test_table_and_chart_repeat_the_runs(record):
    rows = {(row[0], row[1]): row for row in record["rows"]}
    assert len(rows) == 14
    for run in record["runs"]:
        for f in run["steps"]:
            if f["step"] % 100 == 0:
                assert rows[run["seed"], f["step"]][2:4] == [f["train"], f["held_out"]]
                assert rows[run["seed"], f["step"]][4] == pytest.approx(100 * f["well_formed"], abs=0.05)
    (chart,) = record["charts"]
    for series in chart["series"]:
        key = "train" if series["name"].startswith("train") else "held_out"
        run = record["runs"][int(series["name"][-1]) - 1]["steps"]
        assert (series["x"], series["y"]) == ([f["step"] for f in run], [f[key] for f in run])
    axes = Axis(**chart["x"]), Axis(**chart["y"])
    assert Chart(chart["title"], chart["description"], *axes, [Series(**s) for s in chart["series"]]).svg("p")


def test_samples_are_counted_right_where_they_are_shown(record):
    """Three of 256 sentences are kept; none may contradict the shares."""
    texts, held_out = toy_language.sentences(), set(record["split"]["held_out"])
    for run in record["runs"]:
        for f in run["steps"]:
            known = [text for text in f["samples"] if text in texts]
            new = [text for text in known if texts.index(text) in held_out]
            assert len(known) / 256 <= f["well_formed"] <= 1 - (3 - len(known)) / 256
            assert len(new) / 256 <= f["never_seen"] <= f["well_formed"]


@pytest.mark.behaviour(19)
def test_the_first_fifty_steps_can_be_trained_again(record):
    """Sums may differ in their last bits between machines, and training enlarges the difference."""
    for run in record["runs"]:
        again = baseline.train(run["seed"], 50)
        for old, new in zip(run["steps"], again, strict=False):
            assert new["step"] == old["step"]
            assert (new["train"], new["held_out"]) == pytest.approx((old["train"], old["held_out"]), rel=2e-3)
            np.testing.assert_allclose(new["probed"], old["probed"], atol=0.01)
        assert len(again) == 3


# The model


def trained(model, steps=40):
    """The same model after a few steps, so that nothing is hidden by small weights."""
    copied = copy.deepcopy(model)
    tokens = torch.from_numpy(toy_language.encode(toy_language.sentences()[::15]))
    optimiser = torch.optim.AdamW(copied.parameters(), 3e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        baseline.loss_of(copied, tokens).backward()
        optimiser.step()
    return copied


def first_that_moves(model, change):
    """The first position whose logits move when the token at position `change` is another one."""
    ids = torch.from_numpy(toy_language.encode(["move the red circle left once then paint it blue"]))[:, :LENGTH]
    other = ids.clone()
    other[:, change:] = (other[:, change:] + 7) % len(toy_language.VOCABULARY)
    with torch.no_grad():
        gaps = (model(ids) - model(other)).abs().amax(-1)[0]
    return int((gaps > 1e-5).nonzero()[0])


@pytest.mark.parametrize("change", [1, 5, 10])
def test_later_tokens_change_no_earlier_logits(model, change):
    assert first_that_moves(trained(model), change) == change


def test_a_model_without_the_mask_is_caught(model, monkeypatch):
    attention = torch.nn.functional.scaled_dot_product_attention
    wrong = lambda q, k, v, is_causal: attention(q, k, v)  # noqa: E731
    copied = trained(model)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", wrong)
    assert first_that_moves(copied, 5) == 0


def test_a_fresh_model_is_nearly_uniform_and_has_the_recorded_size(model, record):
    tokens = torch.from_numpy(toy_language.encode(toy_language.sentences()[::15]))
    assert baseline.loss_of(model, tokens).item() == pytest.approx(np.log(23), abs=0.1)
    block = 4 * 32 * 32 + (32 * 128 + 128) + (128 * 32 + 32) + 2 * 32
    expected = 23 * 32 + LENGTH * 32 + 2 * block + 32 + 32 * 23
    assert sum(p.numel() for p in model.parameters()) == expected
    assert record["model"].startswith(f"{expected} parameters")


def test_the_loss_is_the_mean_over_shifted_targets(model):
    tokens = torch.from_numpy(toy_language.encode(toy_language.sentences()[:3]))
    with torch.no_grad():
        logits = model(tokens[:, :-1]).double().numpy()
        got = float(baseline.loss_of(model, tokens))
    losses = []
    for row, line in zip(tokens.tolist(), logits, strict=True):
        for position, scores in enumerate(line):
            losses.append(np.log(np.exp(scores).sum()) - scores[row[position + 1]])
    assert got == pytest.approx(np.mean(losses), rel=1e-5)


# Claims and the command


def test_a_claim_fails_on_a_record_that_says_otherwise(record):
    other = copy.deepcopy(record)
    final = next(f for f in other["runs"][1]["steps"] if f["step"] == 600)
    final.update(held_out=0.9, well_formed=0.5, same_colour=0.01)
    assert claims.final_is_lowest(other) != claims.final_is_lowest(record)
    assert claims.samples_are_sentences(record) and not claims.samples_are_sentences(other)
    assert claims.own_colour_at_the_end(record) == [0.039, 0.165] != claims.own_colour_at_the_end(other)


def test_the_command_writes_record_and_browser_copy(record, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(baseline, "run", lambda seed: {**record, "seed": seed})
    out, data = tmp_path / "baseline.json", tmp_path / "data.json"
    baseline.main(["--seed", "4", "--out", str(out), "--data", str(data)])
    assert json.loads(out.read_text(encoding="utf-8"))["seed"] == 4
    assert json.loads(data.read_text(encoding="utf-8"))["seed 1"] == record["runs"][0]["steps"]
    assert capsys.readouterr().out.count("held out") == 14
    with pytest.raises(SystemExit):
        baseline.main(["--out", str(out), "--data", str(tmp_path / "data.py")])
    assert "NAME.json" in capsys.readouterr().err
