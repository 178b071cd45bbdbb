"""Why a quantised V4 cache tells the two ways of a decode step apart: numbers that lie at the edge between two codes.

`v4_step.py` and the layers for many tokens add in another order, so what they store differs by some 1e-7 before it is
rounded. Where an edge lies in between, the codes differ by one step, and a step is up to 1/128 of a number in bfloat16,
1/8 in E4M3 and 1/2 in E2M1: logits of size 8 then differ by up to 2e-2. If that is all, then

    given the codes of the other way, the logits agree as they do without rounding;
    codes that differ are neighbours, and few;
    in float64, where numbers differ by 1e-16, no code differs.
"""

import torch

from deepseek_edu.model import v4_step
from deepseek_edu.model.v4_model import V4Model

from ..reference.test_v4 import random_weights
from ..reference.test_v4_dspark import drafting_v4
from .tiny import gap

PROMPT, STEPS = 21, 80
SUMS = 2e-5
"""What another order of sums makes of logits of size 8 in float32; 8e-6 is what was seen."""


def model_of(dtype):
    config = drafting_v4(head_dim=136)  # 128 channels in E4M3, 8 in bfloat16, index keys in E2M1
    return V4Model(config, "dspark", dtype).load_weights(random_weights(config, 0, dspark=True))


class Codes:
    """What the row formats of a cache make of the numbers they are given, in order; or what another's have made.

    Attributes:
        made: list of (name of the format, parts that it made itself).
    """

    def __init__(self, cache, given=None):
        self.made, self.given = [], given
        for name in ("entry_format", "index_format"):  # windows share the format of entries
            self._listen(name, getattr(cache, name))

    def _listen(self, name, row_format):
        encode = row_format.encode

        def listening(values):
            parts = encode(values)
            self.made.append((name, [part.clone() for part in parts]))
            if self.given is None:
                return parts
            kind, others = self.given[len(self.made) - 1]
            assert kind == name
            return [other.view(part.shape) for other, part in zip(others, parts, strict=True)]

        row_format.encode = listening


def steps_of(model, one_token, monkeypatch, given=None):
    """(logits [STEPS V], Codes) of decode steps of one token, by v4_step.py or by the layers for many tokens."""
    ids = torch.arange(PROMPT + STEPS)[None] * 7 % model.config.vocab_size
    cache = model.new_cache()
    model.prefill(ids[:, :PROMPT], cache)
    codes = Codes(cache, given)
    with monkeypatch.context() as patch:
        calls, run = [], v4_step.Step.layer
        patch.setattr(v4_step.Step, "layer", lambda *some: calls.append(some) or run(*some))
        if not one_token:
            patch.setattr(v4_step, "fits", lambda *_: False)
        logits = [model.decode(ids[:, place], cache).last[0] for place in range(PROMPT, PROMPT + STEPS)]
        assert bool(calls) is one_token
    return torch.stack(logits), codes


def numbers(name, parts):
    """The codes of a row as integers that rise with what they mean, by part: neighbours differ by one."""
    if name == "index_format":  # two codes in a byte
        return [rising(torch.stack([parts[0] & 15, parts[0] >> 4]).int(), 8), parts[1].int()]
    codes, turning, scales = parts
    return [rising(codes.int(), 128), rising(turning.view(torch.int16).int() & 0xFFFF, 1 << 15), scales.int()]


def rising(codes, sign):
    """Codes of sign and size as signed numbers."""
    return torch.where(codes >= sign, sign - codes, codes)


def test_in_float64_both_ways_store_the_same_bytes(monkeypatch):
    model = model_of(torch.float64)
    (one, mine), (many, theirs) = (steps_of(model, way, monkeypatch) for way in (True, False))
    assert gap(one, many) < 1e-8
    assert len(mine.made) == len(theirs.made) > 2 * STEPS
    for (_, parts), (_, others) in zip(mine.made, theirs.made, strict=True):
        assert all(torch.equal(part.flatten(), its.flatten()) for part, its in zip(parts, others, strict=True))


def test_in_float32_codes_at_an_edge_are_all_that_tells_the_ways_apart(monkeypatch):
    model = model_of(torch.float32)
    many, theirs = steps_of(model, False, monkeypatch)
    one, mine = steps_of(model, True, monkeypatch, theirs.made)
    alone, _ = steps_of(model, True, monkeypatch)
    assert gap(one, many) < SUMS
    other, total = 0, 0
    for (name, parts), (_, others) in zip(mine.made, theirs.made, strict=True):
        for part, its in zip(numbers(name, parts), numbers(name, others), strict=True):
            apart = (part.flatten() - its.flatten()).abs()
            assert apart.max() <= 1
            other, total = other + int(apart.sum()), total + apart.numel()
    assert 0 < other < total / 1000
    assert gap(alone, many) > 3 * SUMS  # nobody hands the codes on
