"""Compare an implementation with recorded outputs: one row per output, with the largest difference and the tolerance.

A file of recorded outputs holds the weights of a model (`w/<released name>`), token ids (`ids` [B T]) and what the
reference code made of them, with its quantisers (`quant/…`) or without (`noquant/…`):

    prefill<n>/logits, prefill<n>/main_hidden   the first n tokens
    decode/logits                               the last R tokens, one at a time after a prefill of the others
    decode_stale_index_k/logits                 the same with the defect of the released decode
    draft/ids, draft/logits, draft/conf         a draft after each of those tokens; ids begin with the given token
    topk_idxs_L<l>                              entries layer l reads in a prefill, counted behind its T window rows
    image<n>/ids, image<n>/types                a prompt with image spans,
    image<n>/logits, image<n>/main_hidden       and what became of it
    engram_hashes<n>, engram_hashes_image<n>    table rows (beside quant and noquant)

Any sizes are read. `token_map` [V] may give the compressed ids; without it id → id // ⌈V / compressed V⌉ is taken. If R
tokens were decoded elsewhere than at the end of the ids, their place is found by their logits.

Everything is computed in float64. Where an output that fails depends on a choice or a rounding that float32 cannot
decide, its row says so: weights changed by 3e-7 of their size then move our own output about as far. It fails all the
same.

Source: the layout is our own; the outputs are those of the released reference code.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference.weights import check_shapes, vision_shapes, weight_shapes
from deepseek_edu.verify_outputs import Comparison, Row

__all__ = ["RUNNERS", "Report", "Row", "load", "token_map_of", "verify"]

PERTURBATION = 3e-7
"""Relative change of weights that a float32 run cannot tell from its own rounding."""
PERTURBED_RUNS = 3  # with changed weights, for a row that fails
SMALL_TOWER = {
    "vision_n_layers": 1,
    "vision_dim": 4,
    "vision_n_heads": 1,
    "vision_inter_dim": 1,
    "vision_patch_size": 1,
    "vision_downsample_ratio": 1,
}
"""Sizes that stand for any vision tower: no recorded output reads it."""
LARGE = 5_000_000  # numbers in a model's weights from which on one perturbed run has to do


@dataclass(frozen=True)
class Report:
    """All comparisons of one file."""

    implementation: str  # a key of RUNNERS
    rows: list = field(default_factory=list)  # of Row
    unknown: list = field(default_factory=list)  # names in the file that no rule reads

    @property
    def passed(self):
        """Whether every recorded output was reproduced, and there was one."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    def text(self):
        """Return the report as lines of text: rows under headings, remarks below their rows, the sum."""
        width = max(map(len, ("output", *(row.output for row in self.rows))))
        lines = [f"{'output':{width}}  {'max abs difference':>18}  {'tolerance':>9}  result"]
        for row in self.rows:
            tolerance = f"{row.tolerance:.0e}" if row.tolerance else "exact"
            result = "pass" if row.passed else "FAIL"
            lines.append(f"{row.output:{width}}  {row.difference:18.2e}  {tolerance:>9}  {result}")
            lines += [f"    {row.remark}"] if row.remark else []
        lines += [f"unknown: {name}" for name in self.unknown]
        if not self.rows:
            lines.append("FAIL: the file holds no output that can be compared")
        reproduced, unknown = sum(row.passed for row in self.rows), len(self.unknown)
        some = f", {unknown} unknown" if unknown else ""
        lines.append(f"{self.implementation}: {reproduced} of {len(self.rows)} outputs reproduced{some}")
        return "\n".join(lines)


def _numpy_runner(*args):
    from deepseek_edu.reference.verify import NumpyRunner

    return NumpyRunner(*args)


def _torch_runner(*args):
    from deepseek_edu.model.verify import TorchRunner

    return TorchRunner(*args)


RUNNERS = {"numpy": _numpy_runner, "torch": _torch_runner}
"""Implementation → function (config, weights, token_map) that makes its runner."""


def load(outputs, config):
    """Return (recorded {name: array}, ModelConfig) from a file and a configuration.

    Args:
        outputs: path of an .npz file, or a dict of arrays.
        config: path of a JSON file with released names, a dict of them, or a ModelConfig.

    Raises:
        OSError: a file cannot be read. ValueError: it is of another kind, or the configuration does not fit.
    """
    if not isinstance(outputs, dict):
        with np.load(Path(outputs), allow_pickle=False) as file:
            outputs = {name: file[name] for name in file.files}
    if not isinstance(config, (dict, ModelConfig)):
        config = json.loads(Path(config).read_text(encoding="utf-8-sig"))
    return outputs, config if isinstance(config, ModelConfig) else ModelConfig.from_released(config)


def token_map_of(outputs, config):
    """Return the compressed id of each token id: `token_map` of the file, or equal runs of neighbouring ids.

    Args:
        outputs: {name: array}, content of a file.
        config: ModelConfig.

    Returns:
        integers [V].

    Raises:
        ValueError: `token_map` is not made of integers, 0 or more.
    """
    if "token_map" in outputs:
        given = outputs["token_map"]
        if given.dtype.kind not in "iu" or given.min(initial=0) < 0:
            raise ValueError(f"token_map must be integers, 0 or more; got {given.dtype}, least {given.min(initial=0)}")
        return given
    size = max(config.engram_compressed_vocab_size, 1)
    return np.arange(config.vocab_size) // -(-config.vocab_size // size)


def verify(outputs, config, implementation="numpy"):
    """Compare every recorded output that is known.

    Args:
        outputs, config: as in `load`.
        implementation: a key of RUNNERS.

    Returns:
        Report.

    Raises:
        ValueError: weights or inputs are missing or do not fit the configuration.
    """
    if implementation not in RUNNERS:
        raise ValueError(f"implementation must be one of {', '.join(RUNNERS)}; got {implementation!r}")
    recorded, config = load(outputs, config)
    known = {f"w/{name}" for name in _vision_names(recorded, config)}
    if config.vision_n_layers:
        config = replace(config, **SMALL_TOWER)
    _require_sizes(recorded, config)
    shapes, tower = weight_shapes(config), vision_shapes(config)
    wanted = {name: shape for name, shape in shapes.items() if name not in tower}
    weights = {name: _numbers(f"w/{name}", recorded[f"w/{name}"]) for name in wanted if f"w/{name}" in recorded}
    check_shapes(weights, wanted)
    _require_ids(recorded, config.vocab_size)
    token_map = token_map_of(recorded, config)

    def runner(weights):
        return RUNNERS[implementation](config, weights, token_map)

    comparison = Comparison(recorded, config, runner(weights))
    rows, unknown = comparison.rows()
    remarks = _undecided(comparison, [row for row in rows if np.inf > row.difference > row.tolerance], weights, runner)
    rows = [replace(row, remark=remarks.get(row.output, row.remark)) for row in rows]
    known |= {f"w/{name}" for name in wanted}
    unknown += [name for name in recorded if name.startswith("w/") and name not in known]
    return Report(implementation, rows, unknown)


def _undecided(comparison, failed, weights, runner):
    """Remarks on failed rows whose output moves as much when weights change by float32's rounding."""
    remarks, gaps = {}, {row.output: row.difference for row in failed}
    large = sum(array.size for array in weights.values()) > LARGE
    for seed in range(1 if large else PERTURBED_RUNS):
        left = [name for name in gaps if name not in remarks]
        if not left:
            break
        rng = np.random.default_rng(seed)
        changed = {name: w * (1 + PERTURBATION * rng.uniform(-1, 1, w.shape)) for name, w in sorted(weights.items())}
        moved, recorded = comparison.repeated(left, runner(changed))
        for name in left:
            if not moved[name].passed and (recorded[name].passed or moved[name].difference > gaps[name] / 4):
                remarks[name] = (
                    f"float32 cannot decide this output: weights changed by {PERTURBATION:.0e} of their size or less "
                    f"move it by {moved[name].difference:.1e}, to a difference of {recorded[name].difference:.1e}"
                )
    return remarks


def _numbers(name, array):
    """Return the array if it holds finite real numbers."""
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be real numbers; got {array.dtype}; convert it to float32 before saving")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; it holds {np.count_nonzero(~np.isfinite(array))} other values")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _require_sizes(recorded, config):
    """Refuse a configuration of more parts than the file can hold, before all their names are made."""
    arrays = [array for name, array in recorded.items() if name.startswith("w/")]
    longest = max((side for array in arrays for side in array.shape), default=0)
    parts = ("n_layers", "n_routed_experts", *("n_mtp_layers", "dspark_n_routed_experts") * bool(config.n_mtp_layers))
    for name in parts:
        _require_at_most(name, getattr(config, name), len(arrays), "arrays of weights in the file")
    memory = ("engram_n_heads", "engram_max_ngram_size", "engram_vocab_size")  # the primes take long to find
    for name in memory * bool(config.engram_layer_ids):
        _require_at_most(name, getattr(config, name), longest, "rows or columns of the longest array of weights")


def _require_at_most(name, value, most, what):
    if value > most:
        raise ValueError(
            f"the weights do not belong to this configuration; {name} must be at most {most}, the number of {what}; "
            f"got {value}; take the configuration of the model that was recorded"
        )


def _vision_names(recorded, config):
    """Names of the vision tower's weights, if the file has such weights."""
    if not any(name.startswith(("w/vision.", "w/aligner.", "w/image_")) for name in recorded):
        return ()
    arrays = sum(name.startswith("w/") for name in recorded)
    _require_at_most("vision_n_layers", config.vision_n_layers, arrays, "arrays of weights in the file")
    return vision_shapes(config)


def _require_ids(recorded, vocabulary):
    """Token ids that are fed must be whole numbers [B T] of the vocabulary, image types of the same shape."""
    for name, ids in recorded.items():
        if name != "ids" and not (name.endswith("/ids") and "/image" in name):
            continue
        if ids.dtype.kind not in "iu" or ids.ndim != 2 or not ids.size:
            raise ValueError(f"{name} must be integers [B T]; got {ids.dtype} {list(ids.shape)}")
        if ids.min() < 0 or ids.max() >= vocabulary:
            raise ValueError(
                f"{name} must be token ids 0 … {vocabulary - 1}; got {ids.min()} … {ids.max()}; "
                "the configuration belongs to another model"
            )
        types = recorded.get(f"{name[:-3]}types")
        if name != "ids" and types is not None and (types.dtype.kind not in "iu" or types.shape != ids.shape):
            raise ValueError(
                f"{name[:-3]}types must be integers of the shape of the ids, {list(ids.shape)}; "
                f"got {types.dtype} {list(types.shape)}"
            )
