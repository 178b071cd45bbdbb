"""All mutants: the quantisers' and the model's."""

from tests.mutants import model_mutants, quant_mutants

MUTANTS = (*quant_mutants.MUTANTS, *model_mutants.MUTANTS)
