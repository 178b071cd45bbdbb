"""Widget `engram`: a memory addressed by the last few tokens.

Mechanism: `reference.engram` (report, section 2.4.2), called through the module: a sentence on the tiny model, the hash
and the gate by hand, collisions counted, heads packed in one table, the released sizes. Toy values are illustrative.
"""

from deepseek_edu.drawing.numbers import grouped

from . import engram_toys
from .contract import Choice, Numbers, Slider, Text, Toggle, View, widget
from .engram_collisions import DRAWS, SIZES, equal_view, heads_view
from .engram_real import IDS, real_view
from .engram_sentence import sentence_view
from .engram_toys import gate_view, hash_view, packed_view
from .engram_words import MOST_WORDS

SENTENCE = {"part": "sentence"}
HASH = {"part": "hash"}
GATE = {"part": "gate"}
PAIRS = {"part": "pairs"}
PACKED = {"part": "packed"}
REAL = {"part": "real"}
SENTENCES = {
    "york": "I love New York City and New York",
    "spelling": "i LOVE new YÓRK city and New York",
}


@widget(
    "engram",
    title="Look a group of words up",
    mechanism={
        "reference.engram": (
            "normalised_text",
            "compressed_token_map",
            "prime_moduli",
            "hash_multipliers",
            "ngram_history",
            "hash_rows",
            "EngramHash",
            "gate",
            "engram",
        )
    },
    source="report §2.4.2",
    chapter="07_engram",
    grid=("part", "sentence", "image", "experiment", "heads", "offsets"),
)
def engram(
    part: Choice(
        {
            "sentence": "Sentence",
            "hash": "Toy hash",
            "gate": "Toy gate",
            "pairs": "Collisions",
            "packed": "Packed",
            "real": "Real numbers",
        },
        "Show",
        look="segments",
    ) = "sentence",
    sentence: Choice(
        {"york": "New York twice", "spelling": "Other spelling", "own": "Your own"},
        "Sentence",
        look="segments",
        when=SENTENCE,
    ) = "york",
    text: Text(
        72,
        "Your sentence",
        pattern=r"\s*\S+(\s+\S+){0,7}\s*",
        expected=f"1 to {MOST_WORDS} words",
        samples=("Café", "ice cream by the way", "Alexander the Great and Princess Wales", "a a a a a a a a"),
        help="Every word is a token. A word the toy does not know gets the next free number.",
        when={**SENTENCE, "sentence": "own"},
    ) = "I LOVE New York café",
    token: Slider(1, MOST_WORDS, 1, "Word", look="steps", when=SENTENCE) = 4,
    image: Toggle("An image in the middle", when=SENTENCE, more=True) = False,
    ids: Numbers(
        0,
        100,
        1,
        "Ids of the words",
        length=4,
        columns=2,
        names=("first", "second"),
        rows=("New\u00a0York", "ice\u00a0cream"),
        whole=True,
        help="Whole numbers.",
        when=HASH,
    ) = engram_toys.IDS,
    first: Slider(1, 100, 1, "Factor of head 1", stops=4, when=HASH) = engram_toys.FACTORS[0],
    second: Slider(1, 100, 1, "Factor of head 2", stops=4, when=HASH) = engram_toys.FACTORS[1],
    mixed: Choice(
        {"plus": "Sum (toy)", "xor": "XOR (model)"}, "Join by", look="segments", when=HASH, more=True
    ) = "plus",
    vectors: Numbers(
        -3,
        3,
        0.1,
        "Vectors",
        length=4,
        columns=2,
        names=("first number", "second number"),
        rows=("value", "state"),
        when=GATE,
    ) = (2.0, -1.0, 0.5, 0.5),
    gate: Slider(0.05, 0.95, 0.05, "Gate", when=GATE) = 0.8,
    experiment: Choice(
        {"heads": "Heads and sizes", "equal": "Equal memory"}, "Experiment", look="segments", when=PAIRS
    ) = "heads",
    heads: Choice(
        {"1": "1", "2": "2", "4": "4", "8": "8"}, "Heads", look="segments", when={**PAIRS, "experiment": "heads"}
    ) = "1",
    size: Slider(
        0,
        len(SIZES) - 1,
        1,
        "Rows of the first table",
        names=tuple(map(grouped, SIZES)),
        when={**PAIRS, "experiment": "heads"},
    ) = 2,
    draw: Slider(1, DRAWS, 1, "Draw", help="Other ids and other multipliers.", stops=2, when=PAIRS, more=True) = 1,
    number: Slider(0, 11, 1, "Mixed number", look="steps", when=PACKED) = 1,
    offsets: Choice(
        {"right": "[0, 3]", "none": "None", "own": "[0, 4]"}, "Offsets", look="segments", when=PACKED
    ) = "right",
    layer: Choice({"1": "Layer 1", "14": "Layer 14"}, "Table of", look="segments", when=REAL) = "1",
    token_real: Slider(1, len(IDS), 1, "Position", look="steps", when=REAL) = 1,
    compressed: Numbers(
        0,
        99091,
        1,
        "Compressed ids",
        length=len(IDS),
        names=("1", "2", "3", "4", "5"),
        whole=True,
        help="Whole numbers.",
        when=REAL,
    ) = IDS,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "sentence":
        return sentence_view(text if sentence == "own" else SENTENCES[sentence], image, int(token))
    if part == "hash":
        return hash_view(ids, (int(first), int(second)), mixed)
    if part == "gate":
        return gate_view(vectors, gate)
    if part == "pairs" and experiment == "heads":
        return heads_view(int(heads), SIZES[int(size)], int(draw))
    if part == "pairs":
        return equal_view(int(draw))
    if part == "packed":
        return packed_view(int(number), offsets)
    return real_view(compressed, int(layer), int(token_real))
