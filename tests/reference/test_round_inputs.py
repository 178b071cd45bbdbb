"""Rounding to FP8 what quantised matrices multiply: by exact fractions, and in a whole model by the plain one."""

import re
from fractions import Fraction

import numpy as np
import pytest

from deepseek_edu.config import ModelConfig
from deepseek_edu.reference import dspark, linear
from deepseek_edu.reference import model as models
from deepseek_edu.reference.weights import random_weights, weight_shapes

from ..plain_model import PlainModel
from . import fractions_oracle as exact
from .tiny import gap

EVEN = ModelConfig.tiny(q_lora_rank=32, o_lora_rank=16, moe_inter_dim=32)
"""The tiny model with widths that are whole blocks of 32."""
TOKEN_MAP = np.arange(96) // 2


def exactly_rounded(row):
    """A row of floats in blocks of 32, each number its nearest E4M3 number times the block's power of two."""
    rounded = []
    for begin in range(0, len(row), 32):
        block = [Fraction(float(x)) for x in row[begin : begin + 32]]
        scale = exact.fp8_scale(max(map(abs, block)))
        for x in block:
            size = exact.E4M3[exact.nearest(abs(x) / scale, exact.E4M3)] * scale
            rounded.append(size if x > 0 else -size)
    return rounded


def test_a_product_is_that_of_exactly_rounded_numbers():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 96)) * 2.0 ** rng.integers(-20, 12, (6, 3)).repeat(32, axis=1)
    x = x.astype(np.float32)
    x[4, 32:64] = 0
    weight = rng.integers(-8, 9, (5, 96)) / 8
    expected = [
        [float(sum(a * Fraction(b) for a, b in zip(exactly_rounded(row), line, strict=True))) for line in weight]
        for row in x
    ]
    got = linear.product(x.astype(float), linear.RoundedInput(weight))
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert gap(got[0], x[0] @ weight.T) > 1e-4 * np.abs(got[0]).max()
    assert linear.round_input(x.astype(np.float32)).dtype == np.float32


def test_blocks_of_v4_hold_128_numbers():
    """With 448 in its block a number has the scale 1, in which 0.003 lies between 1 and 2 steps of 2**-9."""
    x = np.full(128, 0.003)
    x[127] = 448.0
    assert linear.round_input(x, 128)[0] == linear.round_input(x, 32)[96] == 2 * 2.0**-9
    assert abs(linear.round_input(x, 32)[0] - 0.003) < 0.003 / 16


def test_the_matrices_that_the_release_stores_in_few_bits_are_marked_and_no_others():
    """By hand, from the table of storage formats (specification, 1.3): fp8 and fp4 there, bf16, fp32 and norms not."""
    shapes = weight_shapes(EVEN)
    kinds = {re.sub(r"(layers|mtp|experts)\.\d+", r"\1.N", name) for name in shapes if linear.QUANTISED.search(name)}
    in_any_layer = [f"attn.{name}" for name in ("wq_a", "wq_b", "wkv", "wo_b")]
    in_any_layer += [f"ffn.{who}.w{n}" for who in ("experts.N", "shared_experts") for n in (1, 2, 3)]
    expected = {f"{where}.N.{name}.weight" for where in ("layers", "mtp") for name in in_any_layer}
    expected |= {"layers.N.attn.indexer.wq_b.weight", "layers.N.engram.wkv.weight", "mtp.N.main_proj.weight"}
    assert kinds == expected


@pytest.mark.parametrize("quantized", [False, True])
def test_a_whole_model_agrees_with_the_plain_one(quantized):
    """Prefill, decode and drafts; with rounding the two agree until a number falls to another side of a boundary."""
    weights = {n: a.astype(np.float32) for n, a in random_weights(EVEN, 3).items() if not n.startswith("vision.")}
    ids = np.random.default_rng(4).integers(0, 96, 24)
    plain = PlainModel(EVEN, weights, TOKEN_MAP, quantized, np.float64, round_inputs=True)
    expected = np.array([plain.step(token) for token in ids])
    draft_ids, draft_logits, sure = plain.draft(7)
    model = models.Model(EVEN, weights, TOKEN_MAP, round_inputs=True)
    cache = model.new_cache(quantized)
    got = [model.prefill(ids[:13], cache).logits, *(model.decode(token, cache).logits for token in ids[13:])]
    assert gap(np.concatenate(got), expected) < 1e-9
    draft = dspark.draft(7, 24, model, cache)
    assert draft.ids.tolist() == draft_ids.tolist()
    assert gap(draft.logits, draft_logits) < 1e-9 and gap(draft.confidence, sure) < 1e-9
    exactly = models.Model(EVEN, weights, TOKEN_MAP)
    whole = exactly.prefill(ids, exactly.new_cache(quantized)).logits
    assert gap(whole, expected) > 1e-3  # the rounding is felt


def test_widths_that_are_no_whole_blocks_are_listed():
    config = ModelConfig.tiny()
    with pytest.raises(ValueError, match=r"multiple of 32 columns; got layers\.0\.attn\.wq_b\.weight \(128, 16\)"):
        models.Model(config, random_weights(config, 0), TOKEN_MAP, round_inputs=True)
