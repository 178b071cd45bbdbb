"""The compressed token map of real tokenizers, built here: byte-level BPE, WordPiece, Unigram.

Expectations come from the normalisers of the `tokenizers` library, as the reference strings them together, and from
tables written by hand.
"""

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import engram

TEXTS = [
    "Café CAFÉ café cafe 東京 東京都 the The THE  the\ta b\n\nÀ la carte, à la CARTE",
    "naïve NAIVE naive Straße STRASSE ﬁne fine ２０ 20 ½ İstanbul istanbul",
    "Ω ω Ὀδυσσεύς οδυσσευς नमस्ते 한국어 한국 emoji 🙂🙃 🙂",
]


def byte_level():
    """Byte-level BPE: tokens that are parts of a character decode to U+FFFD."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|begin|>", "<|end|>", "<|BEGIN|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    tokenizer.add_tokens([AddedToken("  ", normalized=False), AddedToken("\n\n", normalized=False)])
    return tokenizer


def by_hand():
    """Byte-level tokens written down: all bytes, some words, two special tokens, two added ones."""
    words = ["the", "Ġthe", "ĠThe", "ĠTHE", "Ã©", "Ãī", "ĠE", "Ġa", "Ġb", "<|begin|>", "<|end|>", "<|BEGIN|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, *words])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>", "<|BEGIN|>"])
    tokenizer.add_tokens([AddedToken("  ", normalized=False), AddedToken("\n\n", normalized=False)])
    return tokenizer


def word_piece():
    """WordPiece: pieces inside a word begin with ##."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]", "[PAD]"], show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    return tokenizer


def unigram():
    """Unigram with ▁ for a space."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<unk>", "<pad>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 8, trainer)
    return tokenizer


NORMALISER = normalizers.Sequence(
    [
        normalizers.NFKC(),
        normalizers.NFD(),
        normalizers.StripAccents(),
        normalizers.Lowercase(),
        normalizers.Replace(Regex(r"[ \t\r\n]+"), " "),
        normalizers.Replace(Regex(r"^ $"), "\ue000"),
        normalizers.Strip(),
        normalizers.Replace("\ue000", " "),
    ]
)


def expected_map(tokenizer, size):
    """First come, first numbered, by the library's own normalisers."""
    keys = []
    for token in range(size):
        text = tokenizer.decode([token], skip_special_tokens=False)
        broken = "\ufffd" in text
        keys.append(
            ("raw", tokenizer.id_to_token(token)) if broken else ("text", NORMALISER.normalize_str(text) or text)
        )
    order = []
    for key in keys:
        if key not in order:
            order.append(key)
    return [order.index(key) for key in keys]


@pytest.mark.parametrize("build", [byte_level, word_piece, unigram])
def test_the_map_of_a_trained_tokenizer_is_that_of_the_librarys_normalisers(build):
    tokenizer = build()
    size = tokenizer.get_vocab_size()
    got = engram.compressed_token_map(tokenizer, size, len(set(expected_map(tokenizer, size))))
    assert got.dtype == np.int64
    assert got.tolist() == expected_map(tokenizer, size)
    assert 0 < got.max() < size - 1  # something was merged


def test_byte_level_tokens_merge_by_text_and_broken_characters_do_not_merge():
    tokenizer = by_hand()
    found = engram.compressed_token_map(tokenizer, tokenizer.get_vocab_size())
    vocabulary = tokenizer.get_vocab()

    def number(*tokens):
        return [int(found[vocabulary[token]]) for token in tokens]

    assert len(set(number("the", "Ġthe", "ĠThe", "ĠTHE"))) == 1  # Ġ is a space
    assert len(set(number("Ã©", "Ãī", "E", "e"))) == 1  # é É E e
    assert len(set(number("Ġ", "Ċ", "ĉ", "  ", "\n\n"))) == 1  # blanks of any kind and number
    assert len(set(number("Ġ", "a"))) == 2
    assert len(set(number("<|begin|>", "<|end|>"))) == 2
    assert len(set(number("<|begin|>", "<|BEGIN|>"))) == 1  # the text of a special token is text
    pieces = [chr(c) for c in range(0x100, 0x144) if chr(c) in vocabulary and chr(c) not in "Ġĉ"]
    broken = [t for t in pieces if "\ufffd" in tokenizer.decode([vocabulary[t]], skip_special_tokens=False)]
    assert len(broken) > 20
    assert len(set(number(*broken))) == len(broken)  # all decode to U+FFFD, each keeps a number of its own


def test_word_pieces_and_metaspace_tokens_merge_by_what_they_decode_to():
    words = {"[UNK]": 0, "Été": 1, "ete": 2, "##ete": 3, "ÉTÉ": 4, "##ÉTÉ": 5}
    tokenizer = Tokenizer(models.WordPiece(vocab=words, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    assert engram.compressed_token_map(tokenizer, 6).tolist() == [0, 1, 1, 2, 1, 2]
    pieces = [("<unk>", 0.0), ("▁été", -1.0), ("Ete", -2.0), ("▁", -3.0), ("▁▁", -4.0), ("▁x", -5.0), ("X", -6.0)]
    tokenizer = Tokenizer(models.Unigram(vocab=pieces, unk_id=0))
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    assert engram.compressed_token_map(tokenizer, 7).tolist() == [0, 1, 1, 2, 2, 3, 3]


def test_another_number_of_compressed_ids_than_configured_is_refused():
    tokenizer = by_hand()
    size = tokenizer.get_vocab_size()
    found = len(set(engram.compressed_token_map(tokenizer, size).tolist()))
    with pytest.raises(ValueError, match=f"must give {found + 1} compressed ids; it gives {found}"):
        engram.compressed_token_map(tokenizer, size, found + 1)


def test_ids_without_a_token_share_one_number():
    tokenizer = Tokenizer(models.WordLevel(vocab={"a": 0, "A": 1, "b": 3}, unk_token="a"))
    assert engram.compressed_token_map(tokenizer, 6).tolist() == [0, 0, 1, 2, 1, 1]


def test_a_map_of_a_real_tokenizer_drives_the_hash():
    """Text that differs in case, accents and spaces only reads the same rows; other text does not."""
    tokenizer = by_hand()
    size = tokenizer.get_vocab_size()
    numbers = engram.compressed_token_map(tokenizer, size)
    config = ModelConfig.tiny(
        vocab_size=size, engram_compressed_vocab_size=int(numbers.max()) + 1, engram_num_embeddings=()
    )
    hashed = engram.EngramHash(config, numbers)

    def rows(*tokens):
        ids = [tokenizer.token_to_id(token) for token in tokens]
        return hashed.rows(hashed.compress(ids))

    np.testing.assert_array_equal(rows("the", "Ġa", "e"), rows("ĠTHE", "a", "Ãī"))
    assert (rows("the", "Ġa", "e") != rows("the", "Ġb", "e"))[1:].any(axis=(1, 2)).all()
