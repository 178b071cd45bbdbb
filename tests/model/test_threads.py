"""Pieces of work side by side: order, threads, errors; and a V4 prompt that is read so."""

import signal
import threading
import time
from contextlib import contextmanager
from itertools import pairwise, product

import pytest
import torch

from deepseek_edu.model import dspark, threads, v4_model
from deepseek_edu.model.v4_model import V4Model

from ..reference.test_v4 import random_weights
from ..reference.test_v4_dspark import drafting_v4
from .tiny import gap

PIECES, STAGES = 5, 4


@contextmanager
def two_threads():
    """PyTorch works on two threads, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
        assert torch.get_num_threads() == 2, "a call has left another number behind"
    finally:
        torch.set_num_threads(before)


class Log:
    """A grid of functions that note when they begin and end; those named in `pauses` take their time."""

    def __init__(self, pauses=()):
        self.events, self.pauses = [], pauses
        self.grid = [[self._function(piece, stage) for stage in range(STAGES)] for piece in range(PIECES)]

    def _function(self, piece, stage):
        def run():
            self.events.append(("begin", piece, stage))
            time.sleep(0.02 if (piece, stage) in self.pauses else 0)
            self.events.append(("end", piece, stage))

        return run

    def at(self, *event):
        return self.events.index(event)


@two_threads()
def test_each_function_waits_for_the_one_before_it_and_the_one_above():
    held_up = ((), ((0, 1),), ((1, 0), (1, 3)), ((2, 2), (0, 0), (3, 1)))
    for workers, pauses in product((1, 2, 3), held_up):
        log = Log(pauses)
        threads.wavefront(log.grid, workers)
        assert len(log.events) == len(set(log.events)) == 2 * PIECES * STAGES
        for piece, stage in product(range(PIECES), range(STAGES)):
            if stage:
                assert log.at("end", piece, stage - 1) < log.at("begin", piece, stage)
            if piece:
                assert log.at("end", piece - 1, stage) < log.at("begin", piece, stage)


@two_threads()
def test_a_piece_goes_on_while_another_is_held_up():
    """Piece 0 waits in its stage 1 until piece 1 has run its stage 0."""
    reached, found = threading.Event(), []
    grid = [[lambda: None, lambda: found.append(reached.wait(10))], [reached.set, lambda: None]]
    threads.wavefront(grid)
    assert found == [True]


@two_threads()
def test_each_worker_has_its_share_of_the_threads_and_the_callers_modes():
    barrier, found = threading.Barrier(2, timeout=30), []

    def look():
        found.append((torch.get_num_threads(), torch.is_inference_mode_enabled(), threading.get_ident()))

    def meet():
        barrier.wait()
        look()

    with torch.inference_mode():
        threads.wavefront([[look, meet], [meet, look]])
    assert {row[:2] for row in found} == {(1, True)}
    assert len({row[2] for row in found}) == 2
    found.clear()
    threads.wavefront([[look], [look]])
    assert {row[:2] for row in found} == {(1, False)}


@two_threads()
def test_the_first_error_ends_all_work_and_reaches_the_caller():
    log = Log()

    def fail():
        raise KeyError("this one")

    log.grid[1][1] = fail
    before = threading.active_count()
    with pytest.raises(KeyError, match="this one"):
        threads.wavefront(log.grid)
    assert threading.active_count() == before
    assert ("begin", 1, 2) not in log.events
    assert ("begin", 2, 1) not in log.events


@two_threads()
def test_an_interrupt_ends_all_work_whichever_thread_computes():
    """The calling thread computes, or waits for the other one."""

    def interrupt():
        time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.05)

    before, later = threading.active_count(), []
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(6):
            grid = [[interrupt, lambda: later.append(0)], [lambda: None, lambda: later.append(1)]]
            with pytest.raises(KeyboardInterrupt):
                threads.wavefront(grid)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert later == []
    assert threading.active_count() == before


@two_threads()
def test_a_limit_of_threads_ends_with_its_block():
    with threads.limited(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with pytest.raises(KeyError), threads.limited(1):
        raise KeyError
    assert torch.get_num_threads() == 2
    with threads.limited(None):
        assert torch.get_num_threads() == 2


# a prompt of V4


def drafter(seed=0):
    config = drafting_v4(head_dim=72)
    return V4Model(config, "dspark", torch.float64).load_weights(random_weights(config, seed, dspark=True))


def prompts(*lengths):
    generator = torch.Generator().manual_seed(5)
    return [torch.randint(96, (length,), generator=generator).tolist() for length in lengths]


def test_a_prompt_read_in_pieces_side_by_side_is_the_prompt_read_at_once():
    """After a first part, so that pieces begin inside groups; then more tokens, so that all of the cache is read."""
    lengths = ((41,), (41, 7, 30), (16, 1, 33))
    for some, logits, quantized in product(lengths, ("all", "last", "none"), (False, True)):
        with pytest.MonkeyPatch.context() as patch:
            compare(some, logits, quantized, patch)


def compare(lengths, logits, quantized, patch):
    model, first, rest = drafter(), prompts(*[3] * len(lengths)), prompts(*lengths)
    calls, run = [], threads.wavefront
    patch.setattr(threads, "wavefront", lambda grid: calls.append(len(grid)) or run(grid))
    patch.setattr(v4_model, "PIECE", 9)
    patch.setattr(v4_model, "SHORTEST_PIECE", 4)
    outputs = []
    for number in (2, 1):  # with one thread it is read at once
        cache = model.new_cache(len(lengths), quantized)
        model.prefill(first, cache)
        with threads.limited(number):
            output = model.prefill(rest, cache, logits=logits)
        after = model.decode([[token, 5] for token in range(len(lengths))], cache)
        with torch.no_grad():
            draft = dspark.draft(torch.full((len(lengths),), 7), model, cache)
        outputs.append((output, after, draft, cache))
    assert calls == [-(-max(lengths) // 9)]
    (ours, after, draft, cache), (expected, expected_after, expected_draft, whole) = outputs
    assert ours.span.first.equal(expected.span.first)
    assert ours.span.counts.equal(expected.span.counts)
    assert ours.layer_tokens == expected.layer_tokens
    for name in ("lengths", "stored", "highest", "decoded"):
        assert getattr(cache, name).equal(getattr(whole, name)), name
    assert (ours.logits is None) == (logits == "none")
    valid = expected.span.valid
    for name in ("logits", "hidden", "main_hidden"):
        mine, theirs = getattr(ours, name), getattr(expected, name)
        if mine is not None:
            assert mine.shape == theirs.shape
            assert gap(*(x if x.shape[1] == 1 else x[valid] for x in (mine, theirs))) < 1e-8, name
    assert gap(after.logits, expected_after.logits) < 1e-8
    assert gap(draft.logits, expected_draft.logits) < 1e-8


@pytest.mark.parametrize("length", [1023, 1024, 1025, 3000])
@two_threads()
def test_pieces_are_two_at_least_and_no_longer_than_is_said(length, monkeypatch):
    model, cut = drafter(), []
    monkeypatch.setattr(V4Model, "_side_by_side", lambda self, ids, *rest: cut.append((ids.shape[1], rest[2])) or [])
    monkeypatch.setattr(V4Model, "forward", lambda *_, **options: None)
    monkeypatch.setattr(v4_model, "joined", lambda outputs, logits: None)
    model.prefill(prompts(length), model.new_cache(quantized=False), logits="none")
    if length < 1024:
        assert cut == []
        return
    [(columns, width)] = cut
    assert columns == length
    assert 512 <= width <= 1024
    begins = range(0, length, width)
    assert len(begins) >= 2
    assert all(b - a == width for a, b in pairwise(begins))


def test_one_thread_or_chunks_that_were_asked_for_are_not_read_side_by_side(monkeypatch):
    model = drafter()
    monkeypatch.setattr(V4Model, "_side_by_side", lambda *_: pytest.fail("read side by side"))
    monkeypatch.setattr(v4_model, "SHORTEST_PIECE", 4)
    model.prefill(prompts(20), model.new_cache(quantized=False))
    with threads.limited(2):
        model.prefill(prompts(20), model.new_cache(quantized=False), chunk=20)
