"""Widget `replay`: the windows of a stored prefix are gone; feed its last tokens again and see what comes back.

Mechanism: `reference.replay`, `reference.model` and `reference.window` (report, sections 3.2.1 and 3.2.2). Every cell
and every point is a run of a small random model beside the exact run of the same tokens (replay_runs.py).
"""

from deepseek_edu.accounting import caches
from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import counted, grouped, show
from deepseek_edu.reference import cache, storage

from . import replay_runs as runs
from .contract import Choice, Slider, View, widget
from .parts import Metric, Metrics, Prose, Table
from .replay_curve import curve_picture
from .replay_drawing import COMPARE, LOSE, REPLAY, SAVE, Scene, grid_picture, layer_error, relative

VARIANTS = {
    "hit": "A stored prefix is found",
    "report": "Every prefill, as the report says",
    "serving": "Every prefill, as served",
}


STEPS = ("1 Save", "2 Lose the windows", "3 Replay", "4 Continue", "5 Try every length")


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
    step: Slider(1, 5, 1, "Step", look="steps", names=STEPS) = 4,
    tokens: Slider(
        0, 20, 1, "Tokens replayed", unit="tokens", help="At most layers × window, and at most the prefix."
    ) = 4,
    depth: Slider(1, 4, 1, "Layers that are replayed", unit="layers") = 4,
    variant: Choice(
        VARIANTS, "When", help="After a prefix hit all layers replay. At a prefill the decoder does."
    ) = "hit",
    window: Choice({"2": "2 tokens", "4": "4 tokens"}, "Window", look="segments", more=True) = "4",
    prefix: Choice({"8": "8 tokens", "20": "20 tokens"}, "Prefix", look="segments", more=True) = "20",
) -> View:
    """Evaluate the widget for checked control values."""
    setting = runs.Setting(variant, int(depth), int(window), int(prefix))
    fed, step = min(int(tokens), setting.longest), int(step)
    run, needed, cut = None, 0, None
    if step >= REPLAY:
        run, probe = runs.replays(setting, [fed, runs.probe(setting)])
        needed, cut = runs.needed(setting, probe), runs.cut(setting)
    owners = tuple((layer, setting.config.compress_ratios[layer]) for layer in setting.config.kv_source_layers)
    scene = Scene(setting, step, run, owners, needed, cut)
    pictures = [grid_picture(scene)]
    if step == COMPARE:
        points = [(r.tokens, r.divergence) for r in runs.replays(setting, [*runs.curve(setting, needed), fed])]
        pictures.append(curve_picture(setting, sorted(set(points)), run, needed, scene.cut_error))
    tables = (_layers(scene), _full_size()) if step >= REPLAY else (_full_size(),)
    return View((*pictures, _metrics(scene), _remark(scene), *tables), _summary(scene))


def stored_bytes(setting: runs.Setting) -> tuple[int, int]:
    """Bytes of the toy in the released formats: global entries of the prefix, and the windows that are replayed."""
    config = setting.config
    formats = cache.Cache(config)
    row = storage.row_bytes(formats.entry_format) + storage.row_bytes(formats.index_format)
    entries = sum(setting.hit // config.compress_ratios[layer] for layer in config.kv_source_layers)
    rows = min(setting.window, setting.hit) * setting.depth
    return entries * row, rows * storage.row_bytes(formats.window_format)


def _metrics(scene: Scene) -> Metrics:
    s, run = scene.setting, scene.run
    if scene.step < REPLAY:
        persistent, windows = stored_bytes(s)
        return Metrics(
            (
                Metric("Kept", persistent, unit="bytes", note="global KV of the prefix, in the released formats"),
                Metric("Not kept", windows, unit="bytes", note=f"windows of {_layers_words(s)}"),
            ),
            "What is stored",
        )
    whole = s.depth * s.window
    exact_from = Metric(
        "All windows exact from",
        scene.needed,
        unit="tokens",
        note=f"measured; layers × window is {whole}" if scene.needed else "measured; exact whatever the window holds",
    )
    if scene.step == REPLAY:
        recomputed = Metric("Recomputed", run.tokens, unit="tokens", note=f"of {s.hit}, in {_layers_words(s)}")
        return Metrics((recomputed, exact_from), "Replay")
    return Metrics(
        (
            Metric(
                "Error after replay",
                run.divergence,
                _nats(run.divergence),
                note=f"KL divergence, mean of {runs.NEW} new tokens",
                role="error" if run.divergence else "result",
            ),
            Metric(
                "Prompt cut instead",
                scene.cut_error,
                _nats(scene.cut_error),
                note=f"its last {min(s.window, s.hit)} tokens, no global KV",
            ),
            exact_from,
        ),
        "Replay",
    )


def _layers_words(setting: runs.Setting) -> str:
    return counted(setting.depth, "layer")


def _nats(value: float) -> str:
    return "0" if not value else show(value, 3)


def _remark(scene: Scene) -> Prose:
    s, run = scene.setting, scene.run
    hit = s.variant == "hit"
    if scene.step == SAVE:
        if not hit:
            return Prose(
                f"The encoder has read all {s.hit} tokens. Its output made the global entries that the decoder layers "
                "read; no decoder layer has run, so none has a window."
            )
        return Prose(
            f"Every layer keeps its last {s.window} positions. Only the global entries are written to storage."
        )
    if scene.step == LOSE:
        lost = (
            "Windows live for minutes, global entries for days. "
            if hit
            else "Decoder windows are never stored, so they are missing at every prefill. "
        )
        read = max(0, min(s.window - 1, s.hit))
        return Prose(
            f"{lost}The next token would read {counted(read, 'position')} of each window. Nothing is there.", "warn"
        )
    if not run.tokens and not run.exact(s.hit, s.window):
        words = (
            "No token is replayed. The new tokens see their own windows and the global entries, and nothing between."
        )
        return Prose(words + (" Only the first decoder layer has its window." * (s.variant == "serving")), "warn")
    if run.exact(s.hit, s.window):
        return Prose(
            f"Exact. Each layer needs {s.window - 1} right positions more than the one above it; {scene.needed} "
            f"replayed tokens are enough for {_layers_words(s)}."
        )
    if s.variant == "serving" and s.depth > 1:
        words = (
            f"The first decoder layer sees its whole window, also before position {scene.start}: one layer more is "
            "exact than when every window is cut there."
        )
    else:
        words = (
            f"The first replayed token sees nothing of the windows before position {scene.start}, so its output is "
            f"off. With each layer the error reaches {counted(s.window - 1, 'position')} further."
        )
    if scene.step == REPLAY:
        return Prose(words)
    return Prose(words + _compared(scene) + _lasting(run))


def _compared(scene: Scene) -> str:
    """How replay stands to cutting the prompt."""
    cut, error = scene.cut_error, scene.run.divergence
    if not cut or not error:
        return ""
    if cut <= error:
        return " Here a cut prompt is no worse."
    return f" Without the global entries, with the prompt cut, the error is {show(cut / error, 2)} times as large."


def _lasting(run: runs.Replayed) -> str:
    """What the new tokens leave in the global memory."""
    worst = max((float(errors.max(initial=0)) for errors in run.entry_errors.values()), default=0.0)
    if worst < runs.EXACT:
        return " The global entries of the new tokens are exact: nothing of the error is kept."
    return f" Global entries of the new tokens are off by up to {relative(worst)}, and these are kept."


def _layers(scene: Scene) -> Table:
    """Errors layer by layer, as numbers."""
    s, plans = scene.setting, scene.setting.config.schedule()
    rows, text = [], []
    for number, layer in enumerate(s.layers):
        first, errors = scene.run.errors[number]
        prefix = errors[: max(0, s.hit - first)]
        exact = sum(bool(error < runs.EXACT) for error in prefix)
        error = layer_error(scene, number)
        rows.append((layer, plans[layer].mode, len(prefix), exact, error))
        text.append(("", "", "", "", relative(error)))
    return Table(
        f"Window entries of the prefix, layer by layer, with {scene.run.tokens} of {s.hit} tokens replayed",
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
        ("Exact replay, layers × window", layers * window, "tokens, the report’s count"),
        ("Exact replay, layers × (window − 1)", layers * (window - 1), "tokens, what is enough"),
    )
    text = tuple(("", grouped(value), "") for _, value, _ in rows)
    return Table("The same at full size", ("What", "Count", "Unit"), rows, text, folded=True)


def _summary(scene: Scene) -> str:
    s, run = scene.setting, scene.run
    layers = _layers_words(s)
    if scene.step == SAVE:
        kept = "windows and global KV exist" if s.variant == "hit" else "global KV exists, decoder windows do not"
        return f"After {s.hit} tokens {kept} in {layers} with a window of {s.window}; only the global KV is stored."
    if scene.step == LOSE:
        return f"The windows of {layers} are missing; the global KV of {s.hit} tokens is there."
    state = "all windows exact" if run.exact(s.hit, s.window) else f"exact only from {scene.needed} tokens on"
    fed = f"{run.tokens} of {s.hit} tokens replayed through {layers} with a window of {s.window}: {state}"
    if scene.step == REPLAY:
        return f"{fed}."
    return (
        f"{fed}; the next {runs.NEW} tokens are off by {_nats(run.divergence)} (KL), by {_nats(scene.cut_error)} if "
        "the prompt is cut instead."
    )
