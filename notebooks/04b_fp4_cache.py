# %% [markdown]
# # Measure what four bits lose
#
# The main KV cache of DeepSeek-V4.1-Flash keeps each value in four bits, with one scale for every 16 values.
# In this notebook you store one block by hand, then thousands of entries, and measure what does not come back.
#
# | | |
# |---|---|
# | You need | arrays in Python; the [chapter on the four-bit cache](../04b_fp4_cache.md) helps, but is not required |
# | Time | a few seconds; at most 60 s on two CPU cores |
# | Memory | under 1 GB; no GPU, nothing is downloaded |
# | Repeatable | every random draw takes a seed, so a second run prints the same numbers |
# | Evidence | numbers printed below are **measured**, on synthetic latents and not on a trained model |
#
# Each experiment begins with a question. Write your answer down before you run the cell. A wrong guess is worth more
# than no guess.

# %%
import platform

import numpy as np
from IPython.display import display

import deepseek_edu
from deepseek_edu.drawing.chart import Axis, Chart, Series
from deepseek_edu.experiments import fp4_error
from deepseek_edu.grading import grade
from deepseek_edu.reference import quant

print(f"Python {platform.python_version()}, NumPy {np.__version__}, deepseek-edu {deepseek_edu.__version__}")

# %% [markdown]
# ## One value
#
# Four bits hold a sign and one of eight magnitudes: 0, 0.5, 1, 1.5, 2, 3, 4, 6. The code counts the magnitudes.
# A value exactly halfway between two of them goes to the one with the **even code**.
#
# **Predict.** What do 2.4, 2.5, 2.6, 3.5, 5.0, 7.0 and −0.1 become? Three of them are ties.

# %%
values = np.array([2.4, 2.5, 2.6, 3.5, 5.0, 7.0, -0.1])
codes = quant.encode_e2m1(values)
levels = quant.decode_e2m1(codes)

print("  value   code  bits   stored   error")
for value, code, level in zip(values, codes, levels, strict=True):
    print(f"{value:7.1f}  {code:5d}  {code:04b}  {level:7.1f}  {level - value:+6.1f}")

# %% [markdown]
# 2.5 goes down to 2 (code 4) and 3.5 goes up to 4 (code 6). 7.0 is beyond the last magnitude and is clipped. −0.1
# becomes a zero that remembers its sign: code 8.
#
# Here is the rule beside the two that are easily written by mistake. The last column is the mean error of the seven.

# %%
ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
print("tie   " + "".join(f"{tie:6.2f}" for tie in ties) + "   mean error")
for rule in quant.TIE_RULES:
    stored = quant.round_to_e2m1(ties, rule)
    print(f"{rule:6s}" + "".join(f"{level:6.1f}" for level in stored) + f"  {np.mean(stored - ties):+10.3f}")

# %% [markdown]
# Away from zero makes every tie larger, toward zero makes every tie smaller. To the even code, gains and losses mostly
# cancel; what is left here comes from the wide gap between 4 and 6.
#
# ## One block by hand
#
# Sixteen numbers, nine bytes. These sixteen are invented.
#
# **Predict.** The largest magnitude is 7. The scale is the E4M3 number nearest to 7/6 = 1.1667, and the numbers around
# it are 1.125 and 1.25. What will 7 read back as?

# %%
block = np.array([7, 1, -3.5, 0.4, -0.1, 2.2, -1.7, 0, 3.3, -0.6, 0.9, -2.4, 1.4, -0.2, 0.3, -1])

largest = np.abs(block).max()
scale = quant.scale_e4m3_for_fp4(largest)
quotients = block / scale
codes = quant.encode_e2m1(quotients)
packed = quant.pack_nibbles(codes)
read_back = quant.decode_e2m1(codes) * scale

print(f"amax {largest}, amax/6 = {largest / 6:.4f}, scale {scale}, scale byte {quant.encode_e4m3(scale):02x}")
print("codes ", " ".join(f"{code:x}" for code in codes))
print("packed", " ".join(f"{byte:02x}" for byte in packed), f"and the scale byte: {packed.size + 1} bytes")
print("    value  quotient  code  read back   error")
for value, quotient, code, back in zip(block, quotients, codes, read_back, strict=True):
    print(f"{value:9.1f}  {quotient:8.3f}  {code:4d}  {back:9.4f}  {back - value:+6.3f}")

# %% [markdown]
# The quotient of 7 is 6.22, a little beyond the last magnitude, because the scale was rounded *down*. So 7 reads back
# as 6.75. Nobody rounds this scale up to prevent it: that would make every other value of the block coarser.
#
# Two codes share a byte, the even channel in the low four bits. Compare the rows of codes and bytes: 7 and 2 became
# `27`.
#
# One call does all of it. The next cell checks that nothing was hidden.

# %%
stored = quant.quantize_fp4(block)
assert np.array_equal(stored.packed, packed)
assert np.array_equal(stored.values, read_back.astype(np.float32))
from_bytes = quant.dequantize_fp4(stored.packed, stored.scale_bytes)
assert np.array_equal(from_bytes, stored.values)
print(f"{stored.nbytes} bytes stored; they alone give back: {from_bytes[:3]} ...")

# %% [markdown]
# ## Two ways to choose a scale
#
# The main cache uses an E4M3 scale, rounded to nearest. The index keys use a power of two, rounded up. Divide the
# largest value of a block by its scale: 6 would be perfect, since 6 is the last magnitude. Above 6 the largest value
# is clipped. At 3, the magnitudes 4 and 6 are not used by anyone in the block.
#
# **Predict.** Let the largest value grow from 6 to 24. How far from 6 does the quotient move under each rule?

# %%
amax = np.linspace(6, 24, 361)
quotient_e4m3 = amax / quant.scale_e4m3_for_fp4(amax)
quotient_e8m0 = amax / quant.scale_e8m0_for_fp4(amax)

print(f"E4M3 scale:   quotient from {quotient_e4m3.min():.2f} to {quotient_e4m3.max():.2f}")
print(f"power of two: quotient from {quotient_e8m0.min():.2f} to {quotient_e8m0.max():.2f}")
display(
    Chart(
        "Where the largest value of a block lands",
        "Largest value divided by its scale. With an E4M3 scale it stays near 6. With a power of two it falls to 3 "
        "each time the scale doubles, and climbs back to 6.",
        x=Axis("largest value of the block (amax)"),
        y=Axis("amax / scale", low=0, high=7),
        series=[
            Series("E4M3, nearest (main cache)", amax, quotient_e4m3),
            Series("power of two, rounded up (index keys)", amax, quotient_e8m0),
        ],
    )
)

# %% [markdown]
# ## Whole entries
#
# An entry of the main cache has 512 values and was normalised before it was stored: its mean square is 1. We draw two
# kinds of such entries.
#
# * **Gaussian**: well behaved, hardly anything beyond 4.
# * **Heavy-tailed** (Student t, three degrees of freedom): a few channels stand far out, as they do in many networks.
#
# **Predict.** Heavy tails mean that one large value sets the scale of its 15 neighbours. Does the relative error of the
# main-cache format grow, and by how much? And that of the format with a power of two per 32 values?

# %%
entries = {kind: fp4_error.latents(kind) for kind in fp4_error.LATENTS}
for kind, x in entries.items():
    print(f"{kind:9s} {x.shape}, largest magnitude {np.abs(x).max():.1f} (no entry can exceed {512**0.5:.1f})")

used = [form for form in fp4_error.FORMATS if form.used_for != "comparison only"]
figures = {(kind, form): fp4_error.measure(x, form.read_back(x)) for kind, x in entries.items() for form in used}

print("\nlatents    format                     bytes   RMS error  SNR (dB)  largest  stored as 0")
for (kind, form), f in figures.items():
    numbers = f"{100 * f['relative']:8.2f} %  {f['snr']:8.1f}  {f['largest']:7.2f}  {100 * f['zeros']:9.1f} %"
    print(f"{kind:9s}  {form.name:25s}  {form.bytes_of(512):5d}  {numbers}")

# %%
display(
    Chart(
        "Error of an entry, by format and kind of latents",
        "Relative RMS error in percent. Heavy tails leave the main-cache format and FP8 where they were; the format "
        "with a power of two per 32 values gets clearly worse.",
        x=Axis("format", kind="category"),
        y=Axis("relative RMS error (%)", low=0),
        series=[
            Series(words, [f.name for f in used], [100 * figures[kind, f]["relative"] for f in used], kind="bar")
            for kind, words in fp4_error.LATENTS.items()
        ],
    )
)

# %% [markdown]
# If you expected the main-cache format to suffer, look again: its relative error did **not** grow. The largest values
# carry most of an entry's energy, and an E4M3 scale puts exactly those near 6, where they are stored well. What does
# grow is the share of values stored as zero. Whether that matters, an RMS error cannot say. One number is never the
# whole story of a format.
#
# ## Where the error sits
#
# **Predict.** Sort the values of the heavy-tailed entries by magnitude. For which of them is the FP8 error smaller than
# the FP4 error by the largest factor: small, middle or large ones?

# %%
x = entries["heavy"].astype(np.float64)
edges = np.geomspace(0.01, 16, 25)
middles = np.sqrt(edges[:-1] * edges[1:])
which = np.digitize(np.abs(x), edges) - 1  # entry channel


def error_by_magnitude(form):
    """RMS error of the values in each magnitude bin, relative to the RMS of those values."""
    error = form.read_back(entries["heavy"]) - x
    bins = [which == k for k in range(len(middles))]
    return np.array([np.sqrt(np.mean(error[b] ** 2) / np.mean(x[b] ** 2)) for b in bins])


curves = {form.name: error_by_magnitude(form) for form in used}
print("magnitude  " + "  ".join(f"{name:>25s}" for name in curves))
for k in range(0, len(middles), 4):
    print(f"{middles[k]:9.3f}  " + "  ".join(f"{100 * curve[k]:23.1f} %" for curve in curves.values()))

display(
    Chart(
        "Relative error of a value, by its magnitude",
        "On logarithmic axes. FP8 stays near 3 percent over the whole range. Both FP4 curves are at 100 percent for "
        "small magnitudes, which are stored as zero. For the largest ones the main-cache format falls to about "
        "3 percent and the one with a power of two stays near 10.",
        x=Axis("magnitude (in units of the entry's RMS)", kind="log"),
        y=Axis("relative RMS error (%)", kind="log"),
        series=[Series(name, middles, 100 * curve) for name, curve in curves.items()],
    )
)

# %% [markdown]
# The small ones. An error of 100 % means that the value is gone: it came back as zero. Four bits leave eight
# magnitudes, so a block cannot hold a 7 and a 0.1 at once. FP8 has 127 magnitudes and can.
#
# ## Block size or kind of scale?
#
# The two four-bit formats differ in two things at once: 16 or 32 values per scale, and E4M3 or a power of two. To know
# which one matters, change one thing at a time.
#
# **Predict.** Which single change brings the index-key format closer to the main-cache format?

# %%
by_parts = {(f.block, f.scale_kind): f for f in fp4_error.FORMATS if f.bits == 4}
for kind, x in entries.items():
    print(f"{kind}: relative RMS error")
    for block_size in (16, 32):
        errors = [
            fp4_error.measure(x, by_parts[block_size, scale_kind].read_back(x))["relative"]
            for scale_kind in ("e4m3", "e8m0")
        ]
        print(f"   one scale per {block_size}:  E4M3 {100 * errors[0]:5.2f} %   power of two {100 * errors[1]:5.2f} %")

# %% [markdown]
# On these latents the kind of scale matters more than the block size. The finer scale costs no extra byte; the
# smaller block costs 16 bytes per entry.
#
# ## Your turn: change the group size
#
# Smaller groups fit their scale better and pay for more scale bytes. Change `sizes` or `kind` and run the cell again.
# Can you find a group size that is better in both bytes and error than the one DeepSeek uses? What does that say about
# the choice?

# %%
sizes = [8, 16, 32, 64, 128]
kind = "heavy"

x = entries[kind]
results = []
for size in sizes:
    relative = fp4_error.measure(x, quant.quantize_fp4(x, size).values)["relative"]
    results.append((quant.bits_per_value(size), 100 * relative))
    print(
        f"groups of {size:3d}: {quant.fp4_bytes(512, size)} bytes per entry, relative RMS error {100 * relative:.2f} %"
    )

display(
    Chart(
        "What a smaller group buys",
        "Relative RMS error against bits per value for groups of 128 (left) to 8 (right), with an E4M3 scale. "
        "Each halving of the group costs more bits than the one before.",
        x=Axis("bits per value, scale included", low=4, high=5.1),
        y=Axis("relative RMS error (%)", low=0, high=16),
        series=[
            Series(
                "E4M3 scale",
                [bits for bits, _ in results],
                [error for _, error in results],
                kind="points",
                text=[str(size) for size in sizes],
            )
        ],
    )
)

# %% [markdown]
# ## Half the bits, twice the speed?
#
# Bytes can be counted here. Time cannot: it belongs to a machine, a program and a batch, and this notebook measures
# none. The next cell is arithmetic only.

# %%
in_bf16 = 512 * 2
in_fp8 = quant.fp8_bytes(512, 32)
in_fp4 = quant.fp4_bytes(512, 16)
print(f"bytes of one entry: BF16 {in_bf16}, FP8 {in_fp8}, FP4 {in_fp4}")
print(f"from FP8 to FP4: {in_fp8 / in_fp4:.2f} times fewer bytes, not 2: the FP4 entry has 32 scales, the FP8 entry 16")
for share in (0.1, 0.5, 0.9):
    faster = 1 / (1 - share + share * in_fp4 / in_fp8)
    print(f"if reading FP8 entries were {share:.0%} of a step and time went by bytes alone: {faster:.2f} times faster")

# %% [markdown]
# The shares in the last three lines are **illustrative**: nobody measured them. They show the shape of the answer.
#
# ## Write it yourself
#
# The lab asks for four short functions. The cell below holds the starter: nothing in it works yet, and the report says
# so. Fill in one function, run the cell, read the first failing case, go on. Lists go in and lists come out; the
# rules are in the [chapter](../04b_fp4_cache.md).

# %%
LEVELS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def choose_scale(values: list[float]) -> float:
    """Return the scale of a group: the largest magnitude divided by 6, as the nearest E4M3 number.

    At least 2**-9, at most 448.
    """
    raise NotImplementedError("choose_scale is yours to write")


def encode(values: list[float], scale: float) -> list[int]:
    """Return one code from 0 to 15 for each value: bit 3 is the sign, the lower bits are the position in LEVELS.

    Divide by the scale, clip to ±6, take the nearest level, a tie to the even code.
    """
    raise NotImplementedError("encode is yours to write")


def decode(codes: list[int], scale: float) -> list[float]:
    """Return the value of each code: its level times the scale, with its sign. Code 8 is -0.0."""
    raise NotImplementedError("decode is yours to write")


def pack(codes: list[int]) -> list[int]:
    """Return one byte (0 to 255) for two codes: the even position in the low four bits, the odd one in the high."""
    raise NotImplementedError("pack is yours to write")


report = grade("fp4-codes", choose_scale, encode, decode, pack)
display(report)

# %% [markdown]
# ## Limits
#
# * The latents are synthetic. Real ones have other tails, and their channels depend on each other.
# * All errors are per value. What they do to attention and to text is not measured here. The model was trained with
#   this rounding in place; a model that was not may react differently.
# * The rounding rules agree bit for bit with recorded outputs of a public PyTorch port of the released kernels. The
#   kernels' own source was not seen.
#
# ## Sources
#
# * Formats, block sizes, scales, and why no second scale is needed: technical report of DeepSeek-V4.1-Flash,
#   section 2.4.4 (**report**).
# * Tie rule, rounding of the scales, floors, packing: kernels `fp4_act_quant` and `act_quant`, read in a public PyTorch
#   port that cites their lines; their own source was not seen (**third party**).
# * All errors: this notebook and `python -m deepseek_edu.experiments.fp4_error`, seed 7 (**measured**).
