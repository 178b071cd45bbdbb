"""All mutants, grouped by what they are wrong variants of."""

from tests.mutants import (
    accounting_mutants,
    judging_mutants,
    model_mutants,
    quant_mutants,
    torch_mutants,
    verify_mutants,
)

GROUPS = {
    "NumPy (deepseek_edu.reference)": (*quant_mutants.MUTANTS, *model_mutants.MUTANTS),
    "PyTorch (deepseek_edu.model)": torch_mutants.MUTANTS,
    "Accounting (deepseek_edu.accounting)": accounting_mutants.MUTANTS,
    "Recorded outputs (deepseek_edu.verify)": verify_mutants.MUTANTS,
    "Judging (verification, mutation and comparison of deepseek_edu.reference)": judging_mutants.MUTANTS,
}
WITH_LISTS = tuple(name for name in GROUPS if name.startswith(("NumPy", "PyTorch")))
"""Groups in which every number of rules.py has a mutant."""
MUTANTS = tuple(mutant for group in GROUPS.values() for mutant in group)
