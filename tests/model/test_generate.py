"""Generation: drafting and verifying changes the cost, never the text; acceptance keeps the distribution."""

import itertools

import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import acceptance, sampling
from deepseek_edu.model.model import Model

from ..reference.tiny import tiny_model as numpy_tiny_model
from .tiny import gap, rows, tiny_model, token_map


@pytest.mark.parametrize("quantized", [False, True])
def test_greedy_text_is_the_same_with_and_without_drafts_and_in_numpy(quantized):
    model, batch = tiny_model(), rows(9, 24, 1)
    plain, drafted = (
        model.generate(batch, 14, speculative=some, stop=(), cache=model.new_cache(3, quantized))
        for some in (False, True)
    )
    for row, ids in enumerate(batch):
        numpy_model = numpy_tiny_model()
        expected = numpy_model.generate(ids, 14, stop=(), cache=numpy_model.new_cache(quantized))
        assert plain[row].ids == drafted[row].ids == expected.ids
        assert drafted[row].accepted == expected.accepted
        assert len(plain[row].ids) == 14


def test_prompts_with_images_are_continued_as_in_numpy():
    """Two rows, one with an image whose vectors are given; the other types are those of text."""
    model, batch = tiny_model(), rows(9, 9)
    kinds = torch.full((2, 9), -1)
    kinds[0, 2:6] = torch.tensor([0, 1, 2, 3])
    features = torch.randn(4, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    got = model.generate(batch, 10, stop=(), types=kinds, features=features, chunk=4)
    for row, ids in enumerate(batch):
        given = features.numpy() if row == 0 else None
        expected = numpy_tiny_model().generate(ids, 10, stop=(), types=kinds[row].numpy(), features=given)
        assert got[row].ids == expected.ids
    assert got[0].ids != model.generate(batch, 10, stop=())[0].ids


def test_a_model_that_drafts_well_needs_fewer_passes():
    """With only zero logits beside a bigram head that both share, every draft is the backbone's own choice."""
    model = Model(ModelConfig.tiny(), token_map(), torch.float64)
    with torch.no_grad():
        model.head.weight.zero_()
        model.mtp[-1].markov_head.head.weight.zero_()
    got = model.generate([[5, 6, 7]], 13, stop=())[0]
    assert got.accepted == [5, 5]
    assert got.passes == 2
    assert got.ids == [0] * 13


def test_rows_end_by_themselves_and_the_cache_holds_all_but_the_last_token():
    model, batch = tiny_model(), rows(9, 24)
    free = model.generate(batch, 12, stop=())
    stop = free[0].ids[2]
    cache = model.new_cache(2)
    ended = model.generate(batch, 12, stop=[stop], cache=cache)
    for row, ids in enumerate(batch):
        wanted = free[row].ids[: free[row].ids.index(stop) + 1] if stop in free[row].ids else free[row].ids
        assert ended[row].ids == wanted
        assert ended[row].stopped == (stop in free[row].ids)
        assert int(cache.lengths[row]) == len(ids) + len(wanted) - 1
    alone = model.new_cache(1)
    model.prefill([[*batch[0], *ended[0].ids[:-1]]], alone)
    after = model.decode(torch.tensor([7, 7]), cache).last
    assert gap(after[0], model.decode(torch.tensor([7]), alone).last[0]) < 1e-6


def test_the_same_seed_gives_the_same_text_and_another_one_another():
    model = tiny_model()
    texts = [[g.ids for g in model.generate(rows(9, 5), 12, temperature=1.0, seed=seed, stop=())] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(("name", "value"), [("max_new_tokens", 0), ("draft_length", 6), ("temperature", -1.0)])
def test_arguments_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        tiny_model().generate(rows(3), **{"max_new_tokens": 2, name: value})


def test_what_acceptance_emits_has_the_distribution_of_plain_decoding():
    """Vocabulary of three, two drafts: the exact probability of every first token, by summing over all drafts.

    The first emitted token is draft 1 if it stands, else a draw from the residual; both are computed from the rule.
    """
    p, q = torch.tensor([0.5, 0.2, 0.3]), torch.tensor([0.1, 0.6, 0.3])
    emitted = torch.zeros(3)
    for token in range(3):
        stands = min(1.0, float(p[token] / q[token]))
        emitted[token] += q[token] * stands
        emitted += q[token] * (1 - stands) * acceptance.residual(p, q)
    assert gap(emitted, p) < 1e-6


def test_drawn_pairs_of_tokens_have_the_distribution_of_plain_decoding():
    """Chi-square over all sequences of two tokens of a small vocabulary, 40 000 rows at once."""
    generator, n = torch.Generator().manual_seed(4), 40_000
    first = torch.tensor([0.5, 0.2, 0.3])
    second = torch.tensor([[0.1, 0.1, 0.8], [0.6, 0.2, 0.2], [0.3, 0.3, 0.4]])  # after each first token
    q = torch.tensor([0.2, 0.5, 0.3])
    drafts = sampling.draw(q.expand(n, 3), generator)[:, None]
    wanted = torch.stack([first.expand(n, 3), second[drafts[:, 0]]], dim=1)
    accepted, following = acceptance.accept(drafts, q.expand(n, 1, 3), wanted, generator)
    assert 0.6 < accepted.double().mean() < 0.8  # Σ min(P, Q) = 0.7
    next_token = sampling.draw(second[following], generator)
    tokens = torch.where(accepted == 1, drafts[:, 0], following), torch.where(accepted == 1, following, next_token)
    chi = 0.0
    for a, b in itertools.product(range(3), repeat=2):
        expected = n * float(first[a] * second[a, b])
        chi += (float(((tokens[0] == a) & (tokens[1] == b)).sum()) - expected) ** 2 / expected
    assert chi < 26.1  # 8 degrees of freedom, 0.1 %


def test_greedy_acceptance_stops_at_the_first_difference():
    drafts = torch.tensor([[1, 2, 0], [1, 2, 1], [0, 2, 1]])
    choices = torch.tensor([1, 2, 1, 0])
    logits = torch.nn.functional.one_hot(choices, 3).float().expand(3, 4, 3)
    accepted, following = acceptance.accept_greedy(drafts, logits)
    assert accepted.tolist() == [2, 3, 0]
    assert following.tolist() == [1, 0, 1]


def test_distributions_that_do_not_belong_to_the_drafts_are_refused():
    with pytest.raises(ValueError, match="one target distribution more"):
        acceptance.accept(torch.tensor([[1]]), torch.ones(1, 1, 3), torch.ones(1, 1, 3))
