"""How mutants of the PyTorch model are written, and the recorded runs that kill many of them."""

from tests.mutants.mutation import Mutant

PACKAGE, MODEL = "deepseek_edu.", "deepseek_edu.model."
TESTS = "tests.model.test_"
SHORT = "properties_recorded:test_a_short_prefill_gives_the_recorded_logits"
LONG = "properties_recorded:test_a_long_prefill_gives_the_recorded_logits"
QUANTISED = "properties_recorded:test_a_long_quantised_prefill_gives_the_recorded_logits"
DECODE = "properties_recorded:test_a_few_decode_steps_are_the_recorded_ones"
STALE = "properties_recorded:test_a_few_decode_steps_with_stale_index_keys_are_the_recorded_defect"
DRAFTS = "properties_recorded:test_a_few_drafts_are_the_recorded_ones"
IMAGE = "properties_recorded:test_a_prompt_with_an_image_span_gives_the_recorded_logits_and_hashes"
CHUNKS = "properties_recorded:test_a_prefill_in_chunks_gives_the_recorded_logits"


def mutant(module, rule, change, old, new, killed_by):
    """A mutant of a module that the PyTorch model runs, killed by tests/model/test_<killed_by>.

    Args:
        module: of deepseek_edu.model; with a dot, of deepseek_edu: what both implementations share.
    """
    return Mutant(rule, change, (PACKAGE if "." in module else MODEL) + module, old, new, TESTS + killed_by)
