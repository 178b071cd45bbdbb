"""How much does a cache entry lose in each format? Measured on synthetic latents of width 512.

    python -m deepseek_edu.experiments.fp4_error [--seed 7] [--out assets/runs/fp4_error.json]

Latents are drawn from a Gaussian or from a Student t distribution with three degrees of freedom (heavy tails: a few
channels far above the rest) and RMS-normalised, as the compressor's output is. Three formats are those of the model's
caches. Two more, which the model does not use, exchange only the block size or only the scale, so that the two
differences between its four-bit formats can be told apart.

Evidence label of every number here: measured. Not measured: real latents, whose tails differ and whose channels
depend on each other; anything about time; any effect on text.
"""

from dataclasses import dataclass

import numpy as np

from deepseek_edu.experiments.record import chart, parser, significant, surroundings, write_record
from deepseek_edu.reference import quant

WIDTH = 512
ENTRIES = 1024
SEED = 7
REPEATS = 5
DEGREES_OF_FREEDOM = 3

LATENTS = {"gaussian": "Gaussian", "heavy": "heavy-tailed"}


@dataclass(frozen=True)
class Format:
    """A way to store an entry: its name, which cache uses it, bits of a code, block size and kind of scale."""

    name: str
    used_for: str
    bits: int
    block: int
    scale_kind: str

    def read_back(self, x):
        """Return x, float32 (entries, width), after storing and reading."""
        if self.bits == 8:
            return quant.quantize_fp8(x, self.block).values
        return quant.quantize_fp4(x, self.block, self.scale_kind).values

    def bytes_of(self, width):
        """Bytes of one entry of the given width."""
        return (quant.fp8_bytes if self.bits == 8 else quant.fp4_bytes)(width, self.block)


FORMATS = (
    Format("FP4, E4M3 per 16", "main KV cache", 4, 16, "e4m3"),
    Format("FP4, power of two per 32", "index queries and keys", 4, 32, "e8m0"),
    Format("FP8, power of two per 32", "window KV cache", 8, 32, "e8m0"),
    Format("FP4, power of two per 16", "comparison only", 4, 16, "e8m0"),
    Format("FP4, E4M3 per 32", "comparison only", 4, 32, "e4m3"),
)

COLUMNS = (
    "latents",
    "format",
    "used for",
    "relative RMS error",
    "stored as zero",
    "bytes per entry",
    "spread over 5 seeds",
    "signal to noise (dB)",
    "largest error",
    "5 % of entries below",
    "median entry",
    "95 % of entries below",
)


def latents(kind, entries=ENTRIES, seed=SEED):
    """Return RMS-normalised latents, float32 (entries, 512): each row has mean square 1.

    Args:
        kind: "gaussian" or "heavy".
        entries: number of rows.
        seed: of NumPy's default generator.

    Raises:
        ValueError: another kind.
    """
    rng = np.random.default_rng(seed)
    if kind == "gaussian":
        x = rng.standard_normal((entries, WIDTH))
    elif kind == "heavy":
        x = rng.standard_t(DEGREES_OF_FREEDOM, (entries, WIDTH))
    else:
        raise ValueError(f"kind must be one of {', '.join(LATENTS)}; got {kind!r}")
    return (x / np.sqrt(np.mean(x**2, axis=1, keepdims=True))).astype(np.float32)


def measure(x, read_back):
    """Return the error figures of one format on latents x.

    Args:
        x: float32 (entries, width), mean square 1 per row, so that errors are in units of an entry's RMS.
        read_back: float32, the same shape.

    Returns:
        dict: `relative` (root mean square of the error over that of x), `snr` (the same in decibels), `largest`
        (absolute error), `zeros` (share of values read back as zero) and `per_entry` (relative error of each row).
    """
    error = read_back.astype(np.float64) - x
    relative = float(np.sqrt(np.mean(error**2) / np.mean(x.astype(np.float64) ** 2)))
    return {
        "relative": relative,
        "snr": -20 * float(np.log10(relative)),
        "largest": float(np.abs(error).max()),
        "zeros": float(np.mean(read_back == 0)),
        "per_entry": np.sqrt(np.mean(error**2, axis=1)),
    }


def measure_all(seed=SEED, entries=ENTRIES, repeats=REPEATS):
    """Return {(kind, format name): figures of the first seed, with `spread` of `relative` over all seeds}."""
    figures = {}
    for kind in LATENTS:
        samples = [latents(kind, entries, seed + repeat) for repeat in range(repeats)]
        for form in FORMATS:
            runs = [measure(x, form.read_back(x)) for x in samples]
            errors = [run["relative"] for run in runs]
            figures[kind, form.name] = {**runs[0], "spread": max(errors) - min(errors)}
    return figures


def table(figures):
    """Return the rows of the record, one per kind of latents and format, numbers to four significant digits."""
    rows = []
    for kind, words in LATENTS.items():
        for form in FORMATS:
            f = figures[kind, form.name]
            first = map(significant, (f["relative"], f["zeros"]))
            rest = [f["spread"], f["snr"], f["largest"], *np.quantile(f["per_entry"], [0.05, 0.5, 0.95]).tolist()]
            rows.append([words, form.name, form.used_for, *first, form.bytes_of(WIDTH), *map(significant, rest)])
    return rows


def charts(figures):
    """Return two bar charts over the formats that the model uses: relative error, and the share stored as zero."""
    used = [form.name for form in FORMATS if form.used_for != "comparison only"]

    def bars(title, y_label, description, key):
        series = [
            (words, used, [significant(100 * figures[kind, name][key]) for name in used])
            for kind, words in LATENTS.items()
        ]
        parts = (
            f"{words}: " + ", ".join(f"{n} {y:g} %" for n, y in zip(x, ys, strict=True)) for words, x, ys in series
        )
        description = f"{description} {'. '.join(parts)}."
        return chart(title, description, ("format", "category"), (y_label, "linear"), "bar", series)

    return [
        bars(
            "Error of a stored entry",
            "relative RMS error (%)",
            "Root mean square of the error relative to that of the entry.",
            "relative",
        ),
        bars(
            "Values that are lost altogether",
            "values stored as zero (%)",
            "Share of the values, none of them zero, that read back as zero.",
            "zeros",
        ),
    ]


def run(seed=SEED):
    """Return the whole record."""
    figures = measure_all(seed)
    return {
        "id": "fp4_error",
        "title": "Error of four-bit and eight-bit cache entries on synthetic latents",
        "label": "measured",
        "command": f"python -m deepseek_edu.experiments.fp4_error --seed {seed}",
        "seed": seed,
        "model": f"synthetic latents, not a trained model: {ENTRIES} entries of width {WIDTH}, RMS 1",
        **surroundings(),
        "columns": list(COLUMNS),
        "rows": table(figures),
        "notes": [
            f"Heavy-tailed: Student t with {DEGREES_OF_FREEDOM} degrees of freedom, then RMS-normalised.",
            "Errors are in units of an entry's root mean square. 'Spread' is the range of the relative error over "
            f"{REPEATS} seeds; the other columns belong to the first seed.",
            "Formats marked 'comparison only' are not used by the model.",
        ],
        "charts": charts(figures),
    }


def main(arguments=None):
    """Measure, print the table and write the record."""
    options = parser("fp4_error", __doc__, SEED).parse_args(arguments)
    record = run(options.seed)
    for row in record["rows"]:
        print(f"{row[0]:<13} {row[1]:<25} {row[5]:>4} B  error {row[3]:.4f}  SNR {row[7]:5.2f} dB  zeros {row[4]:.4f}")
    write_record(record, options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
