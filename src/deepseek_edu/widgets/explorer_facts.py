"""What the explorer says about a layer or a part: numbers from `config` and `accounting`, words for them, and places.

Nothing here is typed in that the configuration can say. `Place` names the section of the report and the function of
`deepseek_edu.reference` that does it; a test looks each of them up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from deepseek_edu import accounting
from deepseek_edu.config import ModelConfig
from deepseek_edu.drawing.numbers import show
from deepseek_edu.reference import v4_model, weights

from .explorer_layout import plans_of
from .memo import remembered

NAMES = {"v41": "V4.1-Flash", "v4": "V4-Flash"}
CONTEXTS = (4_096, 1_048_576)
MODES = {
    "window": "window only",
    "full": "full",
    "reindex": "reindex",
    "reuse": "reuse",
    "csa": "CSA",
    "hca": "HCA",
}
WHAT = {
    "window": "It reads only the last {window} tokens, from its own window.",
    "full": "It makes compressed entries and index keys, chooses {k} entries with its indexer, and reads them.",
    "reindex": "It makes no entries of its own: its indexer chooses {k} anew among those of layer {owner}.",
    "reuse": "It makes nothing and chooses nothing: it reads what {chooser} chose among the entries of layer {owner}.",
    "csa": "It makes its own entries from overlapping groups of {ratio} tokens, and its indexer chooses {k} of them.",
    "hca": "It makes its own entry for every {ratio} tokens and reads all of them, without an indexer.",
}
_V41_PLACES = {
    "window": ("2.3", "window", "window_table"),
    "full": ("2.3.1", "csa2", "store_global"),
    "reindex": ("2.3.1", "csa2", "choose"),
    "reuse": ("2.3.1", "csa2", "attend"),
}


@remembered(4)
def config_of(model: str) -> ModelConfig:
    """The configuration of a model of the map: "v41", "v4" or "tiny"."""
    return {"v41": ModelConfig.v41_flash, "v4": ModelConfig.v4_flash_0731, "tiny": ModelConfig.tiny}[model]()


@dataclass(frozen=True)
class Place:
    """Where something is described and where it is computed."""

    report: str
    module: str
    function: str

    @property
    def words(self) -> str:
        return f"{self.report}; here: {self.function} in reference/{self.module}.py"


def place_of(config, plan) -> Place:
    """Where the attention of a layer is told."""
    if config.generation == "v4":
        return Place("V4 report, section 2", "v4_attention", "attend")
    if plan.side == "draft":
        return Place("Report, section 2.4.3", "dspark", "attend_block")
    section, module, function = _V41_PLACES[plan.mode]
    return Place(f"Report, sections {section} and 4.2.1", module, function)


def name_of(config, plan) -> str:
    """A layer as it is called in lists and searches."""
    if plan.side == "draft":
        return f"Draft stage {plan.index - config.n_layers} (DSpark)"
    words = [MODES[plan.mode]]
    if plan.ratio and config.generation == "v4.1":
        words.append(f"ratio {plan.ratio}")
    if plan.pool:
        words.append("candidate pool")
    if plan.engram is not None:
        words.append("Engram")
    if plan.hash_routed:
        words.append("experts by table")
    return f"Layer {plan.index}: {', '.join(words)}"


def key_of(config, plan) -> str:
    """The name of a layer's box."""
    return f"draft-{plan.index - config.n_layers}" if plan.side == "draft" else f"layer-{plan.index}"


def readers(config, layer: int) -> tuple[int, ...]:
    """The other layers that read a layer's entries."""
    return tuple(p.index for p in plans_of(config) if p.owner == layer and p.index != layer)


def activated(config, plan) -> int:
    """The parameters of a layer that one token meets: of the routed experts only those chosen."""
    counts = accounting.layer_parameters(config, plan)
    draft = plan.side == "draft"
    routed = config.dspark_n_routed_experts if draft else config.n_routed_experts
    chosen = config.dspark_n_activated_experts if draft else config.n_activated_experts
    return sum(counts.values()) - counts["routed experts"] // routed * (routed - chosen)


def flops(config, plan, context: int) -> int:
    """Operations of a backbone layer for one decoded token: two for each multiplication with its addition."""
    return 2 * sum(part.multiply_adds for part in accounting.work.layer_work(config, plan, context))


def indexer_words(plan) -> str:
    """What a layer has of an indexer."""
    if plan.mode in ("full", "csa"):
        return "queries and keys"
    return "queries" if plan.mode == "reindex" else "none"


def runs(config, plan, phase: str) -> str:
    """For which tokens a layer runs."""
    if plan.side == "draft":
        return "to fill its window" if phase == "prefill" else f"{config.dspark_block_size} rows at a time"
    if phase == "decode" or config.generation == "v4" or plan.side == "encoder":
        return "every token" if phase == "prefill" else "every new token"
    words = f"the last {config.window_size} tokens"
    return f"entries: every token; rest: {words}" if plan.mode == "full" else words


def spans(numbers) -> str:
    """Rising numbers in words.

    >>> spans((3, 4, 5, 9)), spans((7,))
    ('3–5, 9', '7')
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in found)


def amount(value: float, digits: int = 4) -> str:
    """A large number with its unit in words: thousands, millions, billions.

    >>> amount(551_570_000_000), amount(983094), amount(256)
    ('551.6 B', '983.1 K', '256')
    """
    for size, unit in ((1e9, " B"), (1e6, " M"), (1e3, " K")):
        if abs(value) >= size:
            return show(value / size, digits) + unit
    return show(float(value), digits)


def cost(value: float) -> str:
    """Operations in words."""
    return f"{show(value / 1e6, 4)} M" if value < 1e9 else f"{show(value / 1e9, 4)} G"


def shapes(config, plan) -> dict[str, tuple[int, ...]]:
    """The tensors of a layer by released name, one expert standing for all. Empty for draft stages of V4."""
    prefix = f"mtp.{plan.index - config.n_layers}." if plan.side == "draft" else f"layers.{plan.index}."
    return {name.removeprefix(prefix): shape for name, shape in _all_shapes(config).items() if name.startswith(prefix)}


@remembered(4)
def _all_shapes(config) -> dict[str, tuple[int, ...]]:
    few = {
        "n_routed_experts": 1,
        "n_activated_experts": 1,
        "dspark_n_routed_experts": 1,
        "dspark_n_activated_experts": 1,
    }
    make = v4_model.v4_weight_shapes if config.generation == "v4" else weights.weight_shapes
    found = {}
    for name, shape in make(replace(config, **few)).items():
        draft = name.startswith("mtp.")
        if ".gate.tid2eid" in name:
            shape = (shape[0], config.n_activated_experts)
        elif ".ffn.gate." in name:
            shape = (config.dspark_n_routed_experts if draft else config.n_routed_experts, *shape[1:])
        found[name] = shape
    return found


@dataclass(frozen=True)
class Part:
    """Something that several layers have, or that stands outside of them.

    Attributes:
        label: name in the search.
        text: what it does; `{field}` of the configuration is filled in.
        place: where it is told.
        has: which layers have it.
        counted: (part, components) of `accounting.parameters`.
        boxes: boxes of the map beside layers.
        work: components of `accounting.decode_flops`.
    """

    label: str
    text: str
    place: Place
    has: Callable = lambda plan: False
    counted: tuple[str, tuple[str, ...]] = ("backbone", ())
    boxes: tuple[str, ...] = ()
    work: tuple[str, ...] = ()
