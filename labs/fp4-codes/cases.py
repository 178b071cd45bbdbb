"""Cases of the lab: groups of numbers whose codes, scales and bytes `deepseek_edu.reference.quant` knows.

All inputs are short binary fractions: in float32 and in float64 a quotient falls on the same side of every midpoint.
"""

from deepseek_edu.grading import Case
from deepseek_edu.reference import quant

LEVELS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
MIDPOINTS = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
SCALES = [2.0**-9, 5 * 2.0**-9, 2.0**-6, 0.4375, 1.0, 1.125, 3.75, 14.0, 448.0]


def visible():
    """The cases a learner sees."""
    ramp = [0.3, -1.1, 3.2, 5.9, -0.6, 2.2, -4.4, 0.0] * 2
    return [
        _scale("scale-typical", [12.0, -3.0, 0.5, 7.5] * 4, "12 / 6 = 2 is an E4M3 number"),
        _scale("scale-rounds-down", [7.0, 1.0, -3.5] + [0.0] * 13, "7 / 6 lies nearer to 1.125 than to 1.25"),
        _scale("scale-negative", [-22.625, 3.0, 0.25, -1.0] * 4, "the largest magnitude belongs to a negative value"),
        _scale("scale-zero-group", [0.0] * 16, "a group of zeros still has a scale"),
        _scale("scale-subnormal", [0.0625, -0.03125] * 8, "below 2**-6 the scale is a multiple of 2**-9"),
        _scale("scale-saturates", [3000.0, -1.0] * 8, "the largest E4M3 number is 448"),
        _encode("encode-levels", LEVELS + [-level for level in LEVELS[1:]], 1.0, "each level has its own code"),
        _encode("encode-nearest", ramp, 1.0, "3.2 is nearest to 3, code 5"),
        _encode("encode-ties", MIDPOINTS + [-m for m in MIDPOINTS], 1.0, "halfway goes to the even code"),
        _encode("encode-scaled", [7.0, 1.0, -3.5, 0.0], 1.125, "divide by the scale first; 7 / 1.125 is clipped"),
        _encode("encode-clipped", [6.5, -100.0, 7.0, -8.0, 1e6, 5.5], 1.0, "what is beyond 6 becomes 6"),
        _encode("encode-signed-zero", [0.0, -0.0, -0.2, 0.2, -0.25], 1.0, "a zero keeps its sign"),
        _decode("decode-all", list(range(16)), 1.0, "all sixteen codes; code 8 is -0.0"),
        _decode("decode-scaled", [7, 2, 13, 0, 8], 1.125, "the level times the scale"),
        _pack("pack-order", [1, 2, 7, 8, 15, 0], "the even position is in the low four bits"),
        _pack("pack-group", list(range(16)), "sixteen codes, eight bytes"),
    ]


def generate(rng, index):
    """The hidden case of one index: every kind and every edge of the formats comes with each seed."""
    return KINDS[index](rng, f"hidden-{index + 1:02d}")


def _hidden_scale(rng, name):
    top = rng.choice([0.125, 1.0, 16.0, 256.0])
    return _scale(name, [_number(rng, top) for _ in range(16)], "the scale of a group")


def _hidden_encode(rng, name):
    scale = rng.choice(SCALES)
    values = [_number(rng, 7.0) for _ in range(10)]
    values += [rng.choice([-1, 1]) * rng.choice([6.5, 7.5, 10.0, 100.0]) for _ in range(3)]
    values += [-0.0, -rng.randrange(1, 16) / 64, 0.0]
    rng.shuffle(values)
    return _encode(name, [value * scale for value in values], scale, "codes of a group")


def _hidden_ties(rng, name):
    scale = rng.choice(SCALES)
    values = [rng.choice([-1, 1]) * rng.choice(MIDPOINTS) * scale for _ in range(8)]
    near = [value * (1 + rng.choice([-1, 1]) / 1024) for value in values]
    return _encode(name, values + near, scale, "values halfway between two levels, and beside it")


def _hidden_decode(rng, name):
    return _decode(name, [rng.randrange(16) for _ in range(15)] + [8], rng.choice(SCALES), "values of a group of codes")


def _hidden_pack(rng, name):
    return _pack(name, [rng.randrange(16) for _ in range(rng.choice([8, 16, 32]))], "bytes of a group of codes")


def _edge(draw_amax):
    """A kind of hidden case: a scale at an edge of E4M3, from a function that draws the largest magnitude."""

    def make(rng, name):
        amax = draw_amax(rng)
        values = [rng.choice([-0.0, amax / 2, -amax / 4]) for _ in range(15)]
        values.insert(rng.randrange(16), -amax)
        return _scale(name, values, "a scale at an edge of the format")

    return make


STEP = 2.0**-9
KINDS = [
    *[_hidden_scale] * 4,
    *[_hidden_encode] * 4,
    *[_hidden_ties] * 4,
    *[_hidden_decode] * 3,
    *[_hidden_pack] * 3,
    _edge(lambda rng: rng.choice([0.0, -0.0])),
    _edge(lambda rng: 6 * STEP * rng.randrange(1, 8)),
    _edge(lambda rng: 6 * STEP * (rng.randrange(1, 7) + 0.5)),
    _edge(lambda rng: 6 * (rng.randrange(8, 15) + 0.5) * rng.choice([0.125, 0.5, 2.0])),
    _edge(lambda rng: float(rng.randrange(2800, 4000))),
    _edge(lambda rng: STEP * rng.randrange(1, 6)),
]
HIDDEN = len(KINDS)


def _number(rng, top):
    return round(rng.uniform(-top, top) * 1024) / 1024


def _scale(name, values, note):
    amax = max(abs(value) for value in values)
    return Case(name, "choose_scale", (values,), float(quant.scale_e4m3_for_fp4(amax)), note=note)


def _encode(name, values, scale, note):
    expected = quant.encode_e2m1([value / scale for value in values]).tolist()
    return Case(name, "encode", (values, scale), expected, note=note)


def _decode(name, codes, scale, note):
    expected = [value * scale for value in quant.decode_e2m1(codes).tolist()]
    return Case(name, "decode", (codes, scale), expected, note=note)


def _pack(name, codes, note):
    return Case(name, "pack", (codes,), quant.pack_nibbles(codes).tolist(), note=note)
