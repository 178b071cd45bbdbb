"""Widget `replay`: the windows of a stored prefix are gone; feed its last tokens again and see what comes back.

Mechanism: `reference.replay`, `reference.model` and `reference.window` (report, sections 3.2.1 and 3.2.2). Every cell
and every point is a run of a small random model beside the exact run of the same tokens (replay_runs.py).
"""

from deepseek_edu.accounting import caches
from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import storage

from . import replay_runs as runs
from .contract import Choice, Slider, View, widget
from .parts import Metric, Metrics, Prose, Table
from .replay_curve import curve_picture
from .replay_drawing import CONTINUE, LOSE, SAVE, Scene, grid_picture, layer_error, percent

VARIANTS = {
    "hit": "A stored prefix is found",
    "report": "Every prefill, as the report says",
    "serving": "Every prefill, as served",
}


@widget(
    "replay",
    title="Lose the windows, replay a few tokens, go on",
    mechanism={
        "reference.replay": ("replay_start", "resume"),
        "reference.model": ("decoder_rows",),
        "reference.window": ("window_table",),
    },
    source="report §3.2.2",
    chapter="05b_bounded_replay",
    grid=("variant",),
)
def replay(
    step: Slider(1, 4, 1, "Step", look="steps", names=("1 Save", "2 Lose the windows", "3 Replay", "4 Continue")) = 4,
    tokens: Slider(
        0, 20, 1, "Tokens replayed", unit="tokens", help="At most layers × window, and at most the prefix."
    ) = 4,
    depth: Slider(1, 4, 1, "Layers that are replayed", unit="layers") = 4,
    variant: Choice(
        VARIANTS, "When", help="After a prefix hit all layers replay. At a prefill the decoder does."
    ) = "hit",
    window: Choice({"2": "2 tokens", "4": "4 tokens"}, "Window", look="segments") = "4",
    prefix: Choice({"8": "8 tokens", "20": "20 tokens"}, "Prefix", look="segments") = "20",
) -> View:
    """Evaluate the widget for checked control values."""
    setting = runs.Setting(variant, int(depth), int(window), int(prefix))
    fed = min(int(tokens), runs.longest(setting))
    config = setting.model.config
    counts = sorted({*runs.curve(setting), fed})
    points = [(count, runs.replayed(setting, count).divergence) for count in counts]
    run, needed = runs.replayed(setting, fed), runs.needed(setting)
    cut = runs.cut(setting)
    owners = tuple((layer, config.compress_ratios[layer]) for layer in config.kv_source_layers)
    scene = Scene(setting, int(step), run, owners)
    persistent, windows = stored_bytes(setting)
    pictures = (grid_picture(scene), curve_picture(setting, points, run, needed, cut))
    metrics = _metrics(setting, fed, run, needed, cut, persistent, windows)
    summary = _summary(scene, needed, cut)
    return View((*pictures, metrics, _remark(scene, needed, cut), _layers(scene), _full_size()), summary)


def stored_bytes(setting: runs.Setting) -> tuple[int, int]:
    """Bytes of the toy in the released formats: global entries of the prefix, and the windows that are replayed."""
    model = setting.model
    formats = model.new_cache(quantized=True)
    row = storage.row_bytes(formats.entry_format) + storage.row_bytes(formats.index_format)
    config = model.config
    entries = sum(setting.hit // config.compress_ratios[layer] for layer in config.kv_source_layers)
    rows = min(setting.window, setting.hit) * setting.depth
    return entries * row, rows * storage.row_bytes(formats.window_format)


def _metrics(setting, fed, run, needed, cut, persistent, windows) -> Metrics:
    whole = setting.depth * setting.window
    every = "exact whatever the window holds" if not needed else f"layers × window is {whole}"
    return Metrics(
        (
            Metric("All windows exact from", needed, unit="tokens", note=f"measured; {every}"),
            Metric(
                "Error after replay",
                run.divergence,
                _nats(run.divergence),
                note=f"of {fed} tokens; {_MEAN}",
                role="error" if run.divergence else "result",
            ),
            Metric(
                "Prompt cut instead",
                cut,
                _nats(cut),
                note=f"to its last {setting.window} tokens, no global KV",
                role="error",
            ),
            Metric("Kept", persistent, unit="bytes", note="global KV of the prefix"),
            Metric("Not kept", windows, unit="bytes", note="windows of the replayed layers"),
        ),
        "Replay",
    )


_MEAN = f"KL divergence, mean of {runs.NEW} tokens"


def _nats(value: float) -> str:
    return "0" if not value else show(value, 3)


def _remark(scene: Scene, needed: int, cut: float) -> Prose:
    s, run = scene.setting, scene.run
    hit = s.variant == "hit"
    if scene.step == SAVE:
        if not hit:
            return Prose(
                f"The encoder has read all {s.hit} tokens of the prompt. Its output made the global entries that the "
                "decoder layers read, so the decoder has had no work yet, and no decoder layer has a window."
            )
        return Prose(
            f"The prompt has been processed. Every layer keeps the last {s.window} positions in its window; global "
            "entries exist for the whole prefix. Only these are written to storage."
        )
    if scene.step == LOSE:
        lost = (
            "The windows are gone: they live for minutes, the global entries for days. "
            if hit
            else ("Decoder windows are never stored, so they are missing at every prefill. ")
        )
        return Prose(
            lost + f"The next token would read {max(0, min(s.window - 1, s.hit))} positions of each layer's "
            "window, inside the frame. Nothing is there.",
            "warn",
        )
    if not run.tokens:
        return Prose(
            "No token is replayed. The new tokens see their own windows and the global entries, and nothing between. "
            f"The error is {_nats(run.divergence)}.",
            "warn",
        )
    if run.exact(s.hit, s.window):
        return Prose(
            f"Exact. Each layer needs {s.window - 1} correct positions more than the one above it, and {run.tokens} "
            f"replayed tokens are enough for {s.depth} layer{'s' * (s.depth > 1)}; {needed} would have been."
        )
    if s.variant == "serving" and s.depth > 1:
        words = (
            f"The first decoder layer sees its whole window here, also before position {scene.start}, so one "
            "layer more is exact than when every window is cut there."
        )
    else:
        words = (
            f"The first replayed token sees nothing of the windows before position {scene.start}. Its output is off, "
            "and with it the entry that the next layer makes of it. The first rebuilt layer is right everywhere; with "
            f"each layer the error reaches {s.window - 1} position{'s' * (s.window > 2)} further."
        )
    return Prose(
        words + " The global entries bring in the rest of the prefix: without them, with the prompt cut to its "
        f"last {s.window} tokens, the error is {_times(cut, run.divergence)}."
        + (_lasting(run) if scene.step == CONTINUE else "")
    )


def _lasting(run: runs.Replayed) -> str:
    """What the new tokens leave in the global memory."""
    worst = max((float(errors.max(initial=0)) for errors in run.entry_errors.values()), default=0.0)
    if worst < runs.EXACT:
        return " The global entries of the new tokens are exact: nothing of the error is kept."
    return f" Global entries of the new tokens are off by up to {percent(worst)}, and these are kept."


def _times(cut: float, replayed: float) -> str:
    if not replayed or not cut:
        return f"{_nats(cut)} instead of {_nats(replayed)}"
    factor = cut / replayed
    return f"{_nats(cut)}, {show(factor, 2)} times as large" if factor >= 1 else f"{_nats(cut)}, no larger"


def _layers(scene: Scene) -> Table:
    """Errors layer by layer, as numbers."""
    s, plans = scene.setting, scene.setting.model.config.schedule()
    rows, text = [], []
    for number, layer in enumerate(s.layers):
        first, errors = scene.run.errors[number]
        prefix = errors[: max(0, s.hit - first)]
        exact = sum(bool(error < runs.EXACT) for error in prefix)
        error = layer_error(scene, number)
        rows.append((layer, plans[layer].mode, len(prefix), exact, error))
        text.append(("", "", "", "", percent(error)))
    return Table(
        f"Window entries of the prefix after replaying {scene.run.tokens} tokens, layer by layer",
        ("Layer", "Mode", "Rebuilt", "Of these exact", "Error of those the next token reads"),
        tuple(rows),
        tuple(text),
        folded=True,
    )


def _full_size() -> Table:
    """The same counts for the released model."""
    flash = ModelConfig.v41_flash()
    windows = caches.window_bytes(flash)
    layers, window = flash.n_layers, flash.window_size
    rows = (
        ("Global KV for each token", caches.global_bytes_per_token(flash), "bytes, stored"),
        ("Windows of all layers", windows["backbone"], "bytes for a sequence, not stored"),
        ("Windows of the encoder", windows["encoder"], "bytes for a sequence, pooled for minutes"),
        ("Bounded replay", window, "tokens"),
        ("Exact replay, layers × window", layers * window, "tokens, the report's count"),
        ("Exact replay, layers × (window − 1)", layers * (window - 1), "tokens, what is enough"),
    )
    text = tuple(("", f"{value:,.0f}".replace(",", "\u00a0"), "") for _, value, _ in rows)
    return Table("The same at full size", ("What", "Count", "Unit"), rows, text, folded=True)


def _summary(scene: Scene, needed: int, cut: float) -> str:
    s, run = scene.setting, scene.run
    layers = f"{s.depth} layer{'s' * (s.depth > 1)}"
    if scene.step == SAVE:
        kept = "windows and global KV exist" if s.variant == "hit" else "global KV exists, decoder windows do not"
        return f"After {s.hit} tokens {kept} in {layers} with a window of {s.window}; only the global KV is stored."
    if scene.step == LOSE:
        return f"The windows of {layers} are missing; the global KV of {s.hit} tokens is there."
    state = "all windows exact" if run.exact(s.hit, s.window) else f"exact only from {needed} tokens on"
    return (
        f"{run.tokens} of {s.hit} tokens replayed through {layers} with a window of {s.window}: {state}; the next "
        f"{runs.NEW} tokens are off by {_nats(run.divergence)} (KL), by {_nats(cut)} if the prompt is cut instead."
    )
