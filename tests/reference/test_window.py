"""Window positions and the ring that keeps them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepseek_edu.reference import storage, window

from .tiny import vectors


def ring(size, spare=0):
    return window.Ring(storage.PlainRows(1, np.int64), size, spare)


def write(target, positions):
    target.write(target.row_format.encode(np.array(positions)[:, None]))


def test_a_prefill_of_six_with_window_four_sees_the_recorded_positions():
    recorded = vectors()["window_idx_prefill_w4_s6"]
    got = window.window_table(np.arange(6), 4)
    assert [[p for p in row if p >= 0] for row in got.tolist()] == [[p for p in row if p >= 0] for row in recorded]
    assert [window.window_positions(p, 4).tolist() for p in range(6)] == [
        [p for p in row if p >= 0] for row in recorded
    ]


def test_decode_reads_the_recorded_slots_oldest_first():
    for position, rows in vectors()["window_idx_decode_w4"].items():
        assert window.ring_slots(int(position), 4).tolist() == rows[0]


def test_a_query_sees_exactly_window_positions_its_own_included():
    table = window.window_table([200], 128)[0]
    assert (len(table), table.min(), table.max()) == (128, 73, 200)


def test_nothing_before_the_start_is_seen():
    assert window.window_table([6], 4, start=5).tolist() == [[-1, -1, 5, 6]]


@given(st.integers(1, 6), st.integers(0, 3), st.lists(st.integers(1, 9), max_size=8))
def test_a_ring_always_holds_what_the_next_query_reads(size, spare, pieces):
    target, end = ring(size, spare), 0
    for piece in pieces:
        write(target, range(end, end + piece))
        end += piece
    first, rows = target.latest()
    assert rows[:, 0].tolist() == list(range(max(0, end - size + 1), end))
    assert first == max(0, end - size + 1)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 20), st.data())
def test_positions_taken_back_leave_no_trace(size, spare, start, data):
    target = ring(size, spare)
    write(target, range(start)) if start else None
    tried = data.draw(st.integers(1, spare))
    write(target, range(1000, 1000 + tried))
    target.rollback(start)
    first, rows = target.latest()
    assert rows[:, 0].tolist() == list(range(max(0, start - size + 1), start))
    assert first + len(rows) == start


def test_more_than_the_spare_positions_cannot_be_taken_back_even_in_steps():
    target = ring(4, spare=2)
    write(target, range(10))
    target.rollback(9)
    target.rollback(8)
    with pytest.raises(ValueError, match="end must be 8 … 8; got 7"):
        target.rollback(7)


def test_reading_what_was_overwritten_is_an_error():
    target = ring(4)
    write(target, range(10))
    assert target.read(6, 10)[:, 0].tolist() == [6, 7, 8, 9]
    with pytest.raises(IndexError, match="the ring holds 6 … 9"):
        target.read(5, 10)
    with pytest.raises(IndexError):
        target.read(8, 11)


def test_a_restarted_ring_begins_at_its_position():
    target = ring(4)
    write(target, range(10))
    target.restart(20)
    write(target, [20, 21])
    assert (target.latest()[0], target.latest()[1][:, 0].tolist()) == (20, [20, 21])


def test_the_bytes_of_a_released_window():
    target = window.Ring(storage.FP8Rows(512), 128, spare=5)
    assert (target.nbytes, target.spare_nbytes) == (128 * 528, 5 * 528)
