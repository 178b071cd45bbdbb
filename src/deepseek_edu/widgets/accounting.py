"""Widget `accounting`: what design choices save, in a toy that can be counted by hand and in the real models.

Mechanism: `accounting.choices`, `accounting.caches`, `accounting.work`. Every number is a closed form of sizes; nothing
is measured, and nothing here is a speed.
"""

from deepseek_edu.accounting import choices
from deepseek_edu.drawing.numbers import grouped, percent

from . import accounting_real as real
from .accounting_toy import toy_picture
from .contract import Choice, Slider, View, widget
from .parts import Metric, Metrics, Prose, Table

TOY, REAL = {"part": "toy"}, {"part": "real"}
CHOSEN = {8: (1, 4, 7), 4: (0, 2, 3)}
"""Entries that a query selects in the toy, by how many there are: invented, as a set of scores would choose them."""


@widget(
    "accounting",
    title="Compress, share, store fewer bits, read less",
    mechanism={
        "accounting.choices": ("vector_bytes", "entries_stored", "stored_bytes", "read_bytes"),
        "accounting.caches": ("entry_bytes", "global_bytes_by_layer", "window_bytes"),
        "accounting.work": ("entries_read", "entries_scored", "ced_block_tokens"),
    },
    source="report §§2.3, 2.4.4, 3.2.2",
    chapter="04_design_choices",
)
def accounting(
    part: Choice({"toy": "A toy to count", "real": "The real model"}, "View", look="segments") = "toy",
    compress: Choice(
        {
            "none": "No: a key and a value each",
            "latent": "One latent for key and value",
            "pairs": "One latent for 2 positions",
        },
        "Compress",
        when=TOY,
    ) = "latent",
    owners: Choice(
        {"4": "4 of 4", "2": "2 of 4", "1": "1 of 4"}, "Layers that own entries", look="segments", when=TOY
    ) = "2",
    bits: Choice(
        {"16": "16 bits", "8": "8 bits", "4": "4 bits"},
        "A stored number takes",
        help="With 8 or 4 bits a vector also has a scale byte.",
        look="segments",
        when=TOY,
        more=True,
    ) = "16",
    read: Choice({"all": "Every entry", "3": "3 selected ones"}, "A query reads", look="segments", when=TOY) = "3",
    what: Choice(
        {
            "memory": "Cache bytes by generation",
            "path": "How it gets to 890 bytes per token",
            "prefill": "Prefill: which layers run on which tokens",
            "decode": "Decode: arithmetic of one token",
        },
        "What to count",
        when=REAL,
    ) = "memory",
    context: Slider(
        real.EXPONENTS[0],
        real.EXPONENTS[-1],
        1,
        "Tokens so far",
        names=tuple(grouped(2**k) for k in real.EXPONENTS),
        when=REAL,
    ) = 12,
    model: Choice(
        {"v41": "V4.1-Flash", "v4": "V4-Flash"}, "Model", look="segments", when={"part": "real", "what": "decode"}
    ) = "v41",
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "real":
        tokens = 2 ** int(context)
        if what == "decode":
            return real.decode(tokens, model)
        return {"memory": real.memory, "path": real.path, "prefill": real.prefill}[what](tokens)
    return _toy(compress, int(owners), int(bits), None if read == "all" else int(read))


def steps_of(compress: str, owners: int, bits: int, selected: int | None) -> list[tuple[str, str, choices.Toy]]:
    """The toy after each choice: (choice, what was chosen, toy), nothing chosen first."""
    vectors, ratio = (2 if compress == "none" else 1), (2 if compress == "pairs" else 1)
    first = {"vectors": vectors, "ratio": ratio}
    words = {"none": "key and value", "latent": "one latent", "pairs": "one per 2 positions"}[compress]
    return [
        ("Nothing", "two vectors, 16 bits", choices.Toy()),
        ("Compress", words, choices.Toy(**first)),
        ("Share", f"{owners} of 4 own", choices.Toy(**first, owners=owners)),
        ("Fewer bits", f"{bits} bits", choices.Toy(**first, owners=owners, bits=bits)),
        (
            "Select",
            "every entry" if selected is None else f"{selected} entries",
            choices.Toy(**first, owners=owners, bits=bits, selected=selected),
        ),
    ]


def _toy(compress: str, owners: int, bits: int, selected: int | None) -> View:
    steps = steps_of(compress, owners, bits, selected)
    counted = [(name, words, choices.stored_bytes(toy), choices.read_bytes(toy)) for name, words, toy in steps]
    toy = steps[-1][2]
    entries = choices.entries_stored(toy)
    chosen = tuple(range(entries)) if selected is None else CHOSEN[4 if toy.ratio == 2 else 8]
    stored, read = counted[-1][2:]
    start = counted[0][2]
    metrics = Metrics(
        (
            Metric("Stored", stored, grouped(stored), "bytes", note=_share(stored, start)),
            Metric(
                "Read for one query",
                read,
                grouped(read),
                "bytes",
                note=f"by {toy.layers} layers",
                role="result",
            ),
            Metric("Entries an owner keeps", entries, note=f"for {toy.positions} positions, {toy.bits} bits a number"),
            Metric("Of these read", len(chosen), note="in each layer"),
        ),
        "The toy",
    )
    table = Table(
        "Bytes after each choice, in this order",
        ("Choice", "Setting", "Stored", "Read for one query"),
        tuple(counted),
        folded=True,
    )
    summary = (
        f"{toy.owners} of {toy.layers} layers keep {entries} entries of {toy.vectors * choices.vector_bytes(8, bits)} "
        f"bytes each, {grouped(stored)} bytes in all instead of {grouped(start)}; a query reads {len(chosen)} of "
        f"{entries} entries in every layer, {grouped(read)} bytes."
    )
    return View((toy_picture(toy, chosen, counted), metrics, _remark(toy, entries, chosen), table), summary)


def _share(stored: int, start: int) -> str:
    return "nothing saved" if stored == start else f"of {grouped(start)}, {percent(stored / start, digits=3)}"


def _remark(toy: choices.Toy, entries: int, chosen: tuple[int, ...]) -> Prose:
    """What the choices do and do not do, for those that are on."""
    words = []
    if len(chosen) < entries:
        words.append(
            f"A query reads {len(chosen)} of {entries} entries. All {entries} stay stored: the next query may select "
            "others."
        )
    if toy.owners < toy.layers:
        words.append(f"{toy.layers - toy.owners} layers store nothing and still read: sharing saves room, not reading.")
    if toy.ratio > 1:
        words.append("One entry stands for two positions, so it can no longer tell them apart.")
    if toy.bits < 16:
        words.append(f"{toy.bits} bits are not {toy.bits}/16 of the room: the scale takes a byte of every vector.")
    if not words:
        words.append("Every layer keeps a key and a value for every position, and a query reads all of them.")
    return Prose(" ".join(words))
