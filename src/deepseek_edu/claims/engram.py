"""Checks of the claims about the n-gram memory.

Sources: technical report of DeepSeek-V4.1-Flash, section 2.4.2; its released configuration and reference code.
"""

import math

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import engram
from deepseek_edu.widgets.engram_words import read


def lookups() -> int:
    """Rows that a token reads from each table."""
    config = ModelConfig.v41_flash()
    return (config.engram_max_ngram_size - 1) * config.engram_n_heads


def vocabularies() -> str:
    """Token ids and compressed ids."""
    config = ModelConfig.v41_flash()
    return f"{config.vocab_size}/{config.engram_compressed_vocab_size}"


def rows_by_plain_integers() -> bool:
    """Whether the rows of one group follow from Python's own integers."""
    config = ModelConfig.v41_flash()
    factors, primes = engram.hash_multipliers(1, config).tolist(), engram.prime_moduli(config)[1]
    ids, expected, offset, mixed = [99_091, 5, 0, 4242], [], 0, 0
    for place, (token, factor) in enumerate(zip(ids, factors, strict=True)):
        mixed ^= token * factor
        for prime in primes[place - 1] if place else ():
            expected.append(mixed % prime + offset)
            offset += prime
    rows = engram.hash_rows(np.array([ids]), np.array(factors), primes)[0].tolist()
    return rows == expected and all(factor % 2 for factor in factors)


def table_rows() -> str:
    """Sums of the primes of both layers, if all primes differ and are the configured sizes."""
    config = ModelConfig.v41_flash()
    primes = engram.prime_moduli(config)
    flat = [prime for layer in primes.values() for heads in layer for prime in heads]
    sums = tuple(sum(map(sum, layer)) for layer in primes.values())
    if len(set(flat)) != 48 or sums != tuple(config.engram_num_embeddings):
        raise AssertionError("the primes are not the configured ones")
    return "/".join(map(str, sums))


def images_block() -> bool:
    """Whether behind an image position older words are padding, and at it nothing is added."""
    run = read("one two three four five six", True)
    at = run.image
    return bool(run.blocked[at + 1, 1:].all() and not run.blocked[at + 1, 0] and not run.added[at].any())


def gate_is_a_signed_root() -> bool:
    """Whether the logit of the gate, squared with its sign, is the product again."""
    products = np.array([-9.0, -0.25, -1e-9, 0.0, 0.5, 4.0, 64.0])
    roots = [math.log(g / (1 - g)) for g in engram.gate(products).tolist()]
    wanted = [math.copysign(math.sqrt(max(abs(p), 1e-6)), p) for p in products.tolist()]
    return all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(roots, wanted, strict=True))


def toy_collision() -> int:
    """The row that both groups of the toy read."""
    (row,) = {(31 * first + second) % 101 for first, second in ((72, 18), (1, 98))}
    return row


def toy_rows() -> int:
    """Rows of the table in the widget's tiny model."""
    return sum(map(sum, read("New York", False).primes))
