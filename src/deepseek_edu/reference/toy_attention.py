"""A small attention model with a KV cache: one causal layer of one head, to be read in a minute.

It is a teaching model, no part of DeepSeek-V4.1: it has learned positions instead of rotations, keys and values apart,
and nothing behind its attention. Its weights are random, so its logits predict nothing; they are still the same numbers
whether keys and values are kept or made again, and that is what it is for.

    ids [T] -> embedding + position -> x [T C] -> query, key, value [T C] -> attention -> output + x -> logits [T V]

The cache is float32: a token leaves a key and a value in it, 2 · 32 numbers · 4 bytes = 256 bytes. Arithmetic has the
type of the weights.

Source: our own; the functions are textbook.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import activations


@dataclass(frozen=True)
class Weights:
    """All parameters: the same for every prompt."""

    embed: np.ndarray  # [V C], also the output matrix
    positions: np.ndarray  # [P C]
    query: np.ndarray  # [C C]
    key: np.ndarray  # [C C]
    value: np.ndarray  # [C C]
    output: np.ndarray  # [C C]


def random_weights(seed=0, vocabulary=256, width=32, max_positions=64, dtype=np.float32):
    """Return random Weights, numbers of float32 kept as `dtype`, the same for the same seed.

    Args:
        seed: of all draws.
        vocabulary: V; width: C; max_positions: P.
        dtype: NumPy type of the result.

    >>> sum(array.size for array in vars(random_weights()).values())
    14336
    """
    rng = np.random.default_rng(seed)
    shapes = [(vocabulary, width), (max_positions, width), *[(width, width)] * 4]
    drawn = [rng.standard_normal(shape, np.float32) for shape in shapes]
    drawn[1] /= 2  # a position weighs less than what stands there
    drawn[2:] = [matrix / np.float32(width**0.5) for matrix in drawn[2:]]  # keep the size of what passes through
    return Weights(*(array.astype(dtype) for array in drawn))


class Cache:
    """Keys and values of the tokens that have been processed.

    Args:
        width: C, numbers in a key and in a value.
    """

    def __init__(self, width=32):
        self.keys = np.zeros((0, width), np.float32)  # [T C]
        self.values = np.zeros((0, width), np.float32)  # [T C]

    def __len__(self):
        return len(self.keys)

    @property
    def nbytes(self):
        """Bytes of all keys and values."""
        return self.keys.nbytes + self.values.nbytes

    def append(self, keys, values):
        """Add rows [T C] behind those there are."""
        self.keys = np.concatenate([self.keys, keys.astype(np.float32)])
        self.values = np.concatenate([self.values, values.astype(np.float32)])


def first_position(cached):
    """Return the position of the next token when `cached` tokens are in the cache: positions count from 0."""
    return cached


def first_position_off_by_one(cached):
    """A common mistake: the position of the last of `cached` tokens. In a prefill nobody can see it."""
    return max(0, cached - 1)


def project(x, weight):
    """Return x W: [T D] from rows [T C] and a matrix [C D].

    >>> project(np.array([[2.0, 3.0]]), np.array([[1.0], [2.0]])).tolist()
    [[8.0]]
    """
    return x @ weight


def attention_scores(queries, keys):
    """Return how well each query fits each key: q · k / √C, [T N] from [T C] and [N C]."""
    return queries @ keys.T / queries.dtype.type(queries.shape[-1] ** 0.5)


def attention_weights(queries, keys, start):
    """Return what each query takes of each key: [T N], rows sum to 1.

    Args:
        queries: [T C] of the tokens at positions start … start + T − 1 of the sequence.
        keys: [N C], N = start + T.
        start: number of keys before the first query; a query sees these, and new ones up to its own.
    """
    later = np.arange(keys.shape[0]) > start + np.arange(len(queries))[:, None]  # T N
    return activations.softmax(np.where(later, -np.inf, attention_scores(queries, keys)))


def forward(ids, w, cache, position=None):
    """Process the next tokens of a sequence.

    Args:
        ids: [T] integers below the size of the vocabulary, 1 or more.
        w: Weights.
        cache: Cache of the tokens before; grows by T.
        position: function (tokens in the cache) -> position of the first new token; `first_position` by default.

    Returns:
        logits [T V] and attention weights [T N].
    """
    ids, start = np.asarray(ids), len(cache)
    first = (position or first_position)(start)
    x = w.embed[ids] + w.positions[first : first + len(ids)]  # T C
    cache.append(project(x, w.key), project(x, w.value))
    taken = attention_weights(project(x, w.query), cache.keys, start)  # T N
    hidden = x + project(taken @ cache.values, w.output)  # T C
    return hidden @ w.embed.T / hidden.dtype.type(hidden.shape[-1] ** 0.5), taken


def later_keys(tokens):
    """Return which keys stand after each query of a prompt, and so are hidden by the causal mask: bool [T T].

    >>> later_keys(3).astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    return np.arange(tokens) > np.arange(tokens)[:, None]


def in_slow_motion(ids, w, causal=True):
    """Process a prompt as `forward` does, and keep every array on the way.

    Args:
        ids: [T] integers below the size of the vocabulary.
        w: Weights.
        causal: whether the mask hides later keys; without it the model is another one, which no cache can serve.

    Returns:
        dict, in the order of computation: "embedding", "position", "x", "query", "key", "value" [T C]; "score",
        "masked", "weight" [T T]; "mixed", "hidden" [T C]; "logits" [T V].
    """
    a = {"embedding": w.embed[np.asarray(ids)], "position": w.positions[: len(ids)]}
    a["x"] = a["embedding"] + a["position"]
    a["query"], a["key"], a["value"] = (project(a["x"], matrix) for matrix in (w.query, w.key, w.value))
    a["score"] = attention_scores(a["query"], a["key"])
    a["masked"] = np.where(later_keys(len(ids)), -np.inf, a["score"]) if causal else a["score"]
    a["weight"] = activations.softmax(a["masked"])
    a["mixed"] = project(a["weight"] @ a["value"], w.output)
    a["hidden"] = a["x"] + a["mixed"]
    a["logits"] = a["hidden"] @ w.embed.T / a["hidden"].dtype.type(a["hidden"].shape[-1] ** 0.5)
    return a


def step_work(context, cached, vocabulary=256, width=32):
    """Return the multiplications for the logits of one more token when `context` tokens stand before it.

    Args:
        context: tokens before the new one, 0 or more.
        cached: whether their keys and values are kept; otherwise all of it is computed again.
        vocabulary: V; width: C.

    Returns:
        {"projections", "attention", "logits"}: four projections of width², scores and mixture of 2·width per key that
        is read, one row of logits.
    """
    tokens = 1 if cached else context + 1
    read = context + 1 if cached else (context + 1) * (context + 2) // 2
    return {"projections": 4 * width**2 * tokens, "attention": 2 * width * read, "logits": vocabulary * width}
