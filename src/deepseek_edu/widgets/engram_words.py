"""The sentence of the `engram` widget: a small vocabulary, and what the tiny model's n-gram memory makes of it.

Every word is a token. The vocabulary is fixed; a word it lacks takes the next free number for as long as it stands in
the sentence. The model is the tiny one, eight numbers wide, with seeded random weights: layer 0, then the memory that
stands before layer 1.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import block, csa2, engram, mhc, moe, norms, weights
from deepseek_edu.reference import model as models

from .memo import remembered
from .tiny_models import toy_config

SIZE = 96
WIDTH = 8
LAYER = 1
MOST_WORDS = 8
SEED = 7
SPECIAL = ("<begin>", "<end>", "<pad>")
_LINES = (
    "I love New York City and the of in a to is was The new york city Love And In by way ice cream Ice café Café cafe",
    "San Francisco Los Angeles São Paulo Alexander Great Princess Wales you we she he they my your not never always",
    "like read memory model word state layer token apple river street park bridge old big small red blue green",
    "winter summer night day good bad",
)
KNOWN = (*SPECIAL, *(word for line in _LINES for word in line.split()))


class Vocabulary:
    """What `compressed_token_map` asks of a tokenizer, for a list of words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def decode(self, ids, skip_special_tokens=True) -> str:
        return "".join(map(self.id_to_token, ids))

    def id_to_token(self, token: int) -> str:
        return self.words[token] if token < len(self.words) else f"<unused {token}>"


@dataclass(frozen=True)
class Read:
    """A sentence and everything the memory made of it, position by position.

    T positions, S streams, G the longest group, R rows for each position, D numbers in a row, C the width.
    """

    words: tuple[str, ...]
    ids: np.ndarray  # T
    compressed: np.ndarray  # T
    image: int | None  # the position that is part of an image
    history: np.ndarray  # T G, newest first
    blocked: np.ndarray  # T G, where padding stands for what was there or was not there
    rows: np.ndarray  # T R
    primes: list  # orders, heads
    vectors: np.ndarray  # T R D
    keys: np.ndarray  # T S C
    value: np.ndarray  # T C
    before: np.ndarray  # T S C
    dots: np.ndarray  # T S
    added: np.ndarray  # T S C
    gates: np.ndarray  # T S
    pad: int

    def text(self, position: int) -> list[str]:
        """The words of the longest group at a position, oldest first; "pad" where there is none."""
        back = range(self.history.shape[1] - 1, -1, -1)
        return ["pad" if self.blocked[position, k] else self.words[position - k] for k in back]


@remembered(1)
def _settings():
    """The tiny model's first two layers, narrower, with room for the words."""
    names = {"dim": WIDTH, "engram_head_dim": WIDTH, "vocab_size": SIZE, "engram_compressed_vocab_size": SIZE}
    config = toy_config(LAYER + 1, 8, **names)
    return config, weights.random_weights(config, SEED)


@remembered(8)
def _model(words: tuple[str, ...]) -> models.Model:
    config, numbers = _settings()
    return models.Model(config, numbers, engram.compressed_token_map(Vocabulary(words), SIZE))


def _entering(model: models.Model, ids: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The streams that leave layer 0, where the memory finds them: [T S C]."""
    config, plan, parts = model.config, model.plans[0], model.layer_parts[0]
    streams = np.repeat(model.embed[ids][:, None], config.hc_mult, axis=1)
    cache = model.new_cache(quantized=False)

    def attend(u):
        return csa2.attend(u, 0, parts["attn"], plan, cache, model.frequencies[0], csa2.Published())

    def feed(u):
        return moe.moe(u, parts["ffn"], config.n_activated_experts, config, mask)

    streams, _ = block.block(streams, mhc.one_hot(len(ids), config.hc_mult), model.layers[0], attend, feed, config)
    return streams


@remembered(32)
def read(sentence: str, image: bool) -> Read:
    """Send a sentence through layer 0 and the memory of layer 1."""
    spoken = tuple(sentence.split())
    words = (*KNOWN, *dict.fromkeys(word for word in spoken if word not in KNOWN))
    model = _model(words)
    config, hashing = model.config, model.hash
    ids = np.array([words.index(word) for word in spoken])
    place = len(spoken) // 2 if image else None
    mask = None
    if image:
        mask = np.arange(len(spoken)) == place
        ids[place] = config.image_token_id
    compressed = hashing.compress(ids, mask)
    nothing = [engram.NO_TOKEN] * (hashing.size - 1)
    history = engram.ngram_history(compressed, nothing, hashing.size, hashing.pad)
    blocked = engram.ngram_history(compressed, nothing, hashing.size, engram.NO_TOKEN) == engram.NO_TOKEN
    rows = hashing.rows(compressed)[:, 0]
    before, w = _entering(model, ids, mask), model.layer_parts[LAYER]["engram"]
    added = engram.engram(before, rows, w, config, mask) - before
    vectors = w["embed.weight"][rows] * w["embed.scale"][rows]
    made = (vectors.reshape(len(ids), -1) @ w["wkv.weight"].T).reshape(len(ids), -1, WIDTH)
    keys, value = made[:, :-1], made[:, -1]
    sizes = norms.reciprocal_rms(before, config.norm_eps) * norms.reciprocal_rms(keys, config.norm_eps)
    dots = (before * w["q_weight"] * w["k_weight"] * keys).sum(-1) * sizes[..., 0] / WIDTH**0.5
    gates = (added * value[:, None]).sum(-1) / (value * value).sum(-1)[:, None]
    return Read(
        spoken, ids, compressed, place, history, blocked, rows, hashing.primes[LAYER], vectors, keys, value, before,
        dots, added, gates, hashing.pad,
    )  # fmt: skip
