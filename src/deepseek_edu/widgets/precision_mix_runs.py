"""Attention over seeded latents with three branches rounded as one likes: the runs behind the `precision-mix` widget.

One layer of invented sizes: a window of 32 latents, 128 compressed entries of which a query reads the 32 with the best
index scores, 4 heads of 64 channels, 4 index heads of 32. Latents are random and normalised as the model normalises
them; queries look a little like a few of the latents, so that attention has something to find. Nothing is rotated and
nothing is trained, so the errors illustrate how rounding spreads, and are no errors of the released model.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import attention, indexer, norms, quant

from .memo import remembered

BRANCHES = ("window", "main", "index")
FORMATS = ("exact", "fp8", "fp4")
RELEASED = ("fp8", "fp4", "fp4")
"""The formats of the released model, branch by branch."""

WINDOW, ENTRIES, CHOSEN, QUERIES = 32, 128, 32, 16
HEADS, WIDTH, INDEX_WIDTH = 4, 64, 32
TARGETED = {"recent": 4, "both": 2, "far": 0}
"""How many heads look for a row of the window; the others look for a compressed entry."""

EPS = 1e-6
NOISE, PULL = 1.5, 1.5  # how much of a query is chance, and how much it resembles the latent it looks for


@dataclass(frozen=True)
class Setting:
    """What is drawn: kind of latents ("gaussian" or "heavy"), where queries look, and the seed."""

    latents: str
    aim: str
    seed: int


@dataclass(frozen=True, eq=False)
class Drawn:
    """The unrounded numbers of a setting."""

    window: np.ndarray  # W D
    entries: np.ndarray  # N D
    queries: np.ndarray  # T H D
    keys: np.ndarray  # N Di
    index_queries: np.ndarray  # T Hi Di
    head_weights: np.ndarray  # T Hi


@remembered(16)
def drawn(setting: Setting) -> Drawn:
    """Draw a setting; the same numbers for the same setting."""
    rng = np.random.default_rng(100 + setting.seed)
    shape = (WINDOW + ENTRIES, WIDTH)
    raw = rng.standard_normal(shape) if setting.latents == "gaussian" else rng.standard_t(2.5, shape)
    latents = norms.rms_norm(raw, np.ones(WIDTH), EPS)
    window, entries = latents[:WINDOW], latents[WINDOW:]
    near = TARGETED[setting.aim]
    targets = np.concatenate(
        [
            rng.integers(0, WINDOW, (QUERIES, HEADS))[:, :near],
            rng.integers(WINDOW, WINDOW + ENTRIES, (QUERIES, HEADS))[:, near:],
        ],
        axis=1,
    )  # T H
    down = rng.standard_normal((INDEX_WIDTH, WIDTH)) / WIDTH**0.5
    sought = NOISE * rng.standard_normal((QUERIES, HEADS, INDEX_WIDTH)) + PULL * latents[targets] @ down.T
    queries = sought @ down * (WIDTH / INDEX_WIDTH) ** 0.5  # attention looks for what the index sees
    keys = indexer.index_keys(entries, down, np.ones(INDEX_WIDTH), EPS)
    weights = 1 + 0.2 * rng.standard_normal((QUERIES, HEADS))
    index_queries = (queries + latents[targets]) @ down.T  # the index looks for the same latents
    return Drawn(window, entries, queries, keys, index_queries, weights)


def rounded(x: np.ndarray, branch: str, form: str) -> np.ndarray:
    """The numbers of a branch as they are read back; in FP4 the index has another block and scale than the latents."""
    if form == "exact":
        return x
    if form == "fp8":
        return quant.quantize_fp8(x, 32).values
    return quant.quantize_fp4(x, 32, "e8m0").values if branch == "index" else quant.quantize_fp4(x, 16, "e4m3").values


@remembered(48)
def latent_rows(setting: Setting, form: str) -> np.ndarray:
    """Window and entries, [W + N, D], in a format; both use the same one for four bits, and the same one for eight."""
    d = drawn(setting)
    return rounded(np.concatenate([d.window, d.entries]), "latents", form)


@remembered(48)
def selection(setting: Setting, form: str) -> np.ndarray:
    """Entries that each query reads, [T K], with index queries and keys in a format."""
    d = drawn(setting)
    queries, keys = rounded(d.index_queries, "index", form), rounded(d.keys, "index", form)
    scores = indexer.index_scores(queries, d.head_weights, keys)
    return indexer.top_k(scores, np.full(QUERIES, ENTRIES), CHOSEN)


def alone(branch: str, form: str) -> tuple[str, str, str]:
    """The mix in which one branch alone is rounded."""
    return tuple(form if name == branch else "exact" for name in BRANCHES)


EXACT = ("exact",) * 3
COMPARED = (
    EXACT,
    *(alone(branch, form) for branch in BRANCHES for form in ("fp8", "fp4")),
    RELEASED,
    ("fp8",) * 3,
    ("fp4",) * 3,
)
"""The mixes that are shown whatever the reader chooses."""


def attend(setting: Setting, mixes: tuple[tuple[str, str, str], ...]) -> np.ndarray:
    """Attention output of several mixes at once, [mixes T H D], each with its formats of window, entries and index."""
    rows = np.empty((len(mixes), QUERIES, WINDOW + CHOSEN, WIDTH))
    for number, (window, main, index) in enumerate(mixes):
        rows[number, :, :WINDOW] = latent_rows(setting, window)[:WINDOW]
        rows[number, :, WINDOW:] = latent_rows(setting, main)[WINDOW:][selection(setting, index)]
    rows = rows.reshape(-1, WINDOW + CHOSEN, WIDTH)
    queries = np.tile(drawn(setting).queries, (len(mixes), 1, 1))
    valid = np.ones(rows.shape[:2], bool)
    values = attention.sink_attention(queries, rows, valid, np.zeros(HEADS), WIDTH**-0.5)
    return values.reshape(len(mixes), QUERIES, HEADS, WIDTH)


@remembered(16)
def compared(setting: Setting) -> dict[tuple[str, str, str], np.ndarray]:
    """The outputs of COMPARED."""
    return dict(zip(COMPARED, attend(setting, COMPARED), strict=True))


@remembered(64)
def output(setting: Setting, mix: tuple[str, str, str]) -> np.ndarray:
    """Attention output of all queries and heads, [T H D], with the formats of a mix."""
    return compared(setting)[mix] if mix in COMPARED else attend(setting, (mix,))[0]


def error(setting: Setting, mix: tuple[str, str, str]) -> float:
    """Root mean square error of the output against nothing rounded, divided by the size of that output."""
    exact = output(setting, EXACT)
    return float(np.linalg.norm(output(setting, mix) - exact) / np.linalg.norm(exact))


def changed(setting: Setting, form: str) -> list[int]:
    """For each query, how many of its entries are others than without rounding of the index."""
    exact, now = selection(setting, "exact"), selection(setting, form)
    return [len(set(a.tolist()) - set(b.tolist())) for a, b in zip(now, exact, strict=True)]


def window_share(setting: Setting) -> float:
    """Share of the attention that goes to the window, nothing rounded; the mean of all queries and heads."""
    d, chosen = drawn(setting), selection(setting, "exact")
    scores = [np.einsum("thd,wd->thw", d.queries, d.window), np.einsum("thd,tkd->thk", d.queries, d.entries[chosen])]
    weights = np.exp(np.concatenate(scores, axis=-1) * WIDTH**-0.5)
    return float((weights[..., :WINDOW].sum(-1) / weights.sum(-1)).mean())
