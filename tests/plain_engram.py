"""Table rows of the n-gram memory in plain integers, for the plain model."""

import numpy as np


def engram_tables(c):
    """[(multipliers, [[(prime, offset) per head] per order])] per module, primes by trial division."""
    used, tables = set(), []
    for layer in c.engram_layer_ids:
        bound = (2**63 - 1) // c.engram_compressed_vocab_size // 2
        draws = np.random.default_rng(10007 * layer).integers(0, bound, c.engram_max_ngram_size, dtype=np.int64)
        orders, offset = [], 0
        for _ in range(c.engram_max_ngram_size - 1):
            heads, number = [], c.engram_vocab_size
            while len(heads) < c.engram_n_heads:
                if number > 1 and number not in used and all(number % d for d in range(2, number)):
                    used.add(number)
                    heads.append((number, offset))
                    offset += number
                number += 1
            orders.append(heads)
        tables.append(([2 * int(m) + 1 for m in draws], orders))
    return tables


def engram_rows(history, pad, tables):
    """The rows of the newest token in every module; history: compressed ids, None inside image spans."""
    found = []
    for multipliers, orders in tables:
        past = list(reversed(history[-len(multipliers) :]))
        past = past[: past.index(None)] if None in past else past
        past += [pad] * (len(multipliers) - len(past))
        mixed, rows = past[0] * multipliers[0], []
        for token, multiplier, heads in zip(past[1:], multipliers[1:], orders, strict=True):
            mixed ^= token * multiplier
            rows += [mixed % prime + offset for prime, offset in heads]
        found.append(rows)
    return found
