"""The walk of the `one-token` widget: every number that can be recomputed, from the inputs and from one another.

`walk` goes through the blocks in order and calls `reference` for each rule. Where the public walk prints only what an
unprinted matrix made of a vector, that vector is an input. Numbers are named as in one_token_data.py, "part.name".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import activations, attention, compressor, mhc, moe, rope, v4_attention, v4_model

from .one_token_data import PRINTED

POSITION = 3  # of the byte p; its rotary angle is 3 radians
EPS, ITERATIONS = 1e-6, 20
TOLERANCE = 1.5e-4
LOOSE = {"csa.core_sink_mass": 1e-3}  # printed with three decimals
FAR = 2**20


def printed(name: str):
    """The printed number or numbers of a name."""
    part, _, rest = name.partition(".")
    return PRINTED[part][rest] if rest else PRINTED[part]


@dataclass(frozen=True)
class Input:
    """Numbers a reader can change.

    Attributes:
        label: what they are.
        low, high, step: their range, and what arrow keys move by.
        names: of each number.
    """

    label: str
    low: float
    high: float
    step: float
    names: tuple[str, ...]


def _dims(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(1, count + 1))


INPUTS = {
    "ids": Input("The eight token ids", 0, 127, 1, tuple(map(str, range(8)))),
    "embedding_p": Input("Embedding of p", -2, 2, 0.1, _dims("e", 4)),
    "mhc.expand_weights": Input("Weights that make the streams", -2, 2, 0.1, _dims("w", 2)),
    "mhc.exp_B_raw": Input("Raw mixing matrix (after exp)", 0.1, 10, 0.1, ("1→1", "1→2", "2→1", "2→2")),
    "mhc.A": Input("A, how streams are collapsed", 0, 2, 0.05, _dims("A", 2)),
    "mhc.C": Input("C, how outputs are written back", 0, 2, 0.05, _dims("C", 2)),
    "swa.q_head1": Input("Query of head 1", -2, 2, 0.05, _dims("q", 4)),
    "swa.k_head1": Input("Key of p", -2, 2, 0.05, _dims("k", 4)),
    "swa.scores": Input("Score of the token before p", -5, 5, 0.1, ("score",)),
    "swa.sink_logit": Input("Sink of the window attention", -5, 5, 0.1, ("sink",)),
    "swa.F_attn": Input("Output of the window attention", -2, 2, 0.05, _dims("y", 4)),
    "hash_moe.gates": Input("Router scores of the two experts", 0.05, 2, 0.05, ("first", "second")),
    "hash_moe.gate": Input("Gate inside the expert", -5, 5, 0.05, _dims("g", 3)),
    "hash_moe.up": Input("Up branch inside the expert", -5, 5, 0.05, _dims("u", 3)),
    "hash_moe.expert0": Input("Output of expert 0", -1, 1, 0.01, _dims("y", 4)),
    "hash_moe.expert1": Input("Output of expert 1", -1, 1, 0.01, _dims("y", 4)),
    "hash_moe.shared": Input("Output of the shared expert", -1, 1, 0.01, _dims("y", 4)),
    "csa.core_scores": Input("Scores of the core attention", -5, 5, 0.1, ("entry 0", "before p", "p")),
    "csa.core_sink_logit": Input("Sink of the core attention", -5, 5, 0.1, ("sink",)),
    "router.logits": Input("Router logits", -5, 5, 0.05, _dims("x", 4)),
    "router.bias": Input("Correction bias", -2, 2, 0.05, _dims("b", 4)),
}


def start(name: str) -> tuple[float, ...]:
    """The printed values of an input, flat; of the window scores only the first is an input."""
    values = tuple(float(v) for v in np.ravel(printed(name)))
    return values[:1] if name == "swa.scores" else values


START = {name: start(name) for name in INPUTS}
Results = dict[str, np.ndarray]


def walk(changed: Mapping[str, tuple[float, ...]] | None = None) -> tuple[Results, Results]:
    """All numbers with some inputs replaced: (given, recomputed)."""
    given = {name: np.array((changed or {}).get(name, START[name]), float) for name in INPUTS}
    given["mhc.exp_B_raw"] = given["mhc.exp_B_raw"].reshape(2, 2)
    found: Results = {}
    own = _streams(given, found)
    _window(given, found)
    streams = mhc.expand(found["mhc.X"][None], given["swa.F_attn"][None], own)
    found["swa.X_new"] = streams[0]
    found["hash_moe.h"] = mhc.collapse(streams, own.pre)[0]
    _hash_experts(given, found)
    after = mhc.expand(streams, found["hash_moe.F_moe"][None], own)
    found["hash_moe.X_after_layer0"] = after[0]
    found["csa.H_p"] = mhc.collapse(after, own.pre)[0]
    _compressed(given, found)
    _router(given, found)
    return given, found


def _streams(given: Results, found: Results) -> mhc.Coefficients:
    found["mhc.X"] = np.outer(given["mhc.expand_weights"], given["embedding_p"])
    scores = np.log(given["mhc.exp_B_raw"])[None]
    found["mhc.iter1_row"] = activations.softmax(scores)[0]
    found["mhc.iter1_col"] = mhc.sinkhorn(scores, 1, EPS)[0]
    mix = mhc.sinkhorn(scores, ITERATIONS, EPS)
    found["mhc.B"] = mix[0]
    own = mhc.Coefficients(given["mhc.A"][None], given["mhc.C"][None], mix)
    found["mhc.collapsed_H"] = mhc.collapse(found["mhc.X"][None], own.pre)[0]
    return own


def _weights(scores: np.ndarray, sink: float) -> np.ndarray:
    """Weights of given scores: attention over unit vectors returns them as its value."""
    entries, valid = np.eye(len(scores))[None], np.ones((1, len(scores)), bool)
    return attention.sink_attention(scores[None, None], entries, valid, np.array([sink]), 1.0)[0, 0]


def _window(given: Results, found: Results) -> None:
    frequencies = np.array([1.0])
    query = rope.rotate_tail(given["swa.q_head1"], POSITION, frequencies)
    key = rope.rotate_tail(given["swa.k_head1"], POSITION, frequencies)
    found["swa.q_rotated_last2"] = query[2:]
    found["swa.scale"] = np.array([len(query) ** -0.5])
    found["swa.scores"] = np.array([given["swa.scores"][0], query @ key * found["swa.scale"][0]])
    sink = float(given["swa.sink_logit"][0])
    found["swa.denominator"] = np.array([np.exp(found["swa.scores"]).sum() + np.exp(sink)])
    found["swa.weights"] = _weights(found["swa.scores"], sink)
    found["swa.sink_mass"] = np.array([1 - found["swa.weights"].sum()])


def _hash_experts(given: Results, found: Results) -> None:
    ids = np.rint(given["ids"]).astype(int)
    table = np.stack([np.arange(128) % 4, (np.arange(128) + 1) % 4], axis=-1)
    scores = np.zeros((8, 4))
    primary = ids % 4
    scores[np.arange(8), primary], scores[np.arange(8), (primary + 1) % 4] = given["hash_moe.gates"]
    experts, weights = v4_model.hash_route(ids, table, scores, 1.0)
    found["hash_moe.primary"], found["hash_moe.second"] = experts.T.astype(float)
    found["hash_moe.occupancy"] = moe.expert_load(experts[:, :1], 4).astype(float)
    found["hash_moe.gates"] = weights[POSITION]
    found["hash_moe.silu"] = activations.silu(given["hash_moe.gate"])
    found["hash_moe.hidden"] = found["hash_moe.silu"] * given["hash_moe.up"]
    found["hash_moe.routed"] = weights[POSITION] @ np.stack([given["hash_moe.expert0"], given["hash_moe.expert1"]])
    found["hash_moe.F_moe"] = found["hash_moe.routed"] + given["hash_moe.shared"]


@cache
def _released() -> ModelConfig:
    return ModelConfig.v4_flash_0731()


def _compressed(given: Results, found: Results) -> None:
    last = [max(tokens) for tokens in printed("csa.entry_tokens")]
    found["csa.visible_entries_for_p"] = np.array([j for j, end in enumerate(last) if end <= POSITION], float)
    found["csa.core_weights"] = _weights(given["csa.core_scores"], float(given["csa.core_sink_logit"][0]))
    found["csa.core_sink_mass"] = np.array([1 - found["csa.core_weights"].sum()])
    seen = compressor.visible_entries(POSITION, printed("hca.m"))
    found["hca.visible_entries_for_p"] = np.arange(int(seen), dtype=float)
    config = _released()
    name = "entries_scored_per_query_at_1048576"
    for kind, ratio in (("swa", 0), ("csa", 4), ("hca", 128)):
        found[f"{name}.{kind}"] = np.array([v4_attention.entries_read(FAR - 1, ratio, config)], float)
    found[f"{name}.dense"] = np.array([FAR], float)


def _router(given: Results, found: Results) -> None:
    logits = given["router.logits"][None]
    found["router.softplus"] = activations.softplus(logits)[0]
    found["router.sqrt"] = moe.router_scores(logits, np.eye(4))[0]
    found["router.biased"] = found["router.sqrt"] + given["router.bias"]
    experts, weights = moe.route(found["router.sqrt"][None], given["router.bias"], 2)
    found["router.selected"], found["router.gates"] = experts[0].astype(float), weights[0]


def tolerance(name: str) -> float:
    """How far a recomputed number may lie from the printed one."""
    return LOOSE.get(name, TOLERANCE)
