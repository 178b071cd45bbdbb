"""Wrong variants of the accounting: what a count most easily leaves out or counts twice."""

from tests.mutants.mutation import Mutant

PACKAGE = "deepseek_edu.accounting."
TESTS = "tests.test_accounting"


def _mutant(module, rule, change, old, new, killed_by):
    tests = TESTS if module == "model_size" else f"{TESTS}_work"
    return Mutant(rule, change, PACKAGE + module, old, new, f"{tests}:{killed_by}")


ANY_MODEL = "test_any_model_has_the_counted_parameters"
RECORDED = "test_the_recorded_model_has_the_counted_parameters_component_by_component"

PARAMETERS = (
    _mutant(
        "model_size",
        "a router has a bias for text and one for images",
        "one for both",
        "else 1 + images",
        "else 1",
        RECORDED,
    ),
    _mutant(
        "model_size",
        "a compressor of single tokens has no gate",
        "it has one",
        "width * (c.dim * (1 if ratio == 1 else 2) + 1)",
        "width * (c.dim * 2 + 1)",
        RECORDED,
    ),
    _mutant(
        "model_size",
        "reindexing layers have no key projection",
        "they have one",
        'if plan.mode in ("full", "csa") else 0',
        "if chooses else 0",
        RECORDED,
    ),
    _mutant(
        "model_size",
        "draft stages have their own number of experts",
        "that of the backbone",
        'c.dspark_n_routed_experts if plan.side == "draft" else c.n_routed_experts',
        "c.n_routed_experts",
        RECORDED,
    ),
    _mutant(
        "model_size",
        "a sink belongs to each head",
        "sinks are not counted",
        "(heads + c.o_groups * c.dim) + c.n_heads",
        "(heads + c.o_groups * c.dim)",
        RECORDED,
    ),
    _mutant(
        "model_size",
        "the grouped output reads each head once",
        "once per group",
        "c.o_lora_rank * (heads + c.o_groups * c.dim)",
        "c.o_lora_rank * (c.o_groups * heads + c.o_groups * c.dim)",
        ANY_MODEL,
    ),
    _mutant(
        "model_size",
        "a reader makes a key per stream and one value",
        "keys only",
        "(c.hc_mult + 1) * c.dim * read + 2",
        "c.hc_mult * c.dim * read + 2",
        RECORDED,
    ),
    _mutant(
        "model_size",
        "embedding and head are not tied",
        "one matrix serves both",
        '"embedding": c.vocab_size * c.dim,\n        "head"',
        '"embedding": 0,\n        "head"',
        RECORDED,
    ),
    _mutant(
        "model_size",
        "V4 compressors have position terms",
        "they have none",
        "projected * (2 * c.dim + ratio) + width",
        "projected * 2 * c.dim + width",
        "test_v4_has_the_counted_parameters",
    ),
    _mutant(
        "model_size",
        "prefill makes the global entries of the first decoder layer",
        "it stops before",
        'for name in ("compressor", "index keys")}})',
        "for name in ()}})",
        "test_a_prefilled_token_of_the_tiny_model_meets_these_arrays",
    ),
    _mutant(
        "model_size",
        "prefill of a long prompt has no logits",
        "it runs the output matrix",
        '    if phase == "decode":\n',
        "    if phase:\n",
        "test_a_prefilled_token_of_the_tiny_model_meets_these_arrays",
    ),
    _mutant(
        "model_size",
        "the shared expert comes on top of the chosen ones",
        "it is one of them",
        'layer["routed experts"] = c.n_activated_experts * _expert(c)',
        'layer["routed experts"] = (c.n_activated_experts - 1) * _expert(c)',
        "test_a_decoded_token_of_the_tiny_model_meets_these_arrays",
    ),
)

BYTES = (
    _mutant(
        "caches",
        "an entry is shared by `ratio` tokens",
        "each token has one",
        "_row_of(config, layer) / config.compress_ratios[layer]",
        "_row_of(config, layer)",
        "test_bytes_per_token_by_generation",
    ),
    _mutant(
        "caches",
        "only layers with an indexer have index keys",
        "V4's HCA layers have them too",
        '(size["index"] if layer in config.index_source_layers else 0)',
        'size["index"]',
        "test_bytes_per_token_by_generation",
    ),
    _mutant(
        "caches",
        "scale bytes are stored too",
        "main entries have none",
        "return width // 2 + width // block",
        "return width // 2",
        "test_bytes_per_token_by_generation",
    ),
    _mutant(
        "caches",
        "V4 fills its seven scale bytes up to eight",
        "it does not",
        "-(-scales // ALIGNMENT) * ALIGNMENT",
        "scales",
        "test_bytes_per_token_by_generation",
    ),
    _mutant(
        "caches",
        "a half-filled group stores nothing",
        "it stores an entry",
        "return sum(tokens // config.compress_ratios[layer] *",
        "return sum(-(-tokens // config.compress_ratios[layer]) *",
        "test_half_filled_groups_store_nothing",
    ),
)

ARITHMETIC = (
    _mutant(
        "work",
        "a product of keys and one of values",
        "keys only",
        '("attention core", 2 * heads',
        '("attention core", heads',
        "test_decoding_costs_a_quarter_more_at_256_times_the_context",
    ),
    _mutant(
        "work",
        "multiplying and adding are two operations",
        "one",
        "2 * work.multiply_adds * weights",
        "work.multiply_adds * weights",
        "test_decoding_costs_a_quarter_more_at_256_times_the_context",
    ),
    _mutant(
        "work",
        "the pool bounds what reindexing layers score",
        "they score everything",
        'if plan.pool == "restricted":',
        "if False:",
        "test_decoding_costs_a_quarter_more_at_256_times_the_context",
    ),
    _mutant(
        "work",
        "an owner scores everything visible",
        "it is bounded by the pool too",
        'if plan.pool == "restricted":',
        "if plan.pool:",
        "test_entries_are_those_that_a_query_may_see",
    ),
    _mutant(
        "work",
        "reused choices cost no scan",
        "every compressed layer scans",
        'if plan.mode not in ("full", "reindex", "csa"):',
        "if not plan.ratio:",
        "test_entries_are_those_that_a_query_may_see",
    ),
    _mutant(
        "work",
        "HCA reads all compressed entries",
        "it chooses like CSA",
        '(visible if plan.mode == "hca" else min(config.index_topk, visible))',
        "min(config.index_topk, visible)",
        "test_entries_per_query_at_a_million_tokens",
    ),
    _mutant(
        "work",
        "the asking token is part of the context",
        "it comes on top",
        "    visible = context // plan.ratio\n    return window + (visible if",
        "    visible = (context + 1) // plan.ratio\n    return window + (visible if",
        "test_entries_are_those_that_a_query_may_see",
    ),
    _mutant(
        "work",
        "each layer has two sub-blocks with hyper-connections",
        "one",
        '("hyper-connections", 2 * c.hc_mult',
        '("hyper-connections", c.hc_mult',
        "test_work_of_the_tiny_model_is_one_multiply_add_for_each_number_of_its_matrices",
    ),
    _mutant(
        "work",
        "the single pass reads and writes the streams once",
        "it reads them twice",
        '"single pass": (2 * n + 2)',
        '"single pass": (3 * n + 2)',
        "test_hyper_connections_move_twenty_fourteen_or_ten_times_the_width",
    ),
    _mutant(
        "work",
        "a short prompt passes the decoder whole and no more",
        "the decoder runs a full window",
        "* min(prompt, c.window_size)",
        "* c.window_size",
        "test_the_decoder_sees_a_window_of_a_prompt",
    ),
)

MUTANTS = (*PARAMETERS, *BYTES, *ARITHMETIC)
