"""Rejected tokens leave no trace in any state: windows, entries, index keys, half groups, ids, draft windows."""

import pytest
import torch

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import cache_file
from deepseek_edu.model.model import Model
from deepseek_edu.reference.model import Model as NumpyModel
from deepseek_edu.reference.weights import random_weights

from .test_speculative import small
from .tiny import gap, rows, tiny_model, token_map


def state(cache):
    """Copies of all that a later token could read, by (kind, layer, row, part); counters by name."""
    found = {
        name: getattr(cache, name).clone() for name in ("lengths", "stored", "decoded", "newest_index_keys")
    }  # fmt: skip
    rings = {"window": cache.windows, "draft window": cache.draft_windows, "history": [cache.history]}
    rings["open group"] = list(cache.open_groups.values())
    for row in range(cache.batch):
        length = int(cache.lengths[row])
        for kind, some in rings.items():
            for layer, ring in enumerate(some):
                found[kind, layer, row, "start"] = ring.start[row].clone()
                slots = torch.arange(max(int(ring.start[row]), length - ring.window), length) % ring.slots
                for part, stored in enumerate(ring.stored(row)):
                    found[kind, layer, row, part] = stored[slots].clone()
        for kind, stores in (("entries", cache.entries), ("index keys", cache.index_keys)):
            for layer, store in stores.items():
                for part, stored in enumerate(store.stored(row)):
                    found[kind, layer, row, part] = stored.clone()
    return found


def assert_same(got, expected, kinds=None, tolerance=0.0):
    """Bit for bit; with a tolerance, packed bytes and counters still are."""
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        if kinds is None or name[0] in kinds:
            if value.is_floating_point() and tolerance:
                assert gap(got[name], value) < tolerance, name
            else:
                assert torch.equal(got[name], value), name


def fed_and_taken_back(cache, model, tokens=5):
    """Feed wrong tokens to every row and take them back."""
    wrong = torch.arange(cache.batch * tokens).view(cache.batch, tokens) * 7 % model.config.vocab_size
    model.decode(wrong, cache)
    cache.rollback(cache.lengths - tokens)


def states_around_a_rejection(quantized, lengths=(23, 8), **options):
    """(state before wrong tokens, state after they were taken back) of the recorded model."""
    model = tiny_model()
    cache = model.new_cache(len(lengths), quantized)
    model.prefill(rows(*lengths), cache, **options)
    before = state(cache)
    fed_and_taken_back(cache, model)
    return before, state(cache)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("lengths", [(1, 40), (7, 8), (9, 16), (17, 22)])
@pytest.mark.parametrize("decoder", ["all", "report", "exact"])
def test_every_state_is_bit_for_bit_what_it_was(quantized, lengths, decoder):
    before, after = states_around_a_rejection(quantized, lengths, decoder=decoder)
    assert_same(after, before)
    assert {name[0] for name in before if isinstance(name, tuple)} == {
        "window", "draft window", "history", "open group", "entries", "index keys"
    }  # fmt: skip


def test_windows_are_what_they_were():
    before, after = states_around_a_rejection(True)
    assert_same(after, before, ("window",))


def test_windows_of_the_drafter_are_what_they_were():
    before, after = states_around_a_rejection(True)
    assert_same(after, before, ("draft window",))


def test_entries_and_index_keys_are_what_they_were():
    before, after = states_around_a_rejection(True)
    assert_same(after, before, ("entries",))
    assert_same(after, before, ("index keys",))


def test_half_filled_groups_are_what_they_were():
    before, after = states_around_a_rejection(False)
    assert_same(after, before, ("open group",))


def test_remembered_ids_are_what_they_were():
    before, after = states_around_a_rejection(False)
    assert_same(after, before, ("history",))


def test_counters_are_what_they_were():
    before, after = states_around_a_rejection(False)
    assert_same(after, before, ("l", "s", "d", "n"))


@pytest.mark.parametrize("accepted", range(6))
def test_a_block_of_which_some_stands_leaves_the_state_of_what_stands(accepted):
    """Six tokens, one sure and `accepted` that stand; another cache is fed only those. Sums take other ways: 1e-12."""
    model, batch = tiny_model(), rows(23, 8)
    right = torch.tensor([[9, 8, 7, 6, 5, 4], [1, 2, 3, 4, 5, 6]])
    wrong = torch.where(torch.arange(6) <= accepted, right, 95 - right)
    cache, other = model.new_cache(2), model.new_cache(2)
    model.prefill(batch, cache)
    model.prefill(batch, other)
    model.decode(wrong, cache)
    cache.rollback(cache.lengths - (5 - accepted))
    model.decode(right, other, counts=[1 + accepted] * 2)
    assert_same(state(cache), state(other), tolerance=1e-12)


def test_rows_take_back_different_numbers_of_tokens():
    model, batch = tiny_model(), rows(23, 8, 1)
    cache = model.new_cache(3)
    model.prefill(batch, cache)
    before = state(cache)
    model.decode(torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 1, 2, 3]]), cache, counts=[4, 0, 2])
    cache.rollback(torch.tensor([23, 8, 1]))
    assert_same(state(cache), before)


def test_many_blocks_in_a_row_leave_the_state_of_one_by_one():
    """Draft, reject all, go on with another token, twelve times; then the bytes are those of plain decoding."""
    model = small(2, window_size=4)
    cache, plain = model.new_cache(1, quantized=True), model.new_cache(1, quantized=True)
    for other in (cache, plain):
        model.prefill([[1, 2, 3]], other)
    for step in range(12):
        model.decode([[step % 5, (step + 1) % 5, 4, 2]], cache)
        cache.rollback(cache.lengths - 3)
        model.decode([[step % 5]], plain)
    assert_same(state(cache), state(plain), tolerance=1e-12)


def test_the_least_cache_has_no_spare_and_takes_nothing_back():
    model = Model(ModelConfig.tiny(), token_map(), torch.float64)
    cache = model.new_cache(1, quantized=False, spare=0)
    model.prefill([[1, 2, 3]], cache)
    with pytest.raises(ValueError, match=r"lengths\[0\] must be 3 … 3; got 2"):
        cache.rollback(2)


def test_what_was_taken_back_for_good_cannot_be_taken_back_again():
    model = tiny_model()
    cache = model.new_cache(1)
    model.prefill(rows(20), cache)
    cache.rollback(17)
    with pytest.raises(ValueError, match=r"lengths\[0\] must be 15 … 17; got 14"):
        cache.rollback(14)
    assert cache.lengths.tolist() == [17]


# The owner that stored index keys last: only the variant `stale_index_keys` reads it. Where the last owner stores for
# every token it is always that one; in these it changes from token to token.
ALTERNATING = ((1, 2), (4, 2), (2, 4))
"""Ratios of the owners in layers 1 and 3."""


def alternating(first, second):
    config = ModelConfig.tiny(compress_ratios=(0, first, first, *[second] * 5, 0, 0, 0))
    torch.manual_seed(0)
    return Model(config, token_map(), torch.float64)


def stores_last(ratios, length):
    """Layer of the owner that stored last when `length` tokens came one by one, by counting; −1 for none."""
    for position in range(length - 1, -1, -1):
        owners = [layer for layer, ratio in zip((1, 3), ratios, strict=True) if (position + 1) % ratio == 0]
        if owners:
            return owners[-1]
    return -1


@pytest.mark.parametrize("ratios", ALTERNATING)
def test_the_owner_that_stored_last_is_the_one_before_the_rejected_tokens(ratios):
    """Token by token, and taken back again from every length by one to five; saved and loaded in between."""
    model = alternating(*ratios)
    cache = model.new_cache(1, quantized=False)
    for length in range(1, 14):
        model.decode([length], cache)
        assert cache.newest_index_keys.tolist() == [stores_last(ratios, length)]
        for taken in range(1, 6):
            loaded = cache_file.from_reference([cache_file.to_reference(cache)], torch.float64)
            for other in (cache, loaded):
                model.decode([[60 + token for token in range(taken)]], other)
                other.rollback(length)
                assert other.newest_index_keys.tolist() == [stores_last(ratios, length)]
            if taken < length:
                loaded.rollback(max(length - taken, int(loaded.highest) - loaded.spare))
                assert loaded.newest_index_keys.tolist() == [stores_last(ratios, int(loaded.lengths))]
        assert len(cache.index_key_writes[0]) <= 2 * cache.spare + 2


def test_the_stale_decode_reads_what_it_would_without_the_rejected_tokens():
    """Rows of different lengths; of a block of five some tokens stand, others do not."""
    for ratios in ALTERNATING:
        model, batch = alternating(*ratios), rows(9, 4, 7)
        cache, other = (model.new_cache(3, quantized=False) for _ in range(2))
        for some in (cache, other):
            model.prefill(batch, some)
        before = state(cache)
        fed_and_taken_back(cache, model)
        assert_same(state(cache), before)
        block = torch.tensor([[5, 6, 7, 8, 9], [9, 8, 7, 6, 5], [1, 2, 3, 4, 5]])
        model.decode(block, cache)
        cache.rollback(torch.tensor([11, 5, 10]))
        model.decode(block, other, counts=[2, 1, 3])
        assert_same(state(cache), state(other), tolerance=1e-12)
        after = [model.decode([3, 3, 3], some, stale_index_keys=True).logits for some in (cache, other)]
        assert gap(*after) < 1e-12


@pytest.mark.parametrize(
    ("ratios", "owners"),
    [((0, 2, 2, 4, 4, 4, 4, 0, 0, 0, 0), (1, 3)), ((0, 2, 2, 3, 3, 2, 2, 0, 0, 0, 0), (1, 3, 5))],
)
def test_stale_keys_may_be_fewer_than_the_visible_entries(ratios, owners):
    """The candidate pool and later choices then see what there is, in NumPy as in PyTorch."""
    config = ModelConfig.tiny(
        compress_ratios=ratios,
        kv_source_layers=owners,
        index_source_layers=owners,
        candidate_source_layer=1,
        candidate_topk_blocks=2,
        candidate_block_size=1,
        index_topk=2,
    )
    weights = random_weights(config, 0)
    reference = NumpyModel(config, weights, token_map())
    model = Model(config, token_map(), torch.float64).load_weights(weights)
    theirs, mine = reference.new_cache(quantized=False), model.new_cache(1, quantized=False)
    for tokens in (5, 1, 1, 1, 1, 2, 3, 1, 1, 2):
        ids = torch.arange(tokens) * 7 + tokens
        expected = reference.forward(ids.numpy(), theirs, stale_index_keys=True).logits
        got = model.forward(ids[None], mine, stale_index_keys=True).logits
        assert gap(got[0], torch.as_tensor(expected)) < 1e-12
