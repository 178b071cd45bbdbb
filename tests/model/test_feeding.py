"""All ways of feeding the same tokens to a batch give the same logits and leave the same state."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepseek_edu.config import ModelConfig
from deepseek_edu.model import dspark, replay
from deepseek_edu.model.cache import Cache
from deepseek_edu.model.model import Model
from deepseek_edu.reference import replay as numpy_replay

from ..reference.tiny import tiny_model as numpy_tiny_model
from .tiny import ORACLES, gap, recorded, rows, tiny_model, token_map

TOLERANCE = 1e-9


def same_future(cache, other, steps=3):
    """Both caches give the same logits and drafts for the next tokens of every row; both move on."""
    model = tiny_model()
    assert cache.lengths.tolist() == other.lengths.tolist()
    for step in range(steps):
        tokens = torch.tensor([(5 + 7 * step + 3 * row) % 90 for row in range(cache.batch)])
        with torch.no_grad():
            drafts = [dspark.draft(tokens, model, state) for state in (cache, other)]
        assert gap(drafts[0].logits, drafts[1].logits) < TOLERANCE
        assert gap(model.decode(tokens, cache).logits, model.decode(tokens, other).logits) < TOLERANCE
    for layer in cache.entries:
        for row in range(cache.batch):
            for mine, theirs in ((cache.entries, other.entries), (cache.index_keys, other.index_keys)):
                for part, same in zip(mine[layer].stored(row), theirs[layer].stored(row), strict=True):
                    assert gap(part, same) < TOLERANCE


def prefilled(batch, quantized=False, **options):
    model = tiny_model()
    cache = model.new_cache(len(batch), quantized)
    return model.prefill(batch, cache, **options), cache


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(3, 12), st.booleans())
@settings(max_examples=8)
def test_chunks_of_any_size_give_the_logits_of_one_piece(lengths, chunk, quantized):
    whole, cache = prefilled(rows(*lengths), quantized)
    pieces, other = prefilled(rows(*lengths), quantized, chunk=chunk)
    for row, length in enumerate(lengths):
        assert gap(pieces.logits[row, :length], whole.logits[row, :length]) < TOLERANCE
    assert gap(pieces.last, whole.last) < TOLERANCE
    last, _ = prefilled(rows(*lengths), quantized, chunk=chunk, logits="last")
    assert gap(last.last, whole.last) < TOLERANCE
    same_future(cache, other)


def test_a_row_does_not_feel_the_rows_beside_it():
    lengths = [3, 17, 40, 8]
    together, cache = prefilled(rows(*lengths))
    for row, length in enumerate(lengths):
        alone, _ = prefilled([rows(*lengths)[row]])
        assert gap(together.logits[row, :length], alone.logits[0]) < TOLERANCE
    tokens = torch.tensor([1, 2, 3, 4])
    after = tiny_model().decode(tokens, cache, counts=[1, 0, 1, 0])
    assert cache.lengths.tolist() == [4, 17, 41, 8]
    for row in (0, 2):
        ids = [*rows(*lengths)[row], int(tokens[row])]
        assert gap(after.logits[row, 0], prefilled([ids])[0].last[0]) < TOLERANCE


@given(st.integers(1, 30), st.integers(1, 30), st.lists(st.integers(0, 5), min_size=2, max_size=2))
@settings(max_examples=8)
def test_rejected_tokens_leave_no_trace(first, second, kept):
    """Six tokens are fed to both rows, of which each keeps some; then as if the others had never been there."""
    model, batch = tiny_model(), rows(first, second)
    _, cache = prefilled(batch)
    right = [recorded()["ids"][b, len(row) : len(row) + 6].tolist() for b, row in enumerate(batch)]
    fed = [
        row[: 1 + keep] + [(token + 11) % 96 for token in row[1 + keep :]]
        for row, keep in zip(right, kept, strict=True)
    ]
    model.decode(fed, cache)
    cache.rollback(torch.tensor([first + 1 + kept[0], second + 1 + kept[1]]))
    # a draft needs the windows of the drafter as well, so it is compared too
    _, other = prefilled([row + new[: 1 + keep] for row, new, keep in zip(batch, right, kept, strict=True)])
    same_future(cache, other, steps=4)


def test_taking_back_more_than_the_spare_positions_is_refused():
    _, cache = prefilled(rows(20, 9))
    cache.rollback(torch.tensor([17, 9]))
    with pytest.raises(ValueError, match=r"lengths\[0\] must be 15 … 17; got 14"):
        cache.rollback(torch.tensor([14, 9]))
    assert cache.lengths.tolist() == [17, 9]


@pytest.mark.parametrize(("decoder", "recorded_as"), [("report", "paper"), ("serving", "vllm")])
@pytest.mark.parametrize("chunk", [None, 7])
def test_bounded_replay_of_the_decoder_gives_the_recorded_logits(decoder, recorded_as, chunk):
    with np.load(ORACLES / "replay_tiny.npz") as file:
        replayed = {name: file[name] for name in file.files}
    for tokens in (5, 8, 9, 11, 16, 20, 27, 33, 40):
        model = tiny_model()
        cache = model.new_cache(2, quantized=False)
        output = model.prefill(torch.tensor(recorded()["ids"][:, :tokens]), cache, decoder=decoder, chunk=chunk)
        assert gap(output.last, replayed[f"{recorded_as}/T{tokens}/logits"]) < 1e-9


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.sampled_from([None, 5, 12]))
@settings(max_examples=8)
def test_an_exact_skip_leaves_nothing_different(lengths, chunk):
    whole, cache = prefilled(rows(*lengths))
    skipped, other = prefilled(rows(*lengths), decoder="exact", chunk=chunk)
    assert gap(skipped.last, whole.last) < TOLERANCE
    same_future(cache, other)


@pytest.mark.parametrize("decoder", ["report", "serving", "exact"])
def test_a_skip_in_a_ragged_batch_does_in_each_row_what_the_reference_does(decoder):
    lengths = [40, 5, 23]
    output, cache = prefilled(rows(*lengths), decoder=decoder, chunk=6)
    next_output = tiny_model().decode(torch.tensor([3, 4, 5]), cache)
    model = numpy_tiny_model()
    for row, ids in enumerate(rows(*lengths)):
        state = model.new_cache(quantized=False)
        assert gap(output.last[row], model.prefill(ids, state, decoder=decoder).logits[-1]) < TOLERANCE
        assert gap(next_output.logits[row, 0], model.decode(3 + row, state).logits[0]) < TOLERANCE
    assert output.layer_tokens < 8 * sum(lengths)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("hits", [[30, 12], [0, 8], [10, 38]])
def test_a_replayed_prefix_is_that_of_the_reference(exact, hits):
    """Rows with different hits; exact replay equals feeding everything, the other the NumPy model's approximation."""
    batch = rows(40, 40)
    _, stored = prefilled(rows(39, 39))
    cache, ids, counts, _ = replay.resume(tiny_model(), stored, batch, hits, exact=exact)
    output = tiny_model().prefill(ids, cache, counts)
    model = numpy_tiny_model()
    for row in range(2):
        past = model.new_cache(quantized=False)
        model.prefill(batch[row][:39], past)
        state = numpy_replay.resume(model, past, batch[row], hits[row], exact=exact)
        expected = model.prefill(batch[row][state.length :], state).logits[-1]
        assert gap(output.last[row], expected) < TOLERANCE
    if exact:
        whole, other = prefilled(batch)
        assert gap(output.last, whole.last) < TOLERANCE
        same_future(cache, other)


def test_features_take_the_place_of_image_embeddings_in_chunks_of_a_ragged_batch():
    model, data = tiny_model(), recorded()
    ids, types = (torch.tensor(data[f"noquant/image20/{name}"]) for name in ("ids", "types"))
    counts, expected = [20, 13], model.new_cache(2, quantized=False)
    mask = (types >= 0) & (torch.arange(20) < torch.tensor(counts)[:, None])
    features = model.embed(ids[mask]) + 1
    whole = model.prefill(ids, expected, counts, types, features)
    pieces = model.prefill(ids, model.new_cache(2, quantized=False), counts, types, features, chunk=6)
    assert gap(pieces.last, whole.last) < TOLERANCE
    plain = model.prefill(ids, model.new_cache(2, quantized=False), counts, types)
    assert gap(plain.last, whole.last) > 0.1


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], r"ids must be \[B T\]"),
        ([[]], "not empty"),
        ([[1.5]], "integers"),
        ([[96]], "0 … 95; got 96 … 96"),
        ([[-1]], "0 … 95; got -1"),
    ],
)
def test_ids_that_no_vocabulary_has_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        tiny_model().prefill(ids, tiny_model().new_cache())


def test_other_arguments_that_do_not_fit_are_named():
    model = tiny_model()
    with pytest.raises(ValueError, match="cache must be made for this configuration and 2 rows; it has 1 rows"):
        model.prefill(rows(3, 3), model.new_cache())
    with pytest.raises(ValueError, match="counts must be 1 numbers from 0 to 2"):
        model.prefill(torch.tensor([[1, 2]]), model.new_cache(), counts=[3])
    with pytest.raises(ValueError, match="decoder must be one of"):
        model.prefill(rows(3), model.new_cache(), decoder="some")
    with pytest.raises(ValueError, match="types must have the shape of ids"):
        model.prefill(rows(3), model.new_cache(), types=[[1]])
    with pytest.raises(ValueError, match="token_map is needed"):
        bare = Model(ModelConfig.tiny())
        bare.prefill(rows(3), bare.new_cache())
    with pytest.raises(ValueError, match="prefill first"):
        dspark.draft(torch.tensor([1]), model, model.new_cache())
    with pytest.raises(ValueError, match=r"1 missing: head\.weight"):
        state = {name: array.numpy() for name, array in model.state_dict().items() if name != "head.weight"}
        Model(ModelConfig.tiny(), token_map()).load_weights(state)


def contents(cache):
    """Everything a cache holds, as bytes and numbers."""
    stores = [*cache.entries.values(), *cache.index_keys.values()]
    rows = range(cache.batch)
    parts = [part.numpy().tobytes() for store in (*stores, *cache.rings) for row in rows for part in store.stored(row)]
    starts = [ring.start.tolist() for ring in cache.rings]
    return parts, starts, [some.tolist() for some in (cache.lengths, cache.stored, cache.highest, cache.decoded)]


IMAGES = [[1] * 6] * 2  # types of two rows of six tokens inside an image


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, c: m.prefill([[1, 2, 3, 96], [1]], c, chunk=2), "ids must be 0 … 95; got 0 … 96"),
        (lambda m, c: m.prefill([[1] * 1030 + [96], [1]], c), "ids must be 0 … 95"),
        (lambda m, c: m.prefill([[1, 2, 3, 96], [1]], c, chunk=2, decoder="report"), "ids must be 0 … 95"),
        (lambda m, c: m.prefill([], c), "ids must be .* not empty"),
        (lambda m, c: m.prefill([["a"], ["b"]], c), "ids must be"),
        (lambda m, c: m.prefill([[None], [None]], c), "ids must be"),
        (lambda m, c: m.prefill([[1], [1]], c, counts="ab"), "counts must be made of numbers; got 'ab'"),
        (lambda m, c: m.prefill([[1], [1]], c, types=[[None]] * 2), "types must be made of numbers"),
        (lambda m, c: m.prefill([[95] * 6] * 2, c, None, IMAGES, "ab"), "features must be made of numbers"),
        (lambda m, c: m.prefill([[95] * 6] * 2, c, None, IMAGES, torch.ones(12, 32) * 1j), "real numbers; got torch.c"),
        (lambda m, c: m.generate([[1], [1]], 3, seed=2**64, cache=c), "seed must be 0 … 2"),
        (lambda m, c: m.generate([[1] * 6] * 2, 3, cache=c, types=[[9] * 6] * 2), "types must be integers, -1"),
        (lambda m, c: m.decode(None, c), "ids must be integers"),
        (lambda m, c: m.decode([1.5, 1.5], c), "ids must be integers"),
        (lambda m, c: m.prefill([[1], [2]], c, chunk=1.5), "chunk must be 1 or more"),
        (lambda m, c: m.prefill([[1], [2]], c, logits="some"), "logits must be"),
        (lambda m, c: m.forward(torch.tensor([[1], [2]]), c, logits="some"), "logits must be"),
        (lambda m, c: m.prefill([[1, 2], [1]], c, counts=[2, 2]), r"counts must be at most \[2, 1\]"),
        (lambda m, c: m.prefill([[1, 2], [1, 2]], c, counts=[1.5, 1]), "counts must be 2 numbers"),
        (lambda m, c: m.prefill([[1] * 6] * 2, c, types=[[-1] * 5] * 2, chunk=2), "types must have the shape of ids"),
        (lambda m, c: m.prefill([[1] * 6] * 2, c, types=[[9] * 6] * 2), "types must be integers, -1"),
        (lambda m, c: m.prefill([[1] * 6] * 2, c, features=torch.ones(6, 32)), "features need types"),
        (lambda m, c: m.prefill([[95] * 6] * 2, c, None, IMAGES, torch.ones(5, 32), chunk=2), "features must be"),
        (lambda m, c: m.prefill([[95] * 6] * 2, c, None, IMAGES, torch.ones(15, 32), chunk=2), "features must be"),
        (lambda m, c: m.prefill([[95] * 6] * 2, c, None, IMAGES, torch.full((12, 32), torch.nan)), "must be finite"),
        (lambda m, c: m.generate([[1], [1]], 3, temperature=float("nan"), cache=c), "temperature must be 0 or more"),
        (lambda m, c: m.generate([[1], [1]], 2.5, cache=c), "max_new_tokens must be 1 or more"),
        (lambda m, c: m.generate([[1], [1]], 3, seed="x", cache=c), "seed must be 0 or more"),
        (lambda m, c: m.generate([[1], [1]], 3, stop=5, cache=c), "stop must be a list"),
        (lambda m, c: m.generate([[1], []], 3, cache=c), "counts must be 1 or more"),
        (lambda _, c: c.rollback(8.5), "lengths must be one integer or 2"),
        (lambda _, c: c.rollback([8, 8, 8]), "lengths must be one integer or 2"),
        (lambda _, c: c.rollback(None), "lengths must be made of numbers; got None; give a tensor"),
        (lambda _, c: c.prefix("ab"), "lengths must be made of numbers; got 'ab'; give a tensor"),
    ],
)
def test_a_refused_call_leaves_the_cache_as_it_was(call, message):
    model = tiny_model()
    cache = model.new_cache(2)
    model.prefill(rows(17, 9), cache)
    before = contents(cache)
    with pytest.raises(ValueError, match=message):
        call(model, cache)
    assert contents(cache) == before


def test_a_prompt_whose_decoder_was_skipped_cannot_be_taken_back_but_what_follows_can():
    """Row 1 is fed nothing the second time, so it may still lose what it decoded after its prompt."""
    model = tiny_model()
    cache = model.new_cache(2, quantized=False)
    model.prefill(rows(17, 9), cache, decoder="report")
    model.decode(torch.tensor([[5, 6], [7, 8]]), cache)
    model.prefill([[1, 2, 3], [0]], cache, counts=[3, 0], decoder="report")
    before = contents(cache)
    for lengths, message in (([21, 11], r"lengths\[0\] must be 22 … 22"), ([22, 8], r"lengths\[1\] must be 9 … 11")):
        with pytest.raises(ValueError, match=f"{message}; got .* a prompt whose decoder was skipped"):
            cache.rollback(lengths)
    assert contents(cache) == before
    cache.rollback([22, 9])
    assert cache.lengths.tolist() == [22, 9]


def test_a_replayed_prefix_cannot_be_taken_back():
    model, batch = tiny_model(), rows(30, 30)
    stored = model.new_cache(2, quantized=False)
    model.prefill(batch, stored)
    cache, ids, counts, _ = replay.resume(model, stored, rows(32, 40), [30, 20])
    with pytest.raises(ValueError, match=r"lengths\[0\] must be 22 … 22"):
        cache.rollback([21, 12])
    model.prefill(ids, cache, counts)
    with pytest.raises(ValueError, match=r"lengths\[0\] must be 30 … 32"):
        cache.rollback([29, 40])
    cache.rollback([30, 36])
    assert cache.entries[1].counts.tolist() == [15, 18]


def test_taking_nothing_back_while_a_prefix_is_replayed_keeps_its_entries():
    model = tiny_model()
    stored = model.new_cache(2, quantized=False)
    model.prefill(rows(30, 30), stored)
    cache, ids, counts, _ = replay.resume(model, stored, rows(32, 40), [30, 20])
    other, *_ = replay.resume(model, stored, rows(32, 40), [30, 20])
    cache.rollback(cache.lengths)
    assert contents(cache) == contents(other)
    assert cache.stored.tolist() == other.stored.tolist()
    assert gap(model.prefill(ids, cache, counts).last, model.prefill(ids, other, counts).last) == 0


def test_a_live_cache_serves_one_call():
    model = tiny_model()
    ids = torch.tensor(rows(5))
    for use in (
        lambda cache: model.prefill(ids, cache),
        lambda cache: model.generate(ids, 2, cache=cache, speculative=False),
    ):
        cache = model.live_cache(ids, False)
        with pytest.raises(ValueError, match=r"cache must keep what it is given; got a live one.*new_cache"):
            use(cache)
        assert cache.lengths.tolist() == [0]
    with torch.no_grad():
        model(ids, cache)
        with pytest.raises(
            ValueError, match=r"a live cache serves one call .* it has \[5\] tokens; use model.new_cache"
        ):
            model(ids, cache)
    for use in (cache.rollback, cache.prefix):
        with pytest.raises(ValueError, match="a live cache keeps nothing to go back to"):
            use(4)


@pytest.mark.parametrize("decoder", ["all", "report", "serving"])
def test_a_prefill_of_no_tokens_changes_nothing(decoder):
    model = tiny_model()
    cache = model.new_cache(1, quantized=False)
    model.prefill(rows(12), cache)
    before = contents(cache)
    model.prefill([[1, 2, 3]], cache, counts=[0], decoder=decoder)
    assert contents(cache) == before
    assert cache.lengths.tolist() == [12]


def test_an_empty_row_may_come_first():
    model = tiny_model()
    for batch in ([[], [1, 2, 3]], [[1, 2, 3], []]):
        cache = model.new_cache(2, quantized=False)
        output = model.prefill(batch, cache)
        assert cache.lengths.tolist() == [len(row) for row in batch]
        full = next(row for row in range(2) if batch[row])
        alone = model.prefill([[1, 2, 3]], model.new_cache(1, quantized=False))
        assert gap(output.logits[full], alone.logits[0]) < TOLERANCE


@pytest.mark.filterwarnings("ignore:for .* is a no-op")
def test_a_model_without_memory_takes_over_tensors_by_assignment_alone():
    whole = tiny_model()
    made = Model(whole.config, device="meta")
    with pytest.raises(RuntimeError, match=r"experts.* has no memory here \(device meta\); load with assign=True"):
        made.load_state_dict(whole.state_dict())
    with pytest.raises(ValueError, match='the model must have memory to take over weights; got device "meta"'):
        made.load_weights(whole.state_dict())
    made.load_state_dict(whole.state_dict(), assign=True)
    name, one = next((name, one) for name, one in whole.state_dict().items() if ".experts.1.w1" in name)
    made.load_state_dict({name: one}, strict=False, assign=True)  # the other experts keep their values
    made.hash = whole.hash
    assert not any(parameter.is_meta for parameter in made.parameters())
    assert all(torch.equal(mine, made.state_dict()[name]) for name, mine in whole.state_dict().items())
    assert gap(made.prefill(rows(9), made.new_cache(1)).logits, whole.prefill(rows(9), whole.new_cache(1)).logits) == 0


def test_a_cache_that_cannot_serve_is_refused_before_anything_is_fed():
    model = tiny_model()
    cache = model.new_cache(1, spare=2)
    with pytest.raises(ValueError, match="cache must have 5 spare positions to take drafts back; it has 2"):
        model.generate(rows(3), 3, cache=cache)
    assert cache.lengths.tolist() == [0]
    assert len(model.generate(rows(3), 3, cache=cache, draft_length=2, stop=())[0].ids) == 3
    single = Cache(ModelConfig.tiny(), dtype=torch.float32)
    with pytest.raises(
        ValueError, match=r"cache must be of torch\.float64 on cpu, as the model is; got torch\.float32"
    ):
        model.prefill(rows(3), single)
    for other in (None, numpy_tiny_model().new_cache()):
        with pytest.raises(ValueError, match=r"cache must come from new_cache\(\)"):
            model.prefill(rows(3), other)
    wide = Model(ModelConfig.tiny(head_dim=40), token_map())
    with pytest.raises(ValueError, match="head_dim must be a multiple of 32 in a quantised cache"):
        wide.new_cache()


def test_weights_may_be_arrays_or_tensors_of_any_type():
    state = {name: tensor.to(torch.bfloat16) for name, tensor in tiny_model().state_dict().items()}
    model = Model(ModelConfig.tiny(), token_map(), torch.float64).load_weights(state)
    assert gap(model.head.weight, tiny_model().head.weight.to(torch.bfloat16).double()) == 0
    trained = {name: tensor.requires_grad_() for name, tensor in state.items()}
    again = Model(ModelConfig.tiny(), token_map(), torch.float64).load_weights(trained)
    assert torch.equal(model.head.weight, again.head.weight)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, c: dspark.draft(torch.tensor([96, 1]), m, c), "tokens must be 2 ids 0 … 95; got"),
        (lambda m, c: dspark.draft([-1, 1], m, c), "tokens must be 2 ids"),
        (lambda m, c: dspark.draft(torch.tensor([1]), m, c), "tokens must be 2 ids"),
        (lambda m, c: replay.resume(m, c, [[96] * 20] * 2, 8), "ids must be 0 … 95"),
        (lambda m, c: replay.resume(m, c, [[1] * 20] * 2, 8, types=[[-1] * 5] * 2), "types must have the shape of ids"),
        (lambda m, c: replay.resume(m, c, [[1] * 20] * 2, 4.5), "hits must be integers"),
        (lambda m, c: replay.resume(m, c, [[1] * 20] * 2, None), "hits must be made of numbers"),
        (lambda m, c: dspark.draft("ab", m, c), "tokens must be made of numbers"),
        (lambda m, c: replay.resume(m, c, [[1] * 20], 8), "one for each of 2 rows"),
    ],
)
def test_drafts_and_replays_of_something_else_are_refused(call, message):
    model = tiny_model()
    cache = model.new_cache(2)
    model.prefill(rows(17, 9), cache)
    with pytest.raises(ValueError, match=message):
        call(model, cache)
