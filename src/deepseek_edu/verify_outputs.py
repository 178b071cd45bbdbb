"""What the names of recorded outputs ask for, and the comparison of each with what an implementation computes.

The layout is described in verify.py. Source: our own.
"""

import re
from dataclasses import dataclass

import numpy as np

PREFILL_TOLERANCE = 5e-5  # absolute, on logits of scale 5; float32 reference against float64: 1e-5 seen
DECODE_TOLERANCE = 1e-4  # errors add up over the steps: 5e-5 seen


@dataclass(frozen=True)
class Row:
    """The comparison of one recorded output."""

    output: str
    difference: float  # largest absolute difference; for ids the number of unequal ones; infinite: of another kind
    tolerance: float  # 0: exact
    remark: str = ""  # why it fails, where there is more to say than the difference

    @property
    def passed(self):
        """Whether the difference is within the tolerance; a NaN never is."""
        return bool(self.difference <= self.tolerance)


class MissingInputError(ValueError):
    """The file lacks what an output was computed from."""


class Comparison:
    """Runs what the names in a file ask for; each run once.

    Args:
        recorded: {name: array} with the layout of verify.py.
        config: ModelConfig.
        runner: NumpyRunner or another with its methods.
    """

    def __init__(self, recorded, config, runner):
        self.recorded, self.config, self.runner = recorded, config, runner
        self.runs, self.computed, self.starts = {}, {}, {}

    def rows(self, only=None):
        """Return (rows of the outputs that are known, names that are not); `only`: of these names.

        Raises:
            MissingInputError: an output is recorded without its input.
        """
        rows, unknown = [], []
        for name in self.recorded if only is None else only:
            if name.startswith("w/") or name in ("ids", "token_map") or re.search(r"/image\d+/(ids|types)$", name):
                continue
            rule = self._rule(name)
            if rule is None:
                unknown.append(name)
            else:
                rows.append(self._row(name, *rule))
        return rows, unknown

    def repeated(self, names, runner):
        """Compute some outputs with another runner and compare them twice: ({name: Row}, {name: Row}).

        The first rows are against what this comparison has computed, the second against what is recorded.

        Args:
            names: of outputs.
            runner: of another model with the same methods.
        """
        other = Comparison(self.recorded, self.config, runner)
        other.starts = self.starts
        recorded = {row.output: row for row in other.rows(names)[0]}
        other.recorded = {**self.recorded, **{name: self.computed[name] for name in names}}
        return {row.output: row for row in other.rows(names)[0]}, recorded

    def _rule(self, name):
        """(function that computes the output, tolerance), or None for a name that is not known."""
        kind, _, rest = name.partition("/")
        if kind not in ("quant", "noquant"):
            found = re.fullmatch(r"engram_hashes(_image)?([1-9]\d*)", name)
            return found and (lambda: self._hashes(int(found[2]), bool(found[1])), 0.0)
        quantized = kind == "quant"
        if found := re.fullmatch(r"prefill([1-9]\d*)/(logits|main_hidden)", rest):
            return lambda: self._prefill(quantized, int(found[1]))[found[2]], PREFILL_TOLERANCE
        if found := re.fullmatch(r"image([1-9]\d*)/(logits|main_hidden)", rest):
            return lambda: self._image(kind, int(found[1]))[found[2]], PREFILL_TOLERANCE
        if found := re.fullmatch(r"topk_idxs_L(\d+)", rest):
            return lambda: self._choices(name, quantized, int(found[1])), 0.0
        if rest in ("decode/logits", "decode_stale_index_k/logits"):
            return lambda: self._decode(kind, rest.split("/")[0], name, "logits"), DECODE_TOLERANCE
        if found := re.fullmatch(r"draft/(ids|logits|conf)", rest):
            part = "draft_logits" if found[1] == "logits" else found[1]
            return lambda: self._decode(kind, "decode", name, part), 0.0 if part == "ids" else DECODE_TOLERANCE
        return None

    def _row(self, name, compute, tolerance):
        expected = self.recorded[name]
        if expected.dtype.kind not in "fiu":
            return Row(name, np.inf, tolerance, f"it must hold real numbers; got {expected.dtype}")
        try:
            got = self.computed[name] = compute()
        except MissingInputError:
            raise
        except (ValueError, IndexError, OverflowError, RuntimeError, MemoryError) as error:
            return Row(name, np.inf, tolerance, f"it cannot be computed: {' '.join(str(error).split())}")
        if got is None:
            return Row(name, np.inf, tolerance, "the configuration describes a model without such an output")
        if np.shape(got) != expected.shape:
            return Row(name, np.inf, tolerance, f"recorded {list(expected.shape)}, computed {list(np.shape(got))}")
        if not tolerance:
            return Row(name, float(np.count_nonzero(got != expected)), tolerance)
        return Row(name, float(np.abs(got - expected.astype(np.float64)).max(initial=0)), tolerance)

    # The runs

    def _input(self, name):
        if name not in self.recorded:
            raise MissingInputError(f"the file must hold {name!r}; it does not, so nothing can be computed from it")
        return np.asarray(self.recorded[name], np.int64)

    def _once(self, key, run):
        if key not in self.runs:
            self.runs[key] = run()
        return self.runs[key]

    def _prefill(self, quantized, tokens):
        ids = self._input("ids")
        if tokens > ids.shape[1]:
            raise ValueError(f"it needs {tokens} tokens; ids holds {ids.shape[1]}")
        return self._once(("prefill", quantized, tokens), lambda: self.runner.prefill(ids[:, :tokens], quantized))

    def _image(self, kind, tokens):
        ids, types = self._input(f"{kind}/image{tokens}/ids"), self._input(f"{kind}/image{tokens}/types")
        return self._once(("image", kind, tokens), lambda: self.runner.prefill(ids, kind == "quant", types))

    def _hashes(self, tokens, image):
        if not image:
            return self._prefill(False, tokens)["hashes"]
        kind = next((k for k in ("noquant", "quant") if f"{k}/image{tokens}/ids" in self.recorded), "noquant")
        return self._image(kind, tokens)["hashes"]

    def _choices(self, name, quantized, layer):
        plans, shape = self.config.schedule()[: self.config.n_layers], self.recorded[name].shape
        chooser = plans[layer].chooser if layer < len(plans) else None
        if chooser is None:
            return None
        if len(shape) != 3 or not shape[1]:
            raise ValueError(f"it must be [B T K]; got {list(shape)}")
        choices = self._prefill(quantized, shape[1])["choices"][chooser]
        return np.where(choices < 0, -1, choices + shape[1])

    def _decode(self, kind, what, name, part):
        """One part of a decode, [B R …], for as many steps as are recorded of it."""
        shape, ids = self.recorded[name].shape, self._input("ids")
        if part != "logits" and not self.config.n_mtp_layers:
            return None
        if len(shape) < 2 or not shape[1]:
            c, block = self.config, self.config.dspark_block_size
            sizes = {"logits": (c.vocab_size,), "ids": (1 + block,), "draft_logits": (block, c.vocab_size)}
            return np.empty((len(ids), 0, *sizes.get(part, (block,))))
        given = self._given(kind, part) if what == "decode" else None
        steps = max(shape[1], *(self._steps(f"{kind}/{other}") for other in (f"{what}/logits", "draft/ids")))
        start = self._start(kind, steps)
        ids, stale, quantized = ids[:, : start + steps], what != "decode", kind == "quant"
        key = (kind, what, steps, given is None)
        run = self._once(key, lambda: self.runner.decode(ids, start, quantized, stale, given))
        return run[part][:, : shape[1]]

    def _steps(self, name):
        recorded = self.recorded.get(name)
        return 0 if recorded is None or recorded.ndim < 2 else recorded.shape[1]

    def _given(self, kind, part):
        """The tokens that drafts were made after: [B R], or None."""
        name, c = f"{kind}/draft/ids", self.config
        if part == "logits" and (name not in self.recorded or not c.n_mtp_layers):
            return None
        drafts = self._input(name)
        fits = drafts.dtype.kind in "iu" and drafts.ndim == 3 and len(drafts) == len(self._input("ids")) and drafts.size
        if fits and drafts[..., 0].min() >= 0 and drafts[..., 0].max() < c.vocab_size:
            return drafts[..., 0]
        if part == "logits":
            return None
        raise ValueError(f"{name} must begin with ids 0 … {c.vocab_size - 1}, [B R 1+block]; got {list(drafts.shape)}")

    def _start(self, kind, steps):
        """How many tokens were there before the decoded ones: all others, unless the logits say something else."""
        last = self._input("ids").shape[1] - steps
        if last < 0:
            raise ValueError(f"it needs {steps} tokens to decode; ids holds {steps + last}")
        recorded = self.recorded.get(f"{kind}/decode/logits")
        if (kind, steps) not in self.starts:
            self.starts[kind, steps] = last
            logits = self._prefill(kind == "quant", steps + last)["logits"]  # a position's are the same in both ways
            if recorded is not None and recorded[:, :1].shape == logits[:, :1].shape:
                gaps = np.abs(logits[:, : last + 1] - recorded[:, :1]).max(axis=(0, 2))
                if gaps[last] > DECODE_TOLERANCE >= gaps.min():
                    self.starts[kind, steps] = int(gaps.argmin())
        return self.starts[kind, steps]
