"""Every wrong variant is caught by the test that is named for it."""

import pytest

from deepseek_edu.reference import quant
from tests.mutants.mutation import SURVIVED, Mutant, mutated_source, outcome
from tests.mutants.tables import MUTANTS

SURVIVOR = Mutant(
    rule="a comment is no behaviour",
    change="another comment",
    module="deepseek_edu.reference.quant",
    old="# first level that is not smaller",
    new="# changed",
    killed_by="tests.reference.test_quant_formats:test_all_16_codes_of_e2m1_round_trip",
)


@pytest.mark.behaviour(29, 30, 31, 32, 33, 34)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{m.rule} / {m.change}" for m in MUTANTS])
def test_mutant_is_killed_by_its_test(mutant):
    assert outcome(mutant) != SURVIVED


def test_a_mutant_that_changes_no_behaviour_is_reported_as_a_survivor():
    assert outcome(SURVIVOR) == SURVIVED


def test_the_module_is_whole_again_after_a_mutant():
    before = {name: id(value) for name, value in vars(quant).items()}
    outcome(MUTANTS[0])
    assert {name: id(value) for name, value in vars(quant).items()} == before


def test_a_mutant_whose_place_is_gone_is_an_error():
    lost = Mutant("r", "c", "deepseek_edu.reference.quant", "text that is nowhere", "x", SURVIVOR.killed_by)
    with pytest.raises(ValueError, match="once; got 0 times"):
        mutated_source(lost)


def test_all_mutants_differ():
    assert len({(m.module, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
