"""Widget `toy-attention`: the small attention model line by line, with the real arrays, and what its mask is for.

Mechanism: `reference.toy_attention`. The weights are random, so its logits predict nothing. A second run with one token
changed shows at each line which rows depend on that token; equality checks show what random numbers are good for.
"""

import numpy as np

from deepseek_edu.drawing.numbers import fixed, percent
from deepseek_edu.reference import toy_attention as toy

from .contract import Choice, Slider, Text, Toggle, View, widget
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table
from .toy_attention_drawing import LINES, Scene, picture

SEED = 1
TOKENS = 3
TOLERANCE = 1e-5
"""What sums in another order may differ by: a cache keeps float32. A real difference is far larger."""
STILL = 1e-9  # a row that moves less than this does not depend on what was changed

_ID = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
CHANGED = {"run": "changed"}
_ORDER = ("first", "second", "third")


@widget(
    "toy-attention",
    title="A small attention model, line by line",
    mechanism={"reference.toy_attention": ("project", "attention_scores", "later_keys", "in_slow_motion")},
    source="a teaching model, not part of the released one",
    chapter="10_small_attention",
    grid=("mask", "run", "which"),
)
def toy_attention(
    step: Slider(1, 8, 1, "Line", look="steps", names=tuple(f"{n} {line.name}" for n, line in enumerate(LINES, 1))) = 6,
    ids: Text(
        16,
        "Three ids",
        pattern=rf"\s*{_ID}(\s+{_ID}){{2}}\s*",
        expected="three whole numbers from 0 to 255 with spaces between them",
        samples=("0 255 128", "5 5 5", "200 13 44"),
    ) = "12 37 9",
    mask: Toggle("Causal mask") = True,
    run: Choice(
        {"typed": "as typed", "changed": "one token changed"}, "Run the model on them", look="segments"
    ) = "typed",
    which: Choice(
        {str(i): f"the {name}" for i, name in enumerate(_ORDER)}, "Token that is changed", look="segments", when=CHANGED
    ) = "2",
    other: Slider(0, 255, 1, "Its new id", stops=2, when=CHANGED) = 200,
) -> View:
    """Evaluate the widget for checked control values."""
    typed = tuple(int(word) for word in ids.split())
    shown, before = arrays(typed, mask), None
    if run == "changed":
        place = int(which)
        new = (*typed[:place], int(other), *typed[place + 1 :])
        shown, before, typed_before = arrays(new, mask), shown, typed
        scene = Scene(int(step), new, mask, shown, moved(shown, before), place, typed_before[place])
    else:
        scene = Scene(int(step), typed, mask, shown)
    parts = (picture(scene), _metrics(scene), _said(scene), checks_table(scene))
    return View(parts, _summary(scene))


@remembered(64)
def arrays(ids: tuple[int, ...], causal: bool) -> dict:
    """Every array of the model for these ids, in float64."""
    return toy.in_slow_motion(ids, _weights(), causal)


@remembered(1)
def _weights() -> toy.Weights:
    return toy.random_weights(SEED, dtype=np.float64)


def moved(now: dict, before: dict) -> dict:
    """How far each row of each array has moved: {name: [largest difference of a row]}; 0 where it did not."""
    with np.errstate(invalid="ignore"):
        gaps = {name: np.abs(np.where(now[name] == before[name], 0, now[name] - before[name])) for name in now}
    return {name: [float(g) if not g < STILL else 0.0 for g in gap.max(axis=1)] for name, gap in gaps.items()}


@remembered(64)
def checks(ids: tuple[int, ...], causal: bool) -> tuple[tuple[str, str, float], ...]:
    """Three comparisons with this run: (name, what is compared, largest difference; 0 within the tolerance)."""
    a, cache = arrays(ids, causal), toy.Cache()
    cached = np.concatenate([toy.forward([id], _weights(), cache)[0] for id in ids])
    alone = arrays(ids[:-1], causal)["logits"]
    gaps = (
        ("One by one", "all logits, fed token by token on a cache", cached - a["logits"]),
        ("Prefix", "logits of the first two tokens, without the third", alone - a["logits"][:-1]),
        ("Shares", "what each query takes of all keys, against 1", a["weight"].sum(axis=1) - 1),
    )
    return tuple((name, what, _gap(difference)) for name, what, difference in gaps)


def _gap(difference: np.ndarray) -> float:
    largest = float(np.abs(difference).max())
    return 0.0 if largest < TOLERANCE else round(largest, 7)


def checks_table(scene: Scene) -> Table:
    """The comparisons as a part."""
    rows = checks(scene.ids, scene.causal)
    return Table(
        "What random weights can check: two ways to the same number",
        ("Check", "Compares", "Largest difference"),
        rows,
        tuple((name, what, "none" if gap == 0 else f"{gap:.3f}: fails") for name, what, gap in rows),
    )


def _metrics(scene: Scene) -> Metrics:
    logits = scene.arrays["logits"]
    if scene.moved is not None:
        return Metrics(
            tuple(
                Metric(
                    f"Logits of token {i}, id {id}",
                    round(gap, 7),
                    f"moved by {gap:.2f}" if gap else "same",
                    note="largest of 256 differences",
                    role="value" if gap else "",
                )
                for i, (id, gap) in enumerate(zip(scene.ids, scene.moved["logits"], strict=True))
            ),
            "After the change",
        )
    shares = toy.activations.softmax(logits[-1])
    likely = int(logits[-1].argmax())
    line = LINES[scene.step - 1]
    numbers = sum(scene.arrays[name].size for name in line.makes) if line.makes else len(scene.ids)
    return Metrics(
        (
            Metric(f"Made in line {scene.step}", numbers, unit="numbers", note=f"shape {scene.shape(scene.step)}"),
            Metric("Most likely next", likely, note=f"{percent(shares[likely], 1)}, and it means nothing"),
        ),
        "This line",
    )


# Words


def _said(scene: Scene) -> Prose:
    if scene.moved is None:
        return Prose(_WORDS[scene.step - 1](scene), "" if scene.causal or scene.step != 5 else "warn")
    name = LINES[scene.step - 1].shows
    if name == "ids":
        return Prose(f"Token {scene.place} is {scene.ids[scene.place]} now. Which rows will move, line by line?")
    still = [i for i, gap in enumerate(scene.moved[name]) if not gap]
    stirred = [i for i, gap in enumerate(scene.moved[name]) if gap]
    words = f"Rows that moved in this line: {_list(stirred) or 'none'}. The same as before: {_list(still) or 'none'}. "
    early = [i for i in stirred if i < scene.place]
    if not stirred:
        return Prose(words + "Nothing was changed.")
    if scene.step == 4 and early:
        words += "A row holds the fit with every key, later ones too. What the mask will hide may move."
        return Prose(words)
    if early:
        words += (
            "Without the mask an earlier position depends on a later token. In training it would read the answer; "
            "in a generation its keys and values would have to be made again for every new token."
        )
        return Prose(words, "warn")
    if scene.place == 0:
        return Prose(words + "Every position may look at the first token.")
    return Prose(words + "In this line no position before the change depends on it.")


def _list(rows: list[int]) -> str:
    return ", ".join(map(str, rows))


def _mask_words(scene: Scene) -> str:
    if not scene.causal:
        return (
            "The mask is off: every position looks at every other, later ones too. Change a token and see what moves."
        )
    hidden = int(np.isinf(scene.arrays["masked"]).sum())
    return f"A key that stands after the query is hidden: {hidden} of 9 scores become −∞, and softmax makes 0 of them."


def _likely_words(scene: Scene) -> str:
    own = sum(int(row.argmax()) == id for row, id in zip(scene.arrays["logits"], scene.ids, strict=True))
    return (
        "A score for each of 256 ids, after each token. The weights are random, so these are no predictions"
        + (f"; {own} of the highest are the token’s own id, because embed makes vectors and logits" if own else "")
        + ". They are definite numbers all the same: another way to compute them must find the same."
    )


_WORDS = (
    lambda s: "An id is an address, not a quantity. Each picks a row of the embedding table.",
    lambda s: "The row of the id plus the row of the position. The same id at another place is another vector.",
    lambda s: "Three matrices, the same for all tokens, make what a token looks for, what it offers and what it gives.",
    lambda s: (
        f"Each query meets each key: 9 sums of 32 products. Query 2 and key 0 give "
        f"{fixed(float(s.arrays['score'][2, 0]), 2)}."
    ),
    _mask_words,
    lambda s: (
        f"Softmax makes shares of the scores; each row sums to 1. The last token takes "
        f"{percent(s.arrays['weight'][2, 2])} from itself."
    ),
    lambda s: "Each token takes its shares of the values, and adds the result to what it was.",
    _likely_words,
)


def _summary(scene: Scene) -> str:
    line = LINES[scene.step - 1]
    mask = "on" if scene.causal else "off"
    words = f"Line {scene.step}, {line.name.lower()}: shape {scene.shape(scene.step)}; mask {mask}. "
    if scene.moved is None:
        failed = sum(gap != 0 for _, _, gap in checks(scene.ids, scene.causal))
        return words + (f"{failed} of 3 checks fail." if failed else "All 3 checks pass.")
    stirred = [i for i, gap in enumerate(scene.moved["logits"]) if gap]
    return (
        words + f"Token {scene.place} changed to {scene.ids[scene.place]}: logits moved at {_list(stirred) or 'none'}."
    )
