"""Wrong variants of the comparison with recorded outputs, and of what it reads from files."""

from tests.mutants.mutation import Mutant


def _mutant(module, rule, change, old, new, killed_by):
    return Mutant(rule, change, f"deepseek_edu.{module}", old, new, f"tests.test_{killed_by}")


DEFAULTS = "verify_sizes:test_a_released_configuration_may_leave_out_what_the_reference_defaults_to"

MUTANTS = (
    _mutant(
        "verify_outputs",
        "a difference that is not a number fails",
        "it passes",
        "return bool(self.difference <= self.tolerance)",
        "return not self.difference > self.tolerance",
        "verify:test_a_difference_that_is_not_a_number_fails",
    ),
    _mutant(
        "verify_outputs",
        "outputs that cannot be computed fail",
        "they count as unknown",
        "rows.append(self._row(name, *rule))",
        "row = self._row(name, *rule)\n"
        "                rows.append(row) if row.difference < np.inf else unknown.append(name)",
        "verify_wrong:test_outputs_that_the_model_cannot_have_fail_with_a_remark",
    ),
    _mutant(
        "verify_outputs",
        "decoding begins where its logits say",
        "always behind all other tokens",
        "if gaps[last] > DECODE_TOLERANCE >= gaps.min():",
        "if gaps[last] < 0:",
        "verify_sizes:test_the_decoded_tokens_may_stand_anywhere",
    ),
    _mutant(
        "verify_outputs",
        "a reusing layer reads the choice made last",
        "it has none",
        "chooser = plans[layer].chooser if layer < len(plans) else None",
        "chooser = layer if layer in self.config.index_source_layers else None",
        "verify_sizes:test_the_choice_of_a_reusing_layer_is_that_of_the_layer_it_follows",
    ),
    _mutant(
        "verify_outputs",
        "only whole names are known",
        "a beginning is enough",
        're.fullmatch(r"prefill([1-9]\\d*)/(logits|main_hidden)", rest)',
        're.match(r"prefill(\\d+)/(logits|main_|hidden)", rest)',
        "verify_wrong:test_names_that_only_look_known_are_listed",
    ),
    _mutant(
        "config_names",
        "stages without a block are not built",
        "they are",
        '    if not values.get("dspark_block_size"):\n        values["n_mtp',
        '    if values.get("dspark_block_size") == 0:\n        values["n_mtp',
        DEFAULTS,
    ),
    _mutant(
        "config_names",
        "experts of the stages default to those of the layers",
        "to none",
        'values.get(f"dspark_{name}") or values.get(name)',
        'values.get(f"dspark_{name}")',
        DEFAULTS,
    ),
    _mutant(
        "reference.moe",
        "a model without a vision tower has one bias for all tokens",
        "it looks for a bias of image tokens",
        "if image_mask is not None and config.vision_n_layers:",
        "if image_mask is not None:",
        "verify_sizes:test_a_model_without_vision_has_no_image_bias_and_needs_none",
    ),
)
