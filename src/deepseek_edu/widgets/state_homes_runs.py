"""Runs behind the widget `state-homes`: the same model twice, with one thing changed in between.

Nothing here knows what depends on what: both runs are made, and every tensor is compared row by row.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.reference import model as models

from .memo import remembered
from .tiny_models import prompt, toy_config, toy_model

LAYERS, LENGTH, WINDOW = 5, 12, 4
SAME = 1e-9
"""Relative difference that rounding can make; less counts as unchanged."""

WEIGHTS = {
    "embed": "the embedding of the token at position 5",
    "window": "keys and values of the window, layer 2",
    "global": "global entries, layer 3",
    "engram": "the n-gram row that layer 1 reads first at position 7",
    "head": "the output matrix",
}
HOMES = ("hidden", "local", "global", "engram")


@dataclass(frozen=True)
class Tensor:
    """One tensor of a run, cut into the rows that belong to positions."""

    home: str  # "hidden", "local", "global" or "engram"
    name: str
    ratio: int  # tokens that a row stands for
    rows: np.ndarray  # [N …]


@dataclass(frozen=True)
class Run:
    """All parameters of a model, and the tensors one prompt gives with them."""

    parameters: dict
    ids: tuple
    tensors: tuple
    addresses: np.ndarray  # int64 [T modules rows], rows of the n-gram tables that were read


@dataclass(frozen=True)
class Change:
    """What a change does to one tensor: relative change of each row, 0 for none, and where the row stands."""

    home: str
    name: str
    ratio: int
    sizes: tuple

    @property
    def count(self):
        return sum(size > 0 for size in self.sizes)

    @property
    def first(self):
        """First position whose row changed, or None."""
        return next((index * self.ratio for index, size in enumerate(self.sizes) if size), None)


def watched(model):
    """The same model, which also hands out what enters each layer."""
    config = toy_config(LAYERS, model.config.window_size, dspark_target_layer_ids=tuple(range(LAYERS)))
    return models.Model(config, model.weights, model.hash.token_map)


def run(model, ids):
    """Process the prompt in one pass and collect its tensors."""
    cache = model.new_cache(quantized=False, spare=len(ids))
    output = model.forward(np.asarray(ids), cache)
    config = model.config
    entering = output.main_hidden.reshape(len(ids), LAYERS, config.dim)  # T L C
    tensors = [Tensor("hidden", f"into layer {layer}", 1, entering[:, layer]) for layer in range(LAYERS)]
    tensors.append(Tensor("hidden", "logits", 1, output.logits))
    for layer, ring in enumerate(cache.windows):
        tensors.append(Tensor("local", f"layer {layer}", 1, ring.read(0, len(ids))))
    for layer, entries in cache.entries.items():
        tensors.append(Tensor("global", f"layer {layer}", config.compress_ratios[layer], entries.read()))
    for module, layer in enumerate(config.engram_layer_ids):
        table = model.weights[f"layers.{layer}.engram.embed.weight"]
        read = table[output.hashes[:, module]].reshape(len(ids), -1)  # T rows·D
        tensors.append(Tensor("engram", f"layer {layer}", 1, read))
    return Run(model.weights, tuple(int(i) for i in ids), tuple(tensors), output.hashes)


@remembered(2)
def base():
    """The run before the change."""
    return run(watched(toy_model(LAYERS, WINDOW)), prompt(LENGTH))


def other_id(id, twin):
    """A token to put in the place of another: its twin has the same compressed id, any other has not."""
    if twin:
        return id ^ 1
    return (id + 40) % 90


@remembered(128)
def changed(what, position, twin, weight, window):
    """The run after the change."""
    model, ids = toy_model(LAYERS, WINDOW), prompt(LENGTH).copy()
    if what == "token":
        ids[position] = other_id(int(ids[position]), twin)
        return run(watched(model), ids)
    if what == "window":
        return run(watched(toy_model(LAYERS, window)), ids)
    name, place = weight_place(weight, base())
    weights = dict(model.weights)
    weights[name] = weights[name].copy()
    weights[name][place] += 1
    return run(watched(models.Model(model.config, weights, model.hash.token_map)), ids)


def weight_place(weight, before):
    """Name and index of the number that is changed."""
    return {
        "embed": ("embed.weight", (before.ids[5], 0)),
        "window": ("layers.2.attn.wkv.weight", (0, 0)),
        "global": ("layers.3.attn.compressor.wkv.weight", (0, 0)),
        "engram": ("layers.1.engram.embed.weight", (int(before.addresses[7, 0, 0]), 0)),
        "head": ("head.weight", (0, 0)),
    }[weight]


def changes(before, after):
    """What differs between two runs: a Change for each tensor."""
    found = []
    for old, new in zip(before.tensors, after.tensors, strict=True):
        size = np.linalg.norm(new.rows - old.rows, axis=-1) / np.linalg.norm(old.rows, axis=-1)
        rounded = np.where(size < SAME, 0, np.round(size, 9))
        found.append(Change(old.home, old.name, old.ratio, tuple(float(s) for s in rounded)))
    return tuple(found)


def changed_parameters(before, after):
    """Names of the parameters that differ, and how many numbers in them: {name: count}."""
    counts = {name: int((after.parameters[name] != array).sum()) for name, array in before.parameters.items()}
    return {name: count for name, count in counts.items() if count}


def changed_addresses(before, after):
    """For each position how many rows of n-gram tables are others than before: tuple of T counts."""
    return tuple(int(count) for count in (before.addresses != after.addresses).sum(axis=(1, 2)))
