"""How long does one more token take when the context doubles? The small attention model, with and without its cache.

    python -m deepseek_edu.experiments.kv_time [--seed 1] [--out assets/runs/kv_time.json]

The model is `reference.toy_attention` in float32, one layer of width 32. A step with the cache processes one token
behind `context` others whose keys and values are kept; a step without it processes all of them again. Time is the
processor time of one thread: other work on the machine is not counted, but shares its memory and its caches, so the
lowest of several batches stands for the step. What the model's own code costs is counted: the interpreter's share, and
the copy that `Cache.append` makes of the whole cache.

Evidence label of every number here: measured. Not measured: the released model, a GPU, many requests at once.
"""

import os
import subprocess
import sys
from statistics import median
from time import process_time

import numpy as np

from deepseek_edu.experiments.record import chart, parser, significant, surroundings, write_record
from deepseek_edu.reference import toy_attention

SEED = 1
CONTEXTS = tuple(2**k for k in range(7, 17))
LONGEST_WITHOUT = 2048
"""Without a cache memory grows with the square of the context; longer ones are not run."""

BATCHES = 7
LEAST_SECONDS = 0.05
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COLUMNS = (
    "tokens before the new one",
    "bytes in the cache",
    "with the cache (µs)",
    "times half the context",
    "without it (µs)",
    "times half the context, without",
    "median batch, with (µs)",
)
NOT_RUN = "not run"


def _given(context, seed):
    """Weights, and random ids of `context` tokens and the one behind them."""
    w = toy_attention.random_weights(seed, max_positions=context + 1)
    return w, np.random.default_rng(seed).integers(0, 256, context + 1)


def filled(context, seed=SEED):
    """Return a cache of `context` tokens: keys and values of the model for random ids, float32 [context 32] each."""
    w, ids = _given(context, seed)
    x = w.embed[ids[:context]] + w.positions[:context]  # T C
    cache = toy_attention.Cache()
    cache.append(toy_attention.project(x, w.key), toy_attention.project(x, w.value))
    return cache


def steps(context, seed=SEED):
    """Return two functions that compute the logits of the token behind `context` others: with the cache, without it.

    Each gives [T 256]; the last row is that of the new token.
    """
    w, ids = _given(context, seed)
    cache = filled(context, seed)
    keys, values = cache.keys, cache.values

    def kept():
        cache.keys, cache.values = keys, values  # as before the step; nothing is copied here
        return toy_attention.forward(ids[context:], w, cache)[0]

    def anew():
        return toy_attention.forward(ids, w, toy_attention.Cache())[0]

    return kept, anew


def seconds(function, batches=BATCHES, least=LEAST_SECONDS):
    """Return the processor time of one call: a number for each batch, a batch so many calls that it takes `least`."""
    function()
    calls = 1
    while _batch(function, calls) < least:
        calls *= 2
    return [_batch(function, calls) / calls for _ in range(batches)]


def _batch(function, calls):
    start = process_time()
    for _ in range(calls):
        function()
    return process_time() - start


def measure(seed=SEED, contexts=CONTEXTS, batches=BATCHES, least=LEAST_SECONDS):
    """Return {context: (seconds with the cache, seconds without it or None)}, a list of batches each."""
    measured = {}
    for context in contexts:
        kept, anew = steps(context, seed)
        without = seconds(anew, batches, least) if context <= LONGEST_WITHOUT else None
        measured[context] = (seconds(kept, batches, least), without)
    return measured


def table(measured):
    """Return the rows of the record: lowest batches in microseconds, and how often that of half the context."""
    rows = []
    for context, (kept, anew) in measured.items():
        half = measured.get(context // 2)
        row = [context, filled(context).nbytes, _microseconds(min(kept))]
        row.append(significant(min(kept) / min(half[0]), 3) if half else "")
        row.append(_microseconds(min(anew)) if anew else NOT_RUN)
        row.append(significant(min(anew) / min(half[1]), 3) if anew and half else "" if anew else NOT_RUN)
        rows.append([*row, _microseconds(median(kept))])
    return rows


def _microseconds(time):
    rounded = significant(1e6 * time, 3)
    return int(rounded) if rounded >= 100 else rounded


def curves(rows):
    """Return a line chart of both times over the context, both axes logarithmic."""
    lines = []
    for name, column in (("with the cache", 2), ("without it", 4)):
        there = [row for row in rows if row[column] != NOT_RUN]
        lines.append((name, [row[0] for row in there], [row[column] for row in there]))
    ends = "; ".join(
        f"{name} from {times[0]:g} µs at {contexts[0]} tokens to {times[-1]:g} µs at {contexts[-1]}"
        for name, contexts, times in lines
    )
    title, x, y = "Processor time of one more token", ("tokens before the new one", "log"), ("microseconds", "log")
    return chart(title, f"One more token takes, {ends}.", x, y, "line", lines)


def run(seed=SEED, contexts=CONTEXTS, batches=BATCHES, least=LEAST_SECONDS):
    """Return the whole record."""
    rows = table(measure(seed, contexts, batches, least))
    return {
        "id": "kv_time",
        "title": "Time of one more token, with and without a cache",
        "label": "measured",
        "command": f"python -m deepseek_edu.experiments.kv_time --seed {seed}",
        "seed": seed,
        "model": "small attention model of this course, one layer of width 32, float32, random weights",
        **surroundings(),
        "columns": list(COLUMNS),
        "rows": rows,
        "notes": [
            f"Lowest of {batches} batches of processor time, one thread. Other work on the machine is not counted, but "
            "shares its memory and its caches.",
            "A step of NumPy code has a fixed part of its own, nearly all of the time at short contexts. The cache of "
            "this model is copied when a token is appended; that is counted too.",
            f"Without a cache memory grows with the square of the context: not run beyond {LONGEST_WITHOUT} tokens.",
        ],
        "charts": [curves(rows)],
    }


def main(arguments=None):
    """Measure, print the table and write the record."""
    options = parser("kv_time", __doc__, SEED).parse_args(arguments)
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # read when NumPy is loaded
        again = [sys.executable, "-m", __spec__.name, "--seed", str(options.seed), "--out", str(options.out)]
        raise SystemExit(subprocess.run(again, env={**os.environ, **ONE_THREAD}, check=False).returncode)
    record = run(options.seed)
    for row in record["rows"]:
        print(f"{row[0]:>6} tokens  with {row[2]:>7} µs ×{row[3]!s:<5}  without {row[4]!s:>8} µs ×{row[5]}")
    write_record(record, options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
