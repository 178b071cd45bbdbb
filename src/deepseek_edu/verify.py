"""Compare an implementation with recorded outputs: one row per output, with the largest difference and the tolerance.

A file of recorded outputs holds the weights of a model (`w/<released name>`), token ids (`ids` [B T]) and what the
reference code made of them, with its quantisers (`quant/…`) or without (`noquant/…`):

    prefill<n>/logits, prefill<n>/main_hidden   the first n tokens
    decode/logits                               the last R tokens, one at a time after a prefill of the others
    decode_stale_index_k/logits                 the same with the defect of the released decode
    draft/ids, draft/logits, draft/conf         a draft after each of those tokens; ids begin with the given token
    topk_idxs_L<l>                              entries chosen by layer l in a prefill, counted behind its T window rows
    image<n>/ids, image<n>/types, image<n>/logits
    engram_hashes<n>, engram_hashes_image<n>    table rows (beside quant and noquant)

Any sizes are read. `token_map` [V] may give the compressed ids; without it id → id // ⌈V / compressed V⌉ is taken.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference.weights import vision_shapes, weight_shapes

PREFILL_TOLERANCE = 5e-5  # absolute, on logits of scale 5; float32 reference against float64: 1e-5 seen
DECODE_TOLERANCE = 1e-4  # errors add up over the steps: 5e-5 seen


@dataclass(frozen=True)
class Row:
    """The comparison of one recorded output."""

    output: str
    difference: float  # largest absolute difference; for ids the number of unequal ones
    tolerance: float  # 0: exact

    @property
    def passed(self):
        """Whether the difference is within the tolerance; a NaN never is."""
        return bool(self.difference <= self.tolerance)


@dataclass(frozen=True)
class Report:
    """All comparisons of one file."""

    implementation: str
    rows: list = field(default_factory=list)
    unknown: list = field(default_factory=list)  # names in the file that no rule reads

    @property
    def passed(self):
        """Whether every recorded output was reproduced, and there was one."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    def text(self):
        """Return the report as lines of text."""
        width = max([len(row.output) for row in self.rows], default=6)
        lines = [
            f"{row.output:{width}}  {row.difference:9.2e}  {row.tolerance:7.0e}  {'pass' if row.passed else 'FAIL'}"
            for row in self.rows
        ]
        lines += [f"{name:{width}}  not known to this command" for name in self.unknown]
        failed = sum(not row.passed for row in self.rows)
        lines.append(f"{self.implementation}: {len(self.rows) - failed} of {len(self.rows)} outputs reproduced")
        return "\n".join(lines)


class NumpyRunner:
    """Runs deepseek_edu.reference on batches of equally long sequences.

    Another implementation takes part by offering the same constructor and methods.
    """

    name = "numpy"

    def __init__(self, config, weights, token_map):
        from deepseek_edu.reference import model

        self.config, self.model = config, model.Model(config, weights, token_map)

    def prefill(self, ids, quantized, types=None):
        """Run whole prompts.

        Args:
            ids: int64 [B T]; types: [B T] or None; quantized: with the cache formats or without.

        Returns:
            dict: logits [B T V], main_hidden [B T M], hashes [B T modules rows] or None, choices {layer: [B T K]}.
        """
        outputs = [
            self.model.prefill(row, self.model.new_cache(quantized), None if types is None else types[b])
            for b, row in enumerate(ids)
        ]
        first = outputs[0]
        return {
            "logits": np.stack([o.logits for o in outputs]),
            "main_hidden": np.stack([o.main_hidden for o in outputs]),
            "hashes": None if first.hashes is None else np.stack([o.hashes for o in outputs]),
            "choices": {layer: np.stack([o.choices[layer] for o in outputs]) for layer in first.choices},
        }

    def decode(self, ids, start, quantized, stale_index_keys=False, draft_from=None):
        """Prefill ids[:, :start], then feed the others one at a time.

        Args:
            draft_from: int64 [B R], the token given to the drafter after each step, or None for no drafts.

        Returns:
            {"logits": [B R V]}, with drafts also "ids" [B R 1+block], "draft_logits" [B R block V], "conf" [B R block].
        """
        from deepseek_edu.reference import dspark

        model, found = self.model, {"logits": [], "ids": [], "draft_logits": [], "conf": []}
        for b, row in enumerate(ids):
            cache = model.new_cache(quantized)
            if start:
                model.prefill(row[:start], cache)
            steps = {name: [] for name in found}
            for step, token in enumerate(row[start:]):
                output = model.decode(token, cache, stale_index_keys=stale_index_keys)
                steps["logits"].append(output.logits[-1])
                if draft_from is not None:
                    draft = dspark.draft(draft_from[b, step], cache.length, model, cache)
                    steps["ids"].append(draft.ids)
                    steps["draft_logits"].append(draft.logits)
                    steps["conf"].append(draft.confidence)
            for name, values in steps.items():
                found[name].append(values)
        return {name: np.array(values) for name, values in found.items()}


def _torch_runner(*args):
    from deepseek_edu.model.verify import TorchRunner

    return TorchRunner(*args)


RUNNERS = {"numpy": NumpyRunner, "torch": _torch_runner}


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
        config = json.loads(Path(config).read_text(encoding="utf-8"))
    return outputs, config if isinstance(config, ModelConfig) else ModelConfig.from_released(config)


def token_map_of(outputs, config):
    """Return the compressed id of each token id: `token_map` of the file, or equal runs of neighbouring ids."""
    if "token_map" in outputs:
        return outputs["token_map"]
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
    wanted = set(weight_shapes(config)) - set(vision_shapes(config))  # no recorded output reads the vision tower
    weights = {name: recorded[f"w/{name}"] for name in wanted if f"w/{name}" in recorded}
    runner = RUNNERS[implementation](config, weights, token_map_of(recorded, config))
    report = _Comparison(recorded, runner).report(implementation)
    known = {f"w/{name}" for name in weight_shapes(config)}
    report.unknown.extend(name for name in recorded if name.startswith("w/") and name not in known)
    return report


class _Comparison:
    """Runs what the names in a file ask for; each run once."""

    def __init__(self, recorded, runner):
        self.recorded, self.runner, self.runs = recorded, runner, {}

    def report(self, implementation):
        report = Report(implementation)
        for name in self.recorded:
            if name.startswith("w/") or name in ("ids", "token_map") or re.search(r"/image\d+/(ids|types)$", name):
                continue
            compare = self._rule(name)
            if compare is None:
                report.unknown.append(name)
            else:
                report.rows.append(compare)
        return report

    def _rule(self, name):
        kind, _, rest = name.partition("/")
        if kind not in ("quant", "noquant"):
            found = re.fullmatch(r"engram_hashes(_image)?(\d+)", name)
            return found and self._hashes(name, int(found[2]), bool(found[1]))
        quantized = kind == "quant"
        if found := re.fullmatch(r"prefill(\d+)/(logits|main_hidden)", rest):
            return self._close(name, self._prefill(quantized, int(found[1]))[found[2]], PREFILL_TOLERANCE)
        if found := re.fullmatch(r"image(\d+)/logits", rest):
            return self._close(name, self._image(kind, int(found[1]))["logits"], PREFILL_TOLERANCE)
        if found := re.fullmatch(r"topk_idxs_L(\d+)", rest):
            return self._choices(name, quantized, int(found[1]))
        if rest in ("decode/logits", "decode_stale_index_k/logits"):
            return self._close(name, self._decode(kind, rest.split("/")[0])["logits"], DECODE_TOLERANCE)
        if rest in ("draft/ids", "draft/logits", "draft/conf"):
            part = {"draft/ids": "ids", "draft/logits": "draft_logits", "draft/conf": "conf"}[rest]
            got = self._decode(kind, "decode")[part]
            return self._equal(name, got) if part == "ids" else self._close(name, got, DECODE_TOLERANCE)
        return None

    def _input(self, name):
        if name not in self.recorded:
            raise ValueError(f"the file must hold {name!r}; it does not, so nothing can be computed from it")
        return self.recorded[name]

    def _once(self, key, run):
        if key not in self.runs:
            self.runs[key] = run()
        return self.runs[key]

    def _prefill(self, quantized, tokens):
        ids = self._input("ids")[:, :tokens]
        return self._once(("prefill", quantized, tokens), lambda: self.runner.prefill(ids, quantized))

    def _image(self, kind, tokens):
        ids, types = self._input(f"{kind}/image{tokens}/ids"), self._input(f"{kind}/image{tokens}/types")
        return self._once(("image", kind, tokens), lambda: self.runner.prefill(ids, kind == "quant", types))

    def _decode(self, kind, what):
        ids = self._input("ids")
        draft_ids = self.recorded.get(f"{kind}/draft/ids") if what == "decode" else None
        asked = [self.recorded[n] for n in (f"{kind}/{what}/logits", f"{kind}/draft/ids") if n in self.recorded]
        start = ids.shape[1] - asked[0].shape[1]
        given = None if draft_ids is None else draft_ids[..., 0]
        stale = what == "decode_stale_index_k"
        return self._once((kind, what), lambda: self.runner.decode(ids, start, kind == "quant", stale, given))

    def _hashes(self, name, tokens, image):
        if not image:
            return self._equal(name, self._prefill(False, tokens)["hashes"])
        kind = next((k for k in ("noquant", "quant") if f"{k}/image{tokens}/ids" in self.recorded), "noquant")
        return self._equal(name, self._image(kind, tokens)["hashes"])

    def _choices(self, name, quantized, layer):
        tokens = self.recorded[name].shape[1]
        choices = self._prefill(quantized, tokens)["choices"]
        if layer not in choices:
            raise ValueError(f"{name} is recorded for layer {layer}; the configuration chooses in {sorted(choices)}")
        return self._equal(name, np.where(choices[layer] < 0, -1, choices[layer] + tokens))

    def _close(self, name, got, tolerance):
        expected = np.asarray(self.recorded[name], np.float64)
        if np.shape(got) != expected.shape:
            return Row(name, float("inf"), tolerance)
        return Row(name, float(np.abs(got - expected).max(initial=0)), tolerance)

    def _equal(self, name, got):
        expected = self.recorded[name]
        if np.shape(got) != expected.shape:
            return Row(name, float("inf"), 0.0)
        return Row(name, float(np.count_nonzero(got != expected)), 0.0)
