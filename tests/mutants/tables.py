"""All mutants: the quantisers', the model's and the accounting's."""

from tests.mutants import accounting_mutants, model_mutants, quant_mutants

MUTANTS = (*quant_mutants.MUTANTS, *model_mutants.MUTANTS, *accounting_mutants.MUTANTS)
