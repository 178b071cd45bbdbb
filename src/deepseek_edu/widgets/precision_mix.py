"""Widget `precision-mix`: which branch of attention is stored in how many bits, and what that does to the output.

Mechanism: `reference.quant`, `reference.indexer` and `reference.attention` (report, section 2.4.4), run on seeded
latents of a toy (precision_mix_runs.py). The start is the released mix. Bytes are those of the released sizes.
"""

from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import percent, show
from deepseek_edu.reference import quant

from . import precision_mix_runs as runs
from .contract import Choice, Slider, View, widget
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table
from .precision_mix_drawing import NAMES, WORDS, errors_picture, selection_picture

OPTIONS = {"exact": "Exact", "fp8": "FP8", "fp4": "FP4"}


@widget(
    "precision-mix",
    title="Eight bits here, four bits there",
    mechanism={
        "reference.quant": ("nearest_code", "scale_e4m3_for_fp4", "scale_e8m0_for_fp4", "scale_e8m0_for_fp8"),
        "reference.indexer": ("index_scores", "top_k"),
        "reference.attention": ("sink_attention",),
    },
    source="report §2.4.4",
    chapter="04b_fp4_cache",
    grid=("window", "main", "index"),
)
def precision_mix(
    window: Choice(OPTIONS, "Window", look="segments") = "fp8",
    main: Choice(OPTIONS, "Global entries", look="segments") = "fp4",
    index: Choice(OPTIONS, "Index queries and keys", look="segments") = "fp4",
    latents: Choice(
        {"gaussian": "Gaussian", "heavy": "Heavy tails"}, "Latents", look="segments", more=True
    ) = "gaussian",
    aim: Choice(
        {"recent": "Mostly to the window", "both": "To both", "far": "Mostly to global entries"}, "Attention goes"
    ) = "both",
    seed: Slider(1, 8, 1, "Draw", stops=3, help="Another seed, other latents and queries.", more=True) = 1,
    query: Slider(1, runs.QUERIES, 1, "Query whose entries are shown", more=True) = 1,
) -> View:
    """Evaluate the widget for checked control values."""
    setting, mix = runs.Setting(latents, aim, int(seed)), (window, main, index)
    alone = {
        branch: {form: runs.error(setting, runs.alone(branch, form)) for form in runs.FORMATS}
        for branch in runs.BRANCHES
    }
    totals = {
        "Your mix": runs.error(setting, mix),
        "Released": runs.error(setting, runs.RELEASED),
        "All FP8": runs.error(setting, ("fp8",) * 3),
        "All FP4": runs.error(setting, ("fp4",) * 3),
    }
    changed = runs.changed(setting, index)
    per_token, windows = stored(mix)
    mean = sum(changed) / len(changed)
    metrics = Metrics(
        (
            Metric(
                "Error of the output", totals["Your mix"], relative(totals["Your mix"]), role="error", note="relative"
            ),
            Metric("Other entries read", mean, show(mean, 3), f"of {runs.CHOSEN}", note="mean of all queries"),
            Metric("Global KV", per_token, show(per_token), "bytes", note="per token, released sizes"),
            Metric("Windows", windows, f"{show(windows / 2**20, 3)} MiB", note="per conversation, released sizes"),
        ),
        "The mix",
    )
    table = Table(
        "Error of the output when one branch alone is rounded",
        ("Branch", *OPTIONS.values()),
        tuple((NAMES[branch], *(alone[branch][form] for form in runs.FORMATS)) for branch in runs.BRANCHES),
        tuple(("", *(relative(alone[branch][form]) for form in runs.FORMATS)) for branch in runs.BRANCHES),
        folded=True,
    )
    chosen = ", ".join(
        f"{NAMES[branch].lower()} {WORDS[form]}" for branch, form in zip(runs.BRANCHES, mix, strict=True)
    )
    summary = (
        f"With {chosen} the attention output is off by {relative(totals['Your mix'])}; the released mix gives "
        f"{relative(totals['Released'])}, all FP8 {relative(totals['All FP8'])}, "
        f"all FP4 {relative(totals['All FP4'])}. A query reads {show(mean, 3)} of {runs.CHOSEN} other entries than "
        "with exact index keys."
    )
    pictures = (
        errors_picture(alone, mix, totals),
        selection_picture(
            runs.selection(setting, "exact").tolist(), runs.selection(setting, index).tolist(), changed, int(query) - 1
        ),
    )
    return View((*pictures, metrics, _remark(setting, alone, mix, totals), table), summary)


def relative(error: float) -> str:
    """A relative error for readers."""
    return percent(error, 1) if error else "0"


@remembered(1)
def _released() -> ModelConfig:
    return ModelConfig.v41_flash()


def stored(mix: tuple[str, str, str]) -> tuple[float, int]:
    """Bytes of the released sizes in a mix: global KV per token, and the windows of all layers."""
    config = _released()
    window, main, index = (
        _row(width, form, branch)
        for width, form, branch in zip(
            (config.head_dim, config.head_dim, config.index_head_dim), mix, runs.BRANCHES, strict=True
        )
    )
    entries = sum(1 / config.compress_ratios[layer] for layer in config.kv_source_layers)
    return entries * (main + index), config.n_layers * config.window_size * window


def _row(width: int, form: str, branch: str) -> int:
    """Bytes of one vector; exact numbers count two bytes each."""
    if form == "exact":
        return 2 * width
    return quant.fp8_bytes(width, 32) if form == "fp8" else quant.fp4_bytes(width, 32 if branch == "index" else 16)


def _remark(setting: runs.Setting, alone: dict, mix: tuple[str, str, str], totals: dict[str, float]) -> Prose:
    """Where the error comes from, and what it has to do with where attention goes."""
    share = runs.window_share(setting)
    parts = {branch: alone[branch][form] for branch, form in zip(runs.BRANCHES, mix, strict=True)}
    most = max(parts, key=parts.get)
    words = f"{percent(share)} of the attention goes to the window here. "
    if not any(parts.values()):
        return Prose(words + "Nothing is rounded, so nothing is lost.")
    words += f"Of the three branches as you set them, the {NAMES[most].lower()} alone would be off by "
    words += relative(parts[most]) + (", the most. " if sum(error > 0 for error in parts.values()) > 1 else ". ")
    if mix == runs.RELEASED:
        more = runs.error(setting, ("fp4", *mix[1:]))
        words += f"With the window in FP4 as well, {relative(totals['Released'])} would become {relative(more)}. "
    if most == "index":
        words += (
            "A rounded index key is never read as a value. It only changes which entries are read, and that costs "
            "little while the best ones stay: now and then one that mattered is lost."
        )
    elif setting.latents == "heavy":
        words += "With heavy tails a few large values make up most of a latent, and a format with a scale keeps those."
    else:
        words += (
            "A rounded latent is wrong as a key and as a value, and its error reaches the output as far as it is read."
        )
    return Prose(words)
