"""Wrong variants of residual streams and positions in PyTorch.

With equal copies in all streams any first A gives the same embedding, so the A itself is looked at."""

from tests.mutants.torch_kit import DRAFTS, SHORT, mutant

HYPER_CONNECTIONS = (
    mutant(
        "mhc",
        "the first A is one-hot on stream 0",
        "all streams are added",
        "pre[..., 0] = 1",
        "pre[...] = 1",
        "properties_streams:test_the_first_collapse_takes_stream_zero_alone",
    ),
    mutant(
        "block",
        "A is shifted by one sub-block",
        "the experts collapse with the A of their own input, as in V4",
        "mhc.collapse(streams, attention.pre)",
        "mhc.collapse(streams, experts.pre)",
        SHORT,
    ),
    mutant(
        "block",
        "A is shifted by one sub-block",
        "a layer passes on the A of its attention",
        "experts.post, experts.mix), experts.pre",
        "experts.post, experts.mix), attention.pre",
        SHORT,
    ),
    mutant(
        "mhc",
        "streams are mixed over the first index of S",
        "over the second",
        ".flatten(0, 1).mT, streams.flatten(0, 1))",
        ".flatten(0, 1), streams.flatten(0, 1))",
        "properties_streams:test_expansion_sums_over_the_first_index_of_the_mixing_matrix",
    ),
    mutant(
        "mhc",
        "Sinkhorn ends with columns",
        "it ends with rows",
        "    return (weights / (rows * columns.mT))",
        "    rows = torch.baddbmm(rows, weights, columns.reciprocal(), beta=eps)\n"
        "    return (weights / (rows * columns.mT))",
        "properties_streams:test_columns_are_normalised_last",
    ),
    mutant(
        "mhc",
        "eps is inside the division by row sums",
        "it is left out",
        "rows = torch.baddbmm(rows, weights, columns.reciprocal(), beta=eps)",
        "rows = torch.baddbmm(rows, weights, columns.reciprocal(), beta=0)",
        "properties_streams:test_sinkhorn_is_the_procedure_done_by_hand",
    ),
    mutant(
        "mhc",
        "eps is inside the division by column sums",
        "it is left out in the rounds",
        "columns = torch.baddbmm(columns, across, rows.reciprocal(), beta=eps)",
        "columns = torch.baddbmm(columns, across, rows.reciprocal(), beta=0)",
        "properties_streams:test_sinkhorn_is_the_procedure_done_by_hand",
    ),
    mutant(
        "mhc",
        "the softmax counts as the first row step",
        "one round more is made",
        "range(iterations - 1)",
        "range(iterations)",
        "properties_streams:test_sinkhorn_is_the_procedure_done_by_hand",
    ),
    mutant(
        "mhc",
        "post has no eps",
        "it gets one like pre",
        "2 * post.sigmoid(), mix)",
        "2 * post.sigmoid() + config.hc_eps, mix)",
        "properties_streams:test_coefficients_normalise_over_all_streams_at_once",
    ),
    mutant(
        "mhc",
        "one root mean square over all streams",
        "one per stream",
        "* reciprocal_rms(flat, config.norm_eps)",
        "* reciprocal_rms(streams, config.norm_eps).mean(dim=-2)",
        "properties_streams:test_coefficients_normalise_over_all_streams_at_once",
    ),
)

POSITIONS = (
    mutant(
        "span",
        "layers with ratio 1 use YaRN too",
        "they turn like layers without entries",
        "kind = bool(ratio)\n",
        "kind, ratio = ratio > 1, ratio if ratio > 1 else 0\n",
        SHORT,
    ),
    mutant(
        "csa2",
        "window entries of compressed layers turn like everything else there",
        "they turn by the plain frequencies",
        "self.entry(u, span.rotation(plan.ratio))",
        "self.entry(u, span.rotation(0))",
        SHORT,
    ),
    mutant(
        "csa2",
        "queries of compressed layers turn like everything else there",
        "they turn by the plain frequencies",
        "self.queries(u, rotation)",
        "self.queries(u, asked.rotation(0))",
        SHORT,
    ),
    mutant(
        "dspark",
        "layers without compression use plain RoPE",
        "draft stages are stretched like compressed layers",
        "    rotation = span.rotation(0)\n",
        "    rotation = span.rotation(2)\n",
        DRAFTS,
    ),
    mutant(
        "rope",
        "adjacent channels are a pair",
        "the halves of the tail are paired",
        "precise(x).unflatten(-1, (-1, 2))",
        "precise(x).unflatten(-1, (2, -1)).mT.contiguous()",
        "properties_streams:test_adjacent_channels_of_the_tail_turn_together_and_the_others_stay",
    ),
    mutant(
        "rope",
        "the last channels turn",
        "the first ones do",
        "(width // 2 - self.turns.shape[-1], 0), value=1.0)",
        "(0, width // 2 - self.turns.shape[-1]), value=1.0)",
        "properties_streams:test_adjacent_channels_of_the_tail_turn_together_and_the_others_stay",
    ),
    mutant(
        "attention",
        "outputs are turned back before they are grouped",
        "they are not",
        "rotate_tail(heads, rotation, inverse=True)",
        "heads",
        "properties_attention:test_outputs_are_turned_back_before_they_are_grouped",
    ),
    mutant(
        "attention",
        "outputs are turned back",
        "they are turned on",
        "rotate_tail(heads, rotation, inverse=True)",
        "rotate_tail(heads, rotation)",
        "properties_attention:test_outputs_are_turned_back_before_they_are_grouped",
    ),
)

MUTANTS = (*HYPER_CONNECTIONS, *POSITIONS)
