"""Arithmetic of one decoded token, traffic of the hyper-connections, and entries that a query reads or scores.

A context of N tokens includes the token that asks. What is counted: products of matrices, of queries with keys and of
weights with values; a multiplication and the addition that follows are two operations. What is not: norms, rotations,
softmax, Sinkhorn, quantising, gates, and reading memory, which is what decides the speed of a decode step.

Source: report, section 2.4.1 for the traffic, and its statement that decoding costs only a quarter more at 256 times
the context; the conventions that give ×1.25 are derived.
"""

from dataclasses import dataclass

PRECISION_WEIGHTS = {"fp32": 1.0, "bf16": 1.0, "fp8": 0.5, "fp4": 0.25}
"""Cost of one operation against BF16: a chip does twice as many in FP8, four times as many in FP4."""


@dataclass(frozen=True)
class Work:
    """Some of the arithmetic of one token.

    Attributes:
        component: what it is done for.
        multiply_adds: how many, in all layers together.
        precision: a key of PRECISION_WEIGHTS.
    """

    component: str
    multiply_adds: int
    precision: str


def _require_context(context):
    if type(context) is not int or context < 1:
        raise ValueError(f"context must be an integer, 1 or more (the token that asks is in it); got {context!r}")


def entries_read(config, plan, context):
    """Return how many entries a query of a layer attends to: its window, and chosen or all visible compressed entries.

    Args:
        config: ModelConfig; plan: one of `config.schedule()`; context: tokens, the asking one included.

    Raises:
        ValueError: context is no positive integer.

    >>> from deepseek_edu.config import ModelConfig
    >>> v4 = ModelConfig.v4_flash_0731()
    >>> [entries_read(v4, v4.schedule()[layer], 2**20) for layer in (0, 2, 3)]  # SWA, CSA, HCA
    [128, 640, 8320]
    """
    _require_context(context)
    window = min(context, config.window_size)
    if not plan.ratio:
        return window
    visible = context // plan.ratio
    return window + (visible if plan.mode == "hca" else min(config.index_topk, visible))


def entries_scored(config, plan, context):
    """Return how many index keys the indexer of a layer scores for one query; 0 for layers that have none.

    An owner scores everything visible. A layer restricted to the candidate pool scores at most blocks · block size.

    Raises:
        ValueError: context is no positive integer.

    >>> from deepseek_edu.config import ModelConfig
    >>> flash = ModelConfig.v41_flash()
    >>> [entries_scored(flash, flash.schedule()[layer], 2**20) for layer in (0, 2, 3, 20, 24)]
    [0, 524288, 0, 1048576, 16384]
    """
    _require_context(context)
    if plan.mode not in ("full", "reindex", "csa"):
        return 0
    visible = context // plan.ratio
    if plan.pool == "restricted":
        return min(visible, config.candidate_topk_blocks * config.candidate_block_size)
    return visible


def _projections(c, plan):
    """Compressor and indexer of one layer: [(component, multiply-adds, precision)]."""
    found = []
    if plan.mode in ("full", "csa", "hca"):
        pooled = plan.ratio > 1
        twice = 2 if plan.mode == "csa" else 1  # V4 pools overlapping groups where the ratio is 4
        width = c.head_dim * twice * (2 if pooled else 1)  # with a gate where tokens are pooled
        found.append(("compressor", width * c.dim, "fp32" if pooled else "bf16"))
    if plan.mode == "full":
        found.append(("index keys", c.index_head_dim * c.head_dim, "bf16"))
    if plan.mode == "csa":
        found.append(("index keys", 4 * c.index_head_dim * c.dim, "fp32"))
    if plan.mode in ("full", "reindex", "csa"):
        found.append(("index queries", c.index_n_heads * c.index_head_dim * c.q_lora_rank, "fp8"))
        found.append(("index queries", c.index_n_heads * c.dim, "bf16"))
    return found


def _layer_work(c, plan, context, engram):
    heads = c.n_heads * c.head_dim
    expert = 3 * c.dim * c.moe_inter_dim
    found = [
        ("attention projections", c.q_lora_rank * (c.dim + heads) + c.head_dim * c.dim, "fp8"),
        ("attention projections", c.o_lora_rank * heads, "bf16"),
        ("attention projections", c.o_groups * c.o_lora_rank * c.dim, "fp8"),
        ("attention core", 2 * heads * entries_read(c, plan, context), "bf16"),
        ("index scan", c.index_n_heads * c.index_head_dim * entries_scored(c, plan, context), "fp4"),
        ("router", c.n_routed_experts * c.dim, "fp32"),
        ("experts", (c.n_activated_experts + c.n_shared_experts) * expert, "fp8"),
        ("hyper-connections", 2 * c.hc_mult * (c.hc_mult + 2) * c.hc_mult * c.dim, "fp32"),
        *_projections(c, plan),
    ]
    if engram and plan.engram is not None:
        read = (c.engram_max_ngram_size - 1) * c.engram_n_heads * c.engram_head_dim
        found.append(("engram readers", (c.hc_mult + 1) * c.dim * read, "fp8"))
    return found


def layer_work(config, plan, context, *, engram=True):
    """Return the arithmetic of one backbone layer for one decoded token: tuple of Work.

    Args:
        config, context, engram: as in `decode_work`.
        plan: one of `config.schedule()`, no draft stage.

    Raises:
        ValueError: context is no positive integer, or plan is of a draft stage.
    """
    _require_context(context)
    if plan.side == "draft":
        raise ValueError(f"plan must be of a backbone layer; got stage {plan.index}: drafting is not counted here")
    return tuple(Work(*part) for part in _layer_work(config, plan, context, engram))


def decode_work(config, context, *, engram=True, head=True):
    """Return the arithmetic of decoding one token with `context` tokens, itself included.

    Precisions: dense matrices and routed experts FP8 (FP4 weights are multiplied with FP8 activations), the grouped
    output projection, output matrix and attention BF16, index scores FP4, the router, pooled compressors and
    hyper-connections FP32. A compressor runs for every token, though it stores one entry for several.

    Args:
        config: ModelConfig.
        context: tokens.
        engram: count the matrices that read the n-gram tables.
        head: count the output matrix.

    Returns:
        tuple of Work, one per component and precision.

    Raises:
        ValueError: context is no positive integer.
    """
    _require_context(context)
    sums = {}
    for plan in config.schedule()[: config.n_layers]:
        for component, multiply_adds, precision in _layer_work(config, plan, context, engram):
            sums[component, precision] = sums.get((component, precision), 0) + multiply_adds
    if config.generation == "v4":  # a learned collapse of the last streams
        sums["hyper-connections", "fp32"] += config.hc_mult**2 * config.dim
    if head:
        sums["head", "bf16"] = config.vocab_size * config.dim
    return tuple(Work(component, count, precision) for (component, precision), count in sums.items() if count)


def decode_flops(config, context, *, precision_weights=None, engram=True, head=True):
    """Return the operations of decoding one token by component, those in FP8 and FP4 weighted by their cost.

    Args:
        config, context, engram, head: as in `decode_work`.
        precision_weights: {precision: weight}; None for PRECISION_WEIGHTS.

    Returns:
        {component: operations, in BF16 equivalents}; the sum is 21.5 G at 4 096 and 27.0 G at 1 048 576 for V4.1-Flash.
        Nearly all of the difference is the scan of the index keys.

    Raises:
        ValueError: a precision has no weight, or context is no positive integer.

    >>> from deepseek_edu.config import ModelConfig
    >>> short, long = (sum(decode_flops(ModelConfig.v41_flash(), n).values()) for n in (2**12, 2**20))
    >>> round(long / short, 2)
    1.25
    """
    weights = PRECISION_WEIGHTS if precision_weights is None else precision_weights
    if missing := sorted(set(PRECISION_WEIGHTS) - set(weights)):
        raise ValueError(f"precision_weights must have a weight for {', '.join(PRECISION_WEIGHTS)}; missing: {missing}")
    flops = {}
    for work in decode_work(config, context, engram=engram, head=head):
        flops[work.component] = flops.get(work.component, 0) + 2 * work.multiply_adds * weights[work.precision]
    return flops


def hyper_connection_traffic(streams, width=1):
    """Return the numbers moved per token around one sub-block, for three ways to compute its hyper-connections.

    Args:
        streams: n; width: d, of one stream. With width 1 the result is in multiples of d.

    Returns:
        {"three kernels": (4n + 4)d, "two passes": (3n + 2)d, "single pass": (2n + 2)d}. The single pass reads and
        writes the streams once, reads the sub-block's output and writes its input.

    Raises:
        ValueError: streams or width below 1.

    Source: report, section 2.4.1. A choice of formulas, not a measurement.

    >>> hyper_connection_traffic(4)
    {'three kernels': 20, 'two passes': 14, 'single pass': 10}
    """
    for name, value in (("streams", streams), ("width", width)):
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be an integer, 1 or more; got {value!r}")
    n = streams
    return {"three kernels": (4 * n + 4) * width, "two passes": (3 * n + 2) * width, "single pass": (2 * n + 2) * width}


def ced_block_tokens(config, prompt):
    """Return how many (layer, token) pairs a prefill evaluates, without and with the skipping of the decoder.

    Args:
        config: ModelConfig with L layers, E of them encoder, and a window of W; prompt: N tokens.

    Returns:
        {"all layers": L·N, "encoder–decoder": E·N + (L − E)·min(N, W)}.

    Raises:
        ValueError: prompt is no number of tokens.

    A proxy: it knows no operations, no time and no cache hits, and leaves out that the first decoder layer projects the
    global entries of all N tokens.

    >>> from deepseek_edu.config import ModelConfig
    >>> ced_block_tokens(ModelConfig.v41_flash(), 4096)
    {'all layers': 163840, 'encoder–decoder': 84480}
    """
    if type(prompt) is not int or prompt < 0:
        raise ValueError(f"prompt must be an integer, 0 or more; got {prompt!r}")
    c = config
    decoder = (c.n_layers - c.decoder_start) * min(prompt, c.window_size)
    return {"all layers": c.n_layers * prompt, "encoder–decoder": c.decoder_start * prompt + decoder}
