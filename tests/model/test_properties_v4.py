"""V4's compressed entries, experts and attention in PyTorch, each against its formula done by hand on small numbers."""

import numpy as np
import torch

from deepseek_edu.model import rope, v4_attention, v4_compressor, v4_experts, v4_reading
from deepseek_edu.model.v4_cache import V4Rows, waiting_tokens
from deepseek_edu.model.v4_model import V4Model

from ..reference.test_v4 import tiny_v4
from ..reference.test_v4_dspark import drafting_v4
from .numbers import WHERE, fill, random, rms
from .tiny import gap

# compressed entries


def entries_by_hand(u, maker, ratio):
    """Entries of one sequence, channel by channel, from u [T C]."""
    values, gates = (u @ matrix.weight.detach().numpy().T for matrix in (maker.wkv, maker.wgate))
    ape, gain = maker.ape.detach().numpy(), maker.norm.weight.detach().numpy()
    width, entries = len(gain), []
    for j in range(len(u) // ratio):
        mixed = np.zeros(width)
        for channel in range(width):
            candidates = []
            for k in range(ratio):
                own = channel + width if ratio == 4 else channel
                candidates.append((gates[j * ratio + k, own] + ape[k, own], values[j * ratio + k, own]))
                if ratio == 4 and j:
                    before = (j - 1) * ratio + k
                    candidates.append((gates[before, channel] + ape[k, channel], values[before, channel]))
            total = sum(np.exp(gate) for gate, _ in candidates)
            mixed[channel] = sum(np.exp(gate) * value for gate, value in candidates) / total
        entries.append(rms(mixed) * gain)
    return np.array(entries)


def entries_of(ratio, tiles, rows=1):
    """Entries that tiles of (tokens of each row) complete, by row; and those by hand."""
    config = tiny_v4()
    cache = V4Model(config, dtype=torch.float64).new_cache(rows, quantized=False, spare=0)
    maker = fill(v4_compressor.V4Compressor(config, ratio, config.head_dim, WHERE))
    ring = cache.open_groups[2 if ratio == 8 else 1]
    u = random(rows, 40, config.dim, seed=1)
    made = [[] for _ in range(rows)]
    for counts in tiles:
        counts = torch.tensor(counts)
        width = int(counts.max())
        tile = torch.zeros(rows, width, config.dim, dtype=torch.float64)
        for row, count in enumerate(counts.tolist()):
            begin = int(cache.lengths[row])
            tile[row, :count] = u[row, begin : begin + count]
        span = cache.span(counts, width)
        with torch.no_grad():
            entries = maker(tile, span, ring)
        for row, number in enumerate(span.groups(ratio)[1].tolist()):
            made[row] += [] if entries is None else list(entries[row, :number].numpy())
        cache.advance(counts)
    return [
        (made[row], entries_by_hand(u[row, : int(cache.lengths[row])].numpy(), maker, ratio)) for row in range(rows)
    ]


def test_an_overlapping_entry_mixes_second_halves_of_its_tokens_and_first_halves_of_those_before():
    ((made, expected),) = entries_of(4, [[26]])
    assert len(made) == 6
    assert gap(made, expected) < 1e-12


def test_a_plain_entry_mixes_its_tokens_with_a_term_for_their_places():
    ((made, expected),) = entries_of(8, [[26]])
    assert len(made) == 3
    assert gap(made, expected) < 1e-12


def test_tiles_that_cut_groups_complete_the_entries_of_the_whole():
    """Rows that stand at different places of a group, and rows that get nothing."""
    tiles = [[3, 1], [1, 7], [0, 2], [9, 3], [2, 0], [1, 1], [6, 5]]
    for ratio in (4, 8):
        for made, expected in entries_of(ratio, tiles, 2):
            assert len(made) == len(expected) > 1
            assert gap(made, expected) < 1e-12


def test_seven_tokens_wait_where_groups_of_four_overlap():
    assert [waiting_tokens(ratio) for ratio in (4, 8, 128)] == [7, 7, 127]


# experts


def gate_by_hand(gate, u, config):
    """Scores √softplus(W u) of one token."""
    return np.sqrt(np.log1p(np.exp(gate.weight.detach().numpy() @ u)))


def test_a_table_chooses_the_experts_and_the_scores_weigh_them():
    config = tiny_v4()
    gate = fill(v4_experts.V4Gate(8, 3, config, True, WHERE))
    gate.tid2eid.copy_(torch.stack([(torch.arange(3) * (2 * token + 1) + token) % 8 for token in range(96)]))
    u, ids = random(4, config.dim, seed=2), torch.tensor([5, 90, 0, 5])
    with torch.no_grad():
        scores, experts, weights = gate(u, ids)
    for token in range(4):
        expected = gate_by_hand(gate, u[token].numpy(), config)
        table = [(place * (2 * int(ids[token]) + 1) + int(ids[token])) % 8 for place in range(3)]
        assert gap(scores[token], expected) < 1e-12
        assert experts[token].tolist() == table
        assert gap(weights[token], config.route_scale * expected[table] / expected[table].sum()) < 1e-12


def test_the_bias_chooses_and_the_scores_without_it_weigh():
    config = tiny_v4()
    gate = fill(v4_experts.V4Gate(8, 3, config, False, WHERE))
    with torch.no_grad():
        gate.bias.copy_(torch.tensor([3.0, 0, 0, -3, 0, 0, 3, 0]))
        u = random(5, config.dim, seed=3)
        _, experts, weights = gate(u, None)
    for token in range(5):
        expected = gate_by_hand(gate, u[token].numpy(), config)
        chosen = sorted(np.argsort(-(expected + gate.bias.numpy()))[:3].tolist())
        assert experts[token].tolist() == chosen
        assert {0, 6} <= set(chosen) and 3 not in chosen
        assert gap(weights[token], config.route_scale * expected[chosen] / expected[chosen].sum()) < 1e-12


def test_every_token_gets_its_experts_clamped_and_the_shared_one_without_a_clamp():
    """All tokens together and each alone; a clamp of 0.1 that most values exceed; padding stays zero."""
    config = tiny_v4(swiglu_limit=0.1)
    experts = fill(v4_experts.V4MoE(8, 3, config, False, WHERE), 4)
    with torch.no_grad():
        experts.gate.bias.zero_()
        u, valid = random(2, 4, config.dim, seed=5), torch.tensor([[True] * 4, [True, True, False, False]])
        got = experts(u, None, valid)
        alone = torch.stack([experts(u[:, place : place + 1])[:, 0] for place in range(4)], dim=1)
    state = {name: values.numpy() for name, values in experts.state_dict().items()}
    silu = lambda z: z / (1 + np.exp(-z))  # noqa: E731
    for row, place in valid.nonzero().tolist():
        x = u[row, place].numpy()
        scores = gate_by_hand(experts.gate, x, config)
        chosen = np.argsort(-scores)[:3]
        expected = 0
        for name, weight in [(f"experts.{e}", 1.5 * scores[e] / scores[chosen].sum()) for e in chosen]:
            first, up = (state[f"{name}.{part}.weight"] @ x for part in ("w1", "w3"))
            hidden = silu(np.minimum(first, 0.1)) * np.clip(up, -0.1, 0.1)
            expected += weight * (state[f"{name}.w2.weight"] @ hidden)
        first, up = (state[f"shared_experts.{part}.weight"] @ x for part in ("w1", "w3"))
        expected += state["shared_experts.w2.weight"] @ (silu(first) * up)
        assert gap(got[row, place], expected) < 1e-12
        assert gap(alone[row, place], expected) < 1e-12
    assert not got[~valid].any()
    assert config.route_scale == 1.5


# attention


def test_each_head_of_the_query_is_divided_by_its_own_root_mean_square():
    config = tiny_v4()
    attention = fill(v4_attention.V4Attention(config, config.schedule()[0], WHERE))
    u = random(1, 3, config.dim, seed=6)
    with torch.no_grad():
        rotation = rope.Rotation.at(torch.zeros(1, 3), config, 0, torch.float64)  # position 0 turns nothing
        narrow, queries = attention.queries(u, rotation)
    expected = rms(u.numpy() @ attention.wq_a.weight.detach().numpy().T) * attention.q_norm.weight.detach().numpy()
    assert gap(narrow, expected) < 1e-12
    heads = (expected @ attention.wq_b.weight.detach().numpy().T).reshape(1, 3, config.n_heads, -1)
    assert gap(queries, rms(heads)) < 1e-12


def test_a_query_reads_its_window_through_a_softmax_with_the_sink():
    """Ring of 8 + 5 slots, tiles that are read as slots and as a line; window of 8 from each query on back."""
    config = tiny_v4()
    sinks, scale = random(2, seed=1), 0.3
    for width, first in ((1, 0), (3, 2), (5, 9), (20, 0), (70, 3)):
        cache = V4Model(config, dtype=torch.float64).new_cache(quantized=False)
        entries, queries = random(first + width, config.head_dim), random(1, width, 2, config.head_dim, seed=2)
        ring = cache.windows[0]
        for position in range(first):
            ring.put(position, entries[position])
        cache.advance(torch.tensor([first]))
        span = cache.span(torch.tensor([width]), width)
        blocks, slots = v4_reading.query_blocks(span, cache)
        if slots:
            ring.write(span, entries[None, first:])
            line = ring.read()
        else:
            line = ring.line(span, config.window_size - 1, entries[None, first:])
        assert slots is (width <= 6)
        for block in blocks:
            some = line if block.line is None else line[:, block.line]
            keys = torch.cat([torch.zeros(1, 1, config.head_dim, dtype=torch.float64), some], dim=1)
            got = v4_reading.read(queries[:, block.queries], keys, block.window, sinks, scale)
            for place in range(*block.queries.indices(width)):
                seen = entries[max(0, first + place - 7) : first + place + 1]
                for head in range(2):
                    powers = torch.exp(scale * seen @ queries[0, place, head])
                    expected = (powers[:, None] * seen).sum(0) / (powers.sum() + torch.exp(sinks[head]))
                    assert gap(got[0, place - block.queries.start, head], expected) < 1e-12


def test_an_entry_is_hidden_until_its_group_is_complete():
    cache = V4Model(tiny_v4(), dtype=torch.float64).new_cache(quantized=False)
    cache.advance(torch.tensor([5]))
    (block,), _ = v4_reading.query_blocks(cache.span(torch.tensor([4]), 4), cache)
    own = block.window.shape[-1]
    for ratio in (4, 8):
        hidden = block.hidden(ratio, 3)[0, :, own:]
        for place in range(4):
            assert hidden[place].tolist() == [(entry + 1) * ratio > 5 + place + 1 for entry in range(3)]
        assert block.entries(ratio) == 9 // ratio


def test_index_queries_and_keys_are_spread_by_the_hadamard_matrix_before_they_are_rounded():
    """One large channel becomes equal channels, which FP4 stores without error; as it is, its neighbours are lost."""
    config = drafting_v4(head_dim=72)
    model = V4Model(config, dtype=torch.float64)
    mine = v4_attention.V4Indexer(config, WHERE)
    width = config.index_head_dim
    large = torch.zeros(1, 1, width, dtype=torch.float64)
    large[..., 3] = 8.0
    for quantized in (False, True):
        cache = model.new_cache(quantized=quantized)
        got = mine._spread(large, cache)
        matrix = v4_attention.hadamard_matrix(width, torch.float64, "cpu")
        assert gap(got, large @ matrix if quantized else large) < 1e-12
    assert gap(got.abs(), np.full((1, 1, width), 8 * width**-0.5)) < 1e-12
    assert gap(matrix @ matrix, np.eye(width)) < 1e-12


def test_a_stored_row_keeps_its_turning_channels_in_bfloat16_and_the_others_in_blocks_of_64():
    rows = V4Rows(136, 8, torch.float64)
    values = random(3, 136) * 5
    values[:, 64:128] /= 1000  # a block of its own scale
    got = rows.decode(rows.encode(values))
    turning = values[:, 128:].to(torch.bfloat16).double()
    assert torch.equal(got[:, 128:], turning)
    blocks, read = (x[:, :128].unflatten(1, (2, 64)) for x in (values, got))
    steps = blocks.abs().amax(dim=-1, keepdim=True) / 224 * 2.0**-9  # of the smallest numbers of a block, at most
    assert bool(((read - blocks).abs() <= blocks.abs() / 16 + steps / 2).all())
    assert gap(got[:, :128], values[:, :128]) > 0.01
