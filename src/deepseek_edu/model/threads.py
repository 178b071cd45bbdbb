"""Threads of a CPU: fewer of them for short work, and pieces of long work side by side.

PyTorch cuts every operation among its threads and waits for the last of them. A forward pass is some thousand short
operations, and where another program takes one of the cores for a while, the others wait at each. Work that depends
on little else goes on instead if each thread has operations of its own: `wavefront`.

Source: our own; the order of pieces and layers is that of pipeline parallelism.
"""

import threading
from contextlib import contextmanager

import torch


@contextmanager
def limited(number):
    """Run with so many threads for each operation, None for PyTorch's number, which stands again afterwards."""
    before = torch.get_num_threads()
    if number in (None, before):
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def wavefront(grid, workers=2):
    """Run all functions grid[piece][stage]; each after the one before it in its piece and the one above it.

    Above it is the function of the same stage in the piece before. The earliest piece that can go on goes on first, and
    workers share PyTorch's threads, whose number stands again afterwards.

    Args:
        grid: lists of equally many functions without arguments.
        workers: how many functions run at the same time at most; the calling thread is one of them.

    Raises:
        What a function raises, the first that does; no function begins after it.
    """
    each = max(1, torch.get_num_threads() // workers)
    front, grads, inference = _Front(grid), torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def work():
        torch.set_num_threads(each)  # of this thread; new ones begin with PyTorch's number
        with torch.inference_mode(inference), torch.set_grad_enabled(grads):
            front.work()

    others = [threading.Thread(target=work) for _ in range(min(workers, len(grid)) - 1)]
    with limited(each):
        for thread in others:
            thread.start()
        front.work()
        for thread in others:
            thread.join()
    if front.error is not None:
        raise front.error


class _Front:
    """How far each piece has come, and which function can run next."""

    def __init__(self, grid):
        self._grid = grid
        self._done = [0] * len(grid)  # stages of each piece
        self._running = set()  # pieces
        self._changed = threading.Condition()
        self.error = None

    def work(self):
        """Run functions until there is none left to begin, or one has failed."""
        while True:
            piece = error = None
            try:
                if (piece := self._take()) is None:
                    return
                self._grid[piece][self._done[piece]]()
            except BaseException as raised:  # an interrupt too, also while it waits, must end the other threads
                error = raised
            with self._changed:
                if piece is not None:
                    self._running.discard(piece)
                    self._done[piece] += 1
                self.error = self.error or error
                self._changed.notify_all()

    def _take(self):
        """Wait for a piece that can go on, mark it as running and return its number; None at the end."""
        with self._changed:
            while self.error is None and any(done < len(self._grid[0]) for done in self._done):
                for piece, done in enumerate(self._done):
                    above = self._done[piece - 1] if piece else len(self._grid[0])
                    if piece not in self._running and done < min(above, len(self._grid[0])):
                        self._running.add(piece)
                        return piece
                self._changed.wait()
            return None
