"""Engram: a memory addressed by the last few tokens themselves, read in two early layers.

The ids of the tokens at t, t − 1, … are multiplied by fixed odd numbers and XOR-ed to one integer per n-gram order
(2, 3, 4). Its remainders modulo several primes are row numbers of a large table; the rows, concatenated, are projected
to one value and one key per residual stream. A gate compares key and stream and decides how much of the value enters.

Ids are "compressed" first: tokens whose text differs only in case, accents or spaces share one id. A token inside an
image span is no text: it and everything before it count as padding for later tokens, and nothing is added at it.

Source: report, section 2.4.2; reference `engram.py`; the hash equals that of the public demo at the same sizes.
"""

import unicodedata

import numpy as np

from deepseek_edu.reference import activations, linear, norms

NO_TOKEN = -1
"""Compressed id of a position without text: before the beginning, or inside an image span."""


# Compressed tokens


BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""Characters with the Unicode property White_Space; Python's own `strip` would take four more."""


def normalised_text(text):
    """Return the text under which tokens are merged; the original where nothing would be left.

    NFKC, NFD, all marks off (accents, but vowel signs of Indic scripts too), lower case letter by letter, runs of
    blanks to one space, blanks at the ends off (a lone space stays). The same as the sequence of normalisers of the
    `tokenizers` library that the public demo uses, but for characters that only one of the two libraries knows.

    >>> normalised_text("  Café"), normalised_text(" "), normalised_text("\u0301") == "\u0301"
    ('cafe', ' ', True)
    """
    changed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    changed = "".join(c.lower() for c in changed if not unicodedata.category(c).startswith("M"))
    pieces, blank = [], False
    for character in changed:
        if character not in " \t\r\n":
            pieces.append(character)
        elif not blank:
            pieces.append(" ")
        blank = character in " \t\r\n"
    changed = "".join(pieces)
    changed = " " if changed == " " else changed.strip(BLANKS).replace("\ue000", " ")  # the stand-in of a lone space
    return changed or text


def compressed_token_map(tokenizer, vocab_size, expected=None):
    """Return the compressed id of every token id: int64 [V], numbered in order of first appearance.

    Args:
        tokenizer: an object with `decode(ids, skip_special_tokens=False) -> str` and `id_to_token(id) -> str`, such as
            a `tokenizers.Tokenizer`. Decoding must not tidy spaces.
        vocab_size: ids 0 … vocab_size − 1 are mapped.
        expected: how many compressed ids there must be, `engram_compressed_vocab_size` of a configuration; None to
            take what comes.

    Raises:
        ValueError: there are more or fewer; the multipliers of the hash depend on the number.
    """
    numbers, ids = {}, []
    for token in range(vocab_size):
        text = tokenizer.decode([token], skip_special_tokens=False)
        key = tokenizer.id_to_token(token) if "\ufffd" in text else normalised_text(text)
        ids.append(numbers.setdefault(key, len(numbers)))
    if expected is not None and len(numbers) != expected:
        raise ValueError(
            f"the tokenizer must give {expected} compressed ids; it gives {len(numbers)}; it is not the tokenizer of "
            "this configuration, or its decoder tidies spaces"
        )
    return np.array(ids, np.int64)


# The hash


def prime_moduli(config):
    """Return the table sizes: {layer: [orders][heads] primes}, all different, the first above engram_vocab_size − 1.

    >>> from deepseek_edu.config import ModelConfig
    >>> prime_moduli(ModelConfig.tiny())
    {1: [[53, 59], [61, 67], [71, 73]], 2: [[79, 83], [89, 97], [101, 103]]}
    """
    used = set()

    def next_prime(number):
        number += 1
        while number in used or not _is_prime(number):
            number += 1
        used.add(number)
        return number

    primes = {}
    for layer in config.engram_layer_ids:
        primes[layer] = []
        for _ in range(config.engram_max_ngram_size - 1):
            number, heads = config.engram_vocab_size - 1, []
            for _ in range(config.engram_n_heads):
                number = next_prime(number)
                heads.append(number)
            primes[layer].append(heads)
    return primes


def _is_prime(number):
    if number < 2:
        return False
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def hash_multipliers(layer, config):
    """Return one odd int64 per position of the longest n-gram, so small that no product overflows.

    They are drawn by NumPy's default generator, seeded by the layer's number. A salted hash such as Python's `hash` of
    a string would differ from run to run.
    """
    bound = (2**63 - 1) // config.engram_compressed_vocab_size // 2
    draws = np.random.default_rng(10007 * layer).integers(0, bound, config.engram_max_ngram_size, dtype=np.int64)
    return draws * 2 + 1  # G


def ngram_history(ids, previous, size, pad):
    """Return, for each token, its own id and those of the size − 1 tokens before it.

    Args:
        ids: compressed ids [T], NO_TOKEN inside image spans.
        previous: compressed ids of the size − 1 positions before, NO_TOKEN where there is none.
        size: longest n-gram.
        pad: compressed id that stands for "no token".

    Returns:
        int64 [T size], newest first. Behind a NO_TOKEN everything older is padding as well.

    >>> ngram_history(np.array([5, NO_TOKEN, 7, 8]), [NO_TOKEN] * 2, 3, 0).tolist()
    [[5, 0, 0], [0, 0, 0], [7, 0, 0], [8, 7, 0]]
    """
    line = np.concatenate([np.asarray(previous, np.int64), np.asarray(ids, np.int64)])
    table = np.stack([line[size - 1 - k : len(line) - k] for k in range(size)], axis=-1)  # T size
    blocked = np.logical_or.accumulate(table == NO_TOKEN, axis=-1)
    return np.where(blocked, pad, table)


def hash_rows(history, multipliers, primes):
    """Return the table rows of each token.

    Args:
        history: int64 [T G], from `ngram_history`.
        multipliers: int64 [G].
        primes: [orders][heads], orders = G − 1.

    Returns:
        int64 [T orders·heads], order by order; each prime has its own stretch of the table.
    """
    rows, offset = [], 0
    mixed = history[:, 0] * multipliers[0]  # T
    for order, moduli in enumerate(primes, start=1):
        mixed = mixed ^ (history[:, order] * multipliers[order])
        for prime in moduli:
            rows.append(mixed % prime + offset)
            offset += prime
    return np.stack(rows, axis=-1)


class EngramHash:
    """Tokens to table rows, for all Engram modules of a model.

    Args:
        config: ModelConfig.
        token_map: compressed id of each token id [V], below engram_compressed_vocab_size.

    Raises:
        ValueError: the map does not fit the configuration, or the primes do not add up to its tables.
    """

    def __init__(self, config, token_map):
        token_map = np.asarray(token_map)
        self.layers = config.engram_layer_ids
        self.size = config.engram_max_ngram_size
        shape, bound = (config.vocab_size,), config.engram_compressed_vocab_size
        if token_map.dtype.kind not in "iu" or token_map.shape != shape:
            raise ValueError(f"token_map must be integers {shape}; got {token_map.dtype} {token_map.shape}")
        if token_map.min() < 0 or token_map.max() >= bound:
            raise ValueError(
                f"token_map must hold ids 0 … {bound - 1}; got {token_map.min()} … {token_map.max()}; the multipliers "
                "depend on their number"
            )
        self.token_map = token_map.astype(np.int64)
        self.pad = int(self.token_map[config.engram_pad_id])
        self.primes = prime_moduli(config)
        self.multipliers = {layer: hash_multipliers(layer, config) for layer in self.layers}
        self.table_rows = tuple(sum(map(sum, self.primes[layer])) for layer in self.layers)
        if config.engram_num_embeddings and self.table_rows != config.engram_num_embeddings:
            raise ValueError(
                f"engram_num_embeddings must be {self.table_rows}, the sums of the primes; "
                f"got {config.engram_num_embeddings}"
            )

    def compress(self, ids, image_mask=None):
        """Return compressed ids [T] of token ids [T], NO_TOKEN where image_mask (bool [T]) is set.

        Raises:
            ValueError: ids are no integers, or outside the map.
        """
        ids, last = np.asarray(ids), len(self.token_map) - 1
        if ids.dtype.kind not in "iu" or np.any((ids < 0) | (ids > last)):
            found = ids.dtype if ids.dtype.kind not in "iu" else f"{ids.min()} … {ids.max()}"
            raise ValueError(f"ids must be integers 0 … {last}; got {found}; mark tokens of images in image_mask")
        compressed = self.token_map[ids]
        return compressed if image_mask is None else np.where(image_mask, NO_TOKEN, compressed)

    def rows(self, compressed, previous=None):
        """Return the rows of all modules: int64 [T modules orders·heads].

        Args:
            compressed: [T], from `compress`.
            previous: the size − 1 compressed ids before, or None at the beginning of a sequence.
        """
        if previous is None:
            previous = [NO_TOKEN] * (self.size - 1)
        history = ngram_history(compressed, previous, self.size, self.pad)
        modules = [hash_rows(history, self.multipliers[layer], self.primes[layer]) for layer in self.layers]
        return np.stack(modules, axis=1)


# The read


def gate(dot):
    """Return σ(±sqrt(max(|dot|, 1e-6))) with the sign of dot, of a zero too; never exactly 0.5.

    >>> gate(np.array([0.0, -0.0, 4.0])).round(4).tolist()
    [0.5002, 0.4998, 0.8808]
    """
    return activations.sigmoid(np.copysign(np.sqrt(np.maximum(np.abs(dot), 1e-6)), dot))


def engram(streams, rows, w, config, image_mask=None):
    """Add the memory of the last tokens to every stream.

    Args:
        streams: X [T S C].
        rows: int64 [T orders·heads], of this module.
        w: "embed.weight" [rows D], "embed.scale" [rows D/32], "wkv.weight" [(S+1)·C  orders·heads·D],
            "q_weight" and "k_weight" [S C].
        config: for norm_eps and sizes.
        image_mask: bool [T]; nothing is added where it is set.

    Returns:
        [T S C].
    """
    tokens, n_streams, width = streams.shape
    table, scale = w["embed.weight"], w["embed.scale"]
    scales = np.repeat(scale[rows], 32, axis=-1)[..., : table.shape[-1]]  # T rows D, one scale for 32 values
    read = (table[rows] * scales).reshape(tokens, -1)  # T rows·D
    keys_and_value = linear.product(read, w["wkv.weight"]).reshape(tokens, n_streams + 1, width)
    keys, value = keys_and_value[:, :-1], keys_and_value[:, -1]  # T S C, T C
    products = (streams * (w["q_weight"] * w["k_weight"]) * keys).sum(axis=-1)  # T S
    scale_back = norms.reciprocal_rms(streams, config.norm_eps) * norms.reciprocal_rms(keys, config.norm_eps)
    gates = gate(products * scale_back[..., 0] / width**0.5)  # T S
    if image_mask is not None:
        gates = np.where(np.asarray(image_mask, bool)[:, None], 0, gates)
    return streams + gates[..., None] * value[:, None, :]
