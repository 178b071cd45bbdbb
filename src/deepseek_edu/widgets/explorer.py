"""Widget `explorer`: the whole model on one map, layer by layer, and one token on its way through it.

The map is drawn from `plans_of(config)`, the numbers come from `accounting`, and what a followed token meets is
computed with `reference` on the tiny model (random weights). An edit of the plan of a layer redraws the map; an edit of
a layer's block changes every value after it.
"""

from deepseek_edu import accounting
from deepseek_edu.drawing.numbers import counted, grouped, percent

from .contract import Choice, Numbers, Slider, View, widget
from .explorer_facts import amount, config_of
from .explorer_inside import prefill_picture, values_picture
from .explorer_map import Marks, map_picture
from .explorer_tour import TOUR, tour_view
from .explorer_trace import new_token, prompt_token
from .explorer_views import look_up, names_of
from .explorer_walk import EARLIER, EARLY, LATE, NEW, PROMPT
from .parts import Prose, Table

LENGTHS = tuple(2**k for k in range(21))
LIMITS = (
    "The count is a proxy. It leaves out that layer 20 projects the global entries of every token, and knows no "
    "operations, no time, no cache hits, no images and no kernels."
)
EXPLORE = {"look": "layer"}


@widget(
    "explorer",
    title="Every layer, connected",
    mechanism={
        "config": ("layer_plan",),
        "accounting.work": ("entries_read", "entries_scored", "ced_block_tokens"),
        "reference.block": ("block",),
    },
    source="report §2 and §4.2.1",
    chapter="01_architecture_map",
    grid=("look", "model", "phase"),
)
def explorer(
    look: Choice(
        {"layer": "Explore", "tour": "Four steps", "new": "New token", "prompt": "Prompt token"},
        "Look at",
        help="The last two follow one token through a small model that runs in this page.",
        look="segments",
    ) = "layer",
    model: Choice({"v41": "V4.1-Flash", "v4": "V4-Flash"}, "Model", look="segments", when=EXPLORE) = "v41",
    phase: Choice({"prefill": "Prefill", "decode": "Decode"}, "Phase", look="segments", when=EXPLORE) = "decode",
    layer: Choice(
        names_of("v41"),
        "Search by name",
        help="A layer, a mode or a part: try “20”, “reindex” or “Engram”. Or click on the map.",
        look="search",
        when={"look": "layer", "model": "v41"},
    ) = "layer-20",
    v4_layer: Choice(
        names_of("v4"),
        "Search by name",
        help="A layer, a mode or a part: try “HCA” or “table”. Or click on the map.",
        look="search",
        when={"look": "layer", "model": "v4"},
    ) = "layer-20",
    prompt: Slider(
        0,
        20,
        1,
        "Prompt length",
        names=tuple(counted(n, "token") for n in LENGTHS),
        when={"look": "layer", "model": "v41", "phase": "prefill"},
    ) = 12,
    step: Slider(1, 4, 1, "Step", look="steps", names=TOUR, when={"look": "tour"}) = 1,
    stop: Slider(0, len(NEW) - 1, 1, "Stop", look="steps", names=NEW, when={"look": "new"}) = 0,
    token: Numbers(
        0,
        95,
        1,
        "The new token",
        length=1,
        names=("id",),
        whole=True,
        help=f"An id of the tiny model, which follows {LATE} others.",
        when={"look": "new"},
    ) = (37,),
    earlier: Slider(0, len(EARLIER) - 1, 1, "Stop", look="steps", names=EARLIER, when={"look": "prompt"}) = 0,
    prompt_id: Numbers(
        0,
        95,
        1,
        "The prompt token",
        length=1,
        names=("id",),
        whole=True,
        help=f"It stands at position {EARLY} of {LATE}.",
        when={"look": "prompt"},
    ) = (PROMPT[EARLY],),
) -> View:
    """Evaluate the widget for checked control values."""
    if look == "tour":
        return tour_view(int(step))
    if look == "new":
        return _follow(new_token(round(token[0]))[0], int(stop), "decode")
    if look == "prompt":
        return _follow(prompt_token(round(prompt_id[0])), int(earlier), "prefill")
    chosen = layer if model == "v41" else v4_layer
    control = "layer" if model == "v41" else "v4_layer"
    parts, summary = look_up(model, chosen, phase, control)
    if model == "v41" and phase == "prefill":
        lists = next(i for i, part in enumerate(parts) if isinstance(part, Table))
        parts[lists:lists] = _prefill(LENGTHS[int(prompt)])
    return View(parts, summary)


def _prefill(tokens: int) -> list:
    config = config_of("v41")
    counts = accounting.work.ced_block_tokens(config, tokens)
    plain, short = counts.values()
    layers, first, window = config.n_layers, config.decoder_start, config.window_size
    decode, prefill = (sum(accounting.activated_parameters(config, p).values()) for p in ("decode", "prefill"))
    return [
        prefill_picture(counts, tokens),
        Prose(
            f"All layers for {counted(tokens, 'token')}: {layers} · N = {grouped(plain)}. With the decoder for "
            f"the last {window} only: {first} · N + {layers - first} · min(N, {window}) = {grouped(short)}, "
            f"{percent(short / plain, digits=3)} of it. A token of a long prompt meets {amount(prefill, 3)} "
            f"parameters, a decoded token {amount(decode, 3)}: “8B / 16B active” depends on the phase."
        ),
        Prose(LIMITS, "warn"),
    ]


def _follow(stops: tuple, number: int, phase: str) -> View:
    config, stop = config_of("tiny"), stops[number]
    reader, owner, chooser = stop.reads or (None, None, None)
    marks = Marks(
        picked=(stop.box,),
        path=_passed(config, [s.box for s in stops[:number]], stop.box),
        readers=() if reader is None else (reader,),
        choosers=() if chooser is None else (chooser,),
        memories=stop.writes if owner is None else (owner,),
    )
    words = f"The tiny model: {config.n_layers} layers and {config.n_mtp_layers} draft stages; the stop is marked."
    parts = [map_picture(config, marks, phase, "", words, {"stop": number, "box": stop.box})]
    if stop.rows:
        parts.append(values_picture(stop.name, stop.rows))
    words = (
        "The tiny model has random weights: shapes and arithmetic are real, the numbers mean nothing (illustrative)."
    )
    parts.append(Prose(words))
    return View(parts, f"Stop {number + 1} of {len(stops)}, {stop.name}: {stop.text}")


def _passed(config, boxes: list[str], box: str) -> tuple[str, ...]:
    """The boxes behind a token: of the stops before, and every layer below where it is now."""
    reached = (
        int(box.removeprefix("layer-")) if box.startswith("layer-") else 0 if box == "embedding" else config.n_layers
    )
    return tuple(dict.fromkeys((*boxes, *(f"layer-{layer}" for layer in range(reached)))))
