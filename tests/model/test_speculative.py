"""Speculative decoding changes the cost and nothing else: exact distributions, greedy text, what is counted."""

import itertools

import numpy as np
import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import acceptance, generate, sampling
from deepseek_edu.model.model import Model

from .tiny import gap, rows, tiny_model

# A vocabulary of three and two drafts. All ratios P/Q are multiples of 1/20, so that twenty uniform numbers at the
# middles of twentieths give every probability of acceptance exactly.
FIRST_Q = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
FIRST_P = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
SECOND_Q = torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.5, 0.1], [0.2, 0.5, 0.3]], dtype=torch.float64)  # after each first
SECOND_P = torch.tensor([[0.1, 0.1, 0.8], [0.6, 0.25, 0.15], [0.05, 0.35, 0.6]], dtype=torch.float64)
THIRD_P = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
UNIFORM = (torch.arange(20, dtype=torch.float64) + 0.5) / 20


def enumerate_all(monkeypatch):
    """Every pair of drafts with every pair of uniform numbers: (probability, drafts, accepted, what is drawn from)."""
    drafts = torch.tensor(list(itertools.product(range(3), repeat=2)))  # 9 2
    grid = torch.cartesian_prod(UNIFORM, UNIFORM)  # 400 2
    drafts, uniform = drafts.repeat_interleave(len(grid), dim=0), grid.repeat(9, 1)
    proposed = torch.stack([FIRST_Q.expand(len(drafts), 3), SECOND_Q[drafts[:, 0]]], dim=1)
    wanted = torch.stack(
        [FIRST_P.expand(len(drafts), 3), SECOND_P[drafts[:, 0]], THIRD_P.expand(len(drafts), 3)], dim=1
    )
    drawn = []
    monkeypatch.setattr(torch, "rand", lambda *_, **__: uniform)
    monkeypatch.setattr(sampling, "draw", lambda p, *_: drawn.append(p) or p.argmax(dim=-1))
    accepted, _ = acceptance.accept(drafts, proposed, wanted)
    chance = FIRST_Q[drafts[:, 0]] * SECOND_Q[drafts[:, 0], drafts[:, 1]] / len(grid)
    return chance, drafts, accepted, drawn[0]


def test_pairs_of_emitted_tokens_have_exactly_the_distribution_of_plain_decoding():
    """By enumeration; tokens behind a rejection are plain decoding's, drawn from P again."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        chance, drafts, accepted, following = enumerate_all(monkeypatch)
    assert abs(float(chance.sum()) - 1) < 1e-12
    emitted = torch.zeros(3, 3, dtype=torch.float64)
    for p, (one, two), count, after in zip(chance, drafts.tolist(), accepted.tolist(), following, strict=True):
        if count == 0:
            emitted += p * after[:, None] * SECOND_P
        elif count == 1:
            emitted[one] += p * after
        else:
            emitted[one, two] += p
            assert gap(after, THIRD_P) < 1e-12
    assert gap(emitted, FIRST_P[:, None] * SECOND_P) < 1e-12


def test_drafts_stand_with_the_overlap_of_both_distributions():
    """P(first stands) = Σ min(P, Q); P(both stand) = Σ min(P₁, Q₁) Σ min(P₂, Q₂)."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        chance, _, accepted, _ = enumerate_all(monkeypatch)
    first = torch.minimum(FIRST_P, FIRST_Q)
    assert abs(float(chance[accepted >= 1].sum() - first.sum())) < 1e-12
    both = (first * torch.minimum(SECOND_P, SECOND_Q).sum(dim=1)).sum()
    assert abs(float(chance[accepted == 2].sum() - both)) < 1e-12


def test_the_residual_is_what_the_draft_left_over():
    p, q = torch.tensor([[0.5, 0.2, 0.3]]), torch.tensor([[0.1, 0.6, 0.3]])
    assert gap(acceptance.residual(p, q), [[1.0, 0.0, 0.0]]) < 1e-6
    assert torch.equal(acceptance.residual(p, p), p)


def test_draws_have_the_distribution_they_are_drawn_from():
    n, p = 40_000, torch.tensor([0.5, 0.2, 0.25, 0.05])
    drawn = sampling.draw(p.expand(n, 4), torch.Generator().manual_seed(0))
    expected = n * p.double()
    assert float(((drawn.bincount(minlength=4) - expected) ** 2 / expected).sum()) < 16.3  # 3 degrees, 0.1 %


def test_greedy_acceptance_stops_at_the_first_difference():
    drafts = torch.tensor([[1, 2, 0], [1, 2, 1], [0, 2, 1]])
    logits = torch.nn.functional.one_hot(torch.tensor([1, 2, 1, 0]), 3).float().expand(3, 4, 3)
    accepted, following = acceptance.accept_greedy(drafts, logits)
    assert accepted.tolist() == [2, 3, 0]
    assert following.tolist() == [1, 0, 1]


def small(seed=0, dtype=torch.float64, **changes):
    """A random model of three layers with a vocabulary of five, whose drafter is often right."""
    config = ModelConfig.tiny(
        **{
            "vocab_size": 5,
            "n_layers": 3,
            "n_mtp_layers": 1,
            "compress_ratios": (0, 2, 1, 0),
            "kv_source_layers": (1, 2),
            "index_source_layers": (1, 2),
            "candidate_source_layer": 2,
            "engram_layer_ids": (1,),
            "engram_num_embeddings": (),
            "engram_compressed_vocab_size": 3,
            "dspark_noise_token_id": 4,
            "dspark_target_layer_ids": (1, 2),
            "dspark_block_size": 3,
            "image_token_id": 4,
            "vision_n_layers": 0,
            **changes,
        }
    )
    torch.manual_seed(seed)
    model = Model(config, np.arange(config.vocab_size) // 2, dtype)
    with torch.no_grad():
        model.head.weight.mul_(2)  # distributions that are far from even
    return model


def plain_probabilities(model, prompt, length):
    """P of every continuation of so many tokens, by running the model on each: [V … V]."""
    vocabulary = model.config.vocab_size
    texts = torch.tensor(list(itertools.product(range(vocabulary), repeat=length)))
    ids = torch.cat([torch.tensor(prompt).expand(len(texts), -1), texts], dim=1)
    logits = model.prefill(ids, model.new_cache(len(ids), quantized=False)).logits[:, len(prompt) - 1 : -1]
    each = logits.softmax(dim=-1).gather(-1, texts[..., None])[..., 0]
    return each.prod(dim=1).view((vocabulary,) * length)


def chi_square(counts, expected):
    """(statistic, its 0.1 % bound by the normal approximation); cells with fewer than five expected count as one."""
    rare = expected < 5
    terms = [((counts - expected) ** 2 / expected)[~rare]]
    terms.append(((counts - expected)[rare].sum() ** 2 / expected[rare].sum())[None])
    degrees = int((~rare).sum())
    return float(torch.cat(terms).sum()), degrees + 3.1 * (2 * degrees) ** 0.5 + 6


def test_generated_texts_have_the_distribution_of_plain_decoding():
    """Chi-square over all 125 texts of three tokens: 2 000 rows that draft, verify and roll back for themselves.

    With blocks of three drafts the text is made of drafts and residuals; with one draft also of what follows it.
    """
    model, prompt, n = small(dtype=torch.float32), [1, 3, 0], 2000
    expected = n * plain_probabilities(model, prompt, 3).double()
    for length in (3, 1):
        cache = model.new_cache(n, quantized=False)
        options = {"temperature": 1.0, "seed": 5, "stop": (), "cache": cache, "draft_length": length}
        found = model.generate([prompt] * n, 3, **options)
        places, counts = tuple(torch.tensor([row.ids for row in found]).T), torch.zeros_like(expected)
        counts.index_put_(places, torch.ones(n, dtype=torch.float64), accumulate=True)
        statistic, bound = chi_square(counts, expected)
        assert statistic < bound
        assert 0.1 < sum(row.accepted[0] > 0 for row in found) / n < 0.9


def test_the_distributions_reported_are_those_the_drafts_are_drawn_from():
    """At temperature 0.5: Q handed to acceptance is the softmax of the biased logits at 0.5, row by row."""
    model, seen = small(), []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sampling, "draw", lambda p, *_: seen.append(p) or p.argmax(dim=-1))

        def accept(drafts, proposed, wanted, generator):
            assert gap(proposed, torch.stack(seen[1:4], dim=1)) < 1e-12
            assert torch.equal(drafts, torch.stack([p.argmax(dim=-1) for p in seen[1:4]], dim=1))
            seen.append(wanted)
            return torch.tensor([0, 1]), torch.tensor([1, 1])

        monkeypatch.setattr(acceptance, "accept", accept)
        model.generate([[1, 2], [3]], 2, temperature=0.5, stop=())
    assert seen[-1].shape == (2, 4, 5)


@pytest.mark.parametrize("seed", [0, 4, 7, 11])
@pytest.mark.parametrize("quantized", [False, True])
def test_greedy_text_is_that_of_plain_decoding_for_any_model(seed, quantized):
    model = small(seed, index_topk=1 + seed % 2, window_size=3 + seed % 4)
    greedy_texts_agree(model, quantized, tokens=14, lengths=(1, 2, 3))


def test_greedy_text_is_that_of_plain_decoding():
    greedy_texts_agree(small(4, window_size=3), False, tokens=8, lengths=(3,))


def greedy_texts_agree(model, quantized, tokens, lengths):
    """Rows of different lengths; whatever number of drafts is verified; how often they stand is counted right."""
    batch = [[1, 3, 0, 2, 2], [4], [0, 1, 2, 3, 4, 0, 1, 2, 3]]
    plain = model.generate(batch, tokens, speculative=False, stop=(), cache=model.new_cache(3, quantized))
    stood = set()
    for length in lengths:
        cache = model.new_cache(3, quantized)
        drafted = model.generate(batch, tokens, stop=(), cache=cache, draft_length=length)
        for row, (got, expected) in enumerate(zip(drafted, plain, strict=True)):
            assert got.ids == expected.ids
            check_bookkeeping(got, length, tokens)
            assert int(cache.lengths[row]) == len(batch[row]) + tokens - 1
            stood.update(got.accepted)
    assert {0, 1} <= stood


def check_bookkeeping(found, length, limit):
    """Every pass emits its accepted drafts and one more; the last block may be cut at the limit."""
    assert found.passes == len(found.accepted)
    assert all(0 <= count <= length for count in found.accepted)
    emitted = 1 + sum(count + 1 for count in found.accepted)
    before = emitted - (found.accepted[-1] + 1)
    assert before < len(found.ids) <= emitted
    assert len(found.ids) == limit or found.stopped


def test_sampled_texts_are_counted_right_too():
    model = small(3)
    for found in model.generate([[1], [2, 3]], 6, temperature=0.8, seed=2, stop=()):
        check_bookkeeping(found, 3, 6)
    stopped = model.generate([[1], [2, 3], [4, 0, 1]], 12, temperature=0.8, seed=2, stop=[0])
    for found in stopped:
        check_bookkeeping(found, 3, 12)
        assert found.stopped == (found.ids[-1] == 0)
        assert 0 not in found.ids[:-1]
    assert any(found.stopped for found in stopped)


def test_a_row_that_has_ended_is_fed_nothing_and_its_text_stays():
    """The cache of a row that stopped early holds its prompt and its text without the last token."""
    model, batch = tiny_model(), rows(9, 24)
    free = model.generate(batch, 6, stop=())
    stop = free[0].ids[2]
    cache = model.new_cache(2)
    ended = model.generate(batch, 6, stop=[stop], cache=cache)
    assert ended[0].stopped
    for row in range(2):
        wanted = free[row].ids[: free[row].ids.index(stop) + 1] if stop in free[row].ids else free[row].ids
        assert ended[row].ids == wanted
        assert int(cache.lengths[row]) == len(batch[row]) + len(wanted) - 1


def test_a_text_that_ends_inside_an_accepted_block_leaves_no_more_in_the_cache():
    """This model accepts whole blocks of three: of the first, two tokens are wanted."""
    model, prompt = small(10, window_size=5), [1, 3, 0, 2, 2]
    cache = model.new_cache(1, quantized=False)
    (found,) = model.generate([prompt], 3, stop=(), cache=cache)
    assert found.accepted == [3]
    assert int(cache.lengths) == len(prompt) + 2
    alone = model.new_cache(1, quantized=False)
    model.prefill([[*prompt, *found.ids[:2]]], alone)
    assert gap(model.decode([[4]], cache).logits, model.decode([[4]], alone).logits) < 1e-9


def texts(**options):
    """Texts of four tokens after two prompts."""
    return [found.ids for found in small(1).generate([[1, 2], [3]], 4, stop=(), **options)]


def test_a_temperature_near_zero_is_greedy():
    assert texts(temperature=1e-6, seed=3) == texts(seed=9)
    assert sampling.probabilities(torch.tensor([1.0, 3.0, 2.0]), 1e-6).tolist() == [0.0, 1.0, 0.0]


def test_a_temperature_divides_the_logits():
    expected = [1 / (1 + np.e**2), 1 / (1 + np.e**-2)]
    assert gap(sampling.probabilities(torch.tensor([0.0, 1.0]), 0.5), expected) < 1e-6


def test_a_seed_is_all_there_is_to_chance():
    assert texts(temperature=1.0, seed=3) == texts(temperature=1.0, seed=3) != texts(temperature=1.0, seed=4)


def test_the_stop_tokens_of_the_configuration_are_the_default():
    model = small(1, eos_token_id=2)
    free = model.generate([[1, 2], [3]], 12, stop=())
    for row, found in enumerate(model.generate([[1, 2], [3]], 12)):
        text = free[row].ids
        assert found.ids == (text[: text.index(2) + 1] if 2 in text else text)


def test_a_generation_ends_at_the_limit_and_at_its_stop_token():
    found = generate.Generation()
    assert found.add([5, 6], 4, {9})
    assert not found.add([7, 8, 5], 4, {9})
    assert found.ids == [5, 6, 7, 8]
    found = generate.Generation()
    assert not found.add([5, 9, 6], 4, {9})
    assert (found.ids, found.stopped) == ([5, 9], True)
