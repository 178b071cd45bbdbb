"""Every wrong variant is caught by the test that is named for it."""

import functools
import types

import pytest

from deepseek_edu.reference import quant
from tests.mutants.mutation import SURVIVED, Mutant, changed, mutated_source, outcome
from tests.mutants.rules import BEHAVIOURS, CHECKLIST, numbers_of, uncovered
from tests.mutants.tables import GROUPS, MUTANTS, WITH_LISTS

SURVIVOR = Mutant(
    rule="a comment is no behaviour",
    change="another comment",
    module="deepseek_edu.reference.quant",
    old="# first level that is not smaller",
    new="# changed",
    killed_by="tests.reference.test_quant_formats:test_all_16_codes_of_e2m1_round_trip",
)


def name_of(mutant):
    """Module, rule and change."""
    return f"{mutant.module.removeprefix('deepseek_edu.')}: {mutant.rule} / {mutant.change}"


@pytest.mark.behaviour(29, 30, 31, 32, 33, 34)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[name_of(mutant) for mutant in MUTANTS])
def test_mutant_is_killed_by_its_test(mutant):
    assert outcome(mutant) != SURVIVED


@pytest.mark.parametrize("group", WITH_LISTS)
def test_every_line_of_the_checklist_and_every_known_mistake_has_mutants(group):
    numbers, rules = uncovered(GROUPS[group])
    assert numbers == []
    assert rules == [], "rules that rules.py names and no mutant breaks"


def test_the_lists_are_whole():
    """24 lines; items a, b, … of behaviours 29 to 34, as many as their descriptions name."""
    assert list(CHECKLIST) == [f"18.{number}" for number in range(1, 25)]
    named = {29: 5, 30: 4, 31: 4, 32: 4, 33: 5, 34: 3}
    assert list(BEHAVIOURS) == [f"{number}{letter}" for number, size in named.items() for letter in "abcde"[:size]]
    assert numbers_of("Sinkhorn ends with columns") == ["18.4", "34c"]
    assert numbers_of("a comment is no behaviour") == []


def test_a_mutant_that_changes_no_behaviour_is_reported_as_a_survivor():
    assert outcome(SURVIVOR) == SURVIVED


def test_the_module_is_whole_again_after_a_mutant():
    before = {name: id(value) for name, value in vars(quant).items()}
    codes = {name: value.__code__ for name, value in vars(quant).items() if isinstance(value, types.FunctionType)}
    outcome(MUTANTS[0])
    assert {name: id(value) for name, value in vars(quant).items()} == before
    assert {name: vars(quant)[name].__code__ for name in codes} == codes


def test_a_mutant_whose_place_is_gone_is_an_error():
    lost = Mutant("r", "c", "deepseek_edu.reference.quant", "text that is nowhere", "x", SURVIVOR.killed_by)
    with pytest.raises(ValueError, match="once; got 0 times"):
        mutated_source(lost)


def test_all_mutants_differ():
    assert len({(m.module, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)


SOURCE = """
import functools

LIMIT = 1

def doubled(function):
    @functools.wraps(function)
    def both(*arguments):
        return 2 * function(*arguments)
    return both

def plain(x, more=1):
    return x + more

@doubled
def wrapped(x):
    return x + 1

@functools.cache
def remembered(x):
    return x + 1

class Base:
    def method(self):
        return 1

class Thing(Base):
    SIZE = 1

    def __init__(self):
        super().__init__()
        self.made = 1

    def method(self):
        return super().method() + 1

    @property
    def read(self):
        return 1

    @functools.cached_property
    def once(self):
        return 1

    @staticmethod
    def static():
        return 1

    @classmethod
    def of_class(cls):
        return 1
"""


def seen(module, plain, thing):
    """What users of a module see who took a function by name and made an object beforehand."""
    return {
        "plain": plain(0),
        "wrapped": module.wrapped(0),
        "remembered": module.remembered(0),
        "limit": module.LIMIT,
        "method": thing.method(),
        "read": thing.read,
        "once": type(thing)().once,
        "static": thing.static(),
        "of class": thing.of_class(),
        "size": thing.SIZE,
        "made": type(thing)().made,
    }


def test_a_change_reaches_functions_taken_by_name_and_objects_made_before(tmp_path):
    """Every 1 becomes 3: defaults, decorated and remembered functions, methods, properties, constants; then back."""
    module = types.ModuleType("changed_module")
    module.__file__ = str(tmp_path / "changed_module.py")
    exec(SOURCE, vars(module))
    plain, thing = module.plain, module.Thing()
    before = seen(module, plain, thing)
    with changed(module, SOURCE.replace("1", "3")):
        assert seen(module, plain, thing) == {
            "plain": 3,
            "wrapped": 6,
            "remembered": 3,
            "limit": 3,
            "method": 6,
            "read": 3,
            "once": 3,
            "static": 3,
            "of class": 3,
            "size": 3,
            "made": 3,
        }
        assert isinstance(thing, module.Thing)
    assert seen(module, plain, thing) == before
    assert isinstance(module.remembered, type(functools.cache(len)))


def test_a_change_that_needs_other_surroundings_is_an_error_and_leaves_nothing_behind(tmp_path):
    module = types.ModuleType("changed_module")
    module.__file__ = str(tmp_path / "changed_module.py")
    exec(SOURCE, vars(module))
    other = SOURCE.replace("def read(self):\n        return 1", "def read(self):\n        return __class__")
    before = module.plain.__code__
    with pytest.raises(ValueError, match="other variables of its surroundings"):
        changed(module, other.replace("more=1", "more=2")).__enter__()
    assert module.plain.__code__ is before
    assert module.plain(0) == 1


def test_a_change_of_the_pytorch_model_reaches_a_model_made_before():
    """A function that other modules took by name, and a method of a module that exists already."""
    import torch

    from tests.model.tiny import tiny_model

    model, ids = tiny_model(), torch.tensor([[1, 2, 3]])
    exact = model.prefill(ids, model.new_cache(quantized=False)).last
    for place, old, new in (("rope", "pairs * turns", "pairs + turns"), ("norms", "self.eps)", "self.eps + 1)")):
        module = __import__(f"deepseek_edu.model.{place}", fromlist=["x"])
        source = mutated_source(Mutant("r", "c", module.__name__, old, new, ""))
        with changed(module, source):
            other = model.prefill(ids, model.new_cache(quantized=False)).last
        assert (other - exact).abs().max() > 0.01
    assert torch.equal(model.prefill(ids, model.new_cache(quantized=False)).last, exact)
