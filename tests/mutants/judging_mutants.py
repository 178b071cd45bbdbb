"""Wrong variants of what judges programs and tables: verdicts, kinds of tests, mutants, differences, chance."""

from tests.mutants.mutation import Mutant

PACKAGE = "deepseek_edu.reference."
PROGRAMS = "tests.reference.test_verification:test_"
ROWS = "tests.reference.test_comparison:test_"

FRESH = f"{PROGRAMS}every_test_gets_a_fresh_program_and_a_fresh_math"
KINDS = f"{PROGRAMS}what_is_asked_for_fails_before_and_what_is_guarded_passes_before"
TEN = f"{PROGRAMS}the_mutants_of_the_shop_are_these_ten"
SCORE = f"{PROGRAMS}killers_and_score_agree_with_the_same_mutants_written_by_hand"


def _mutant(module, rule, change, old, new, killed_by):
    return Mutant(rule, change, PACKAGE + module, old, new, killed_by)


MUTANTS = (
    _mutant(
        "verification",
        "a program cannot change math for others",
        "it gets the module itself",
        "return SimpleNamespace(**vars(math))",
        "return math",
        FRESH,
    ),
    _mutant(
        "verification",
        "set-up stands before the tests below it only",
        "all of it before every test",
        "for part in setup if part.lineno < node.lineno]",
        "for part in setup]",
        f"{PROGRAMS}set_up_belongs_to_the_tests_below_it_and_keeps_its_lines",
    ),
    _mutant(
        "verification",
        "a verdict says what was got",
        "it says what was expected",
        'got = _words(names["__left__"])\n        return',
        'got = _words(names["__right__"])\n        return',
        f"{PROGRAMS}a_failing_equation_says_what_was_got_and_what_was_expected",
    ),
    _mutant(
        "verification",
        "a suite without tests accepts everything",
        "it accepts nothing",
        "return all(verdict.passed for verdict in verdicts)",
        "return bool(verdicts) and all(verdict.passed for verdict in verdicts)",
        f"{PROGRAMS}a_suite_that_cannot_be_read_says_so",
    ),
    _mutant(
        "verification",
        "a test that the right program fails is broken",
        "it asks for something new",
        "if not after.passed:",
        "if False:",
        KINDS,
    ),
    _mutant(
        "verification",
        "what passes before is guarded",
        "it is asked for",
        '"pass-to-pass" if before.passed else "fail-to-pass"',
        '"fail-to-pass" if before.passed else "pass-to-pass"',
        KINDS,
    ),
    _mutant("mutation", "numbers are made larger too", "only smaller", "node.value + 1", "node.value - 1", TEN),
    _mutant(
        "mutation",
        "a comparison is also turned round",
        "only its edge is moved",
        "ast.GtE: (ast.Gt, ast.Lt)",
        "ast.GtE: (ast.Gt,)",
        TEN,
    ),
    _mutant(
        "mutation",
        "one mistake in each mutant",
        "mistakes add up",
        "setattr(node, name, kept)",
        "setattr(node, name, value)",
        TEN,
    ),
    _mutant(
        "mutation",
        "a test kills a mutant that it fails",
        "one that it passes",
        "if not verdict.passed]",
        "if verdict.passed]",
        SCORE,
    ),
    _mutant(
        "mutation",
        "the score counts mutants",
        "it counts tests that fail",
        "sum(1 for tests in killed_by if tests)",
        "sum(len(tests) for tests in killed_by)",
        SCORE,
    ),
    _mutant(
        "comparison",
        "a gap of exactly the level is the same",
        "it is a difference",
        "if abs(gap) <= same_level:",
        "if abs(gap) < same_level:",
        f"{ROWS}a_gap_of_exactly_three_tenths_is_the_same_level",
    ),
    _mutant(
        "comparison",
        "a difference is that of the decimals",
        "that of the binary numbers",
        "return round(after - before, 9)",
        "return after - before",
        f"{ROWS}differences_and_directions_are_those_of_exact_tenths",
    ),
    _mutant(
        "comparison",
        "errors that are gone are a share of the errors before",
        "of the score before",
        "/ (100 - before)",
        "/ before if before else 0.0",
        f"{ROWS}the_share_of_errors_that_are_gone",
    ),
    _mutant(
        "comparison",
        "both scores move by chance",
        "only the first",
        "for share in (before / 100, after / 100))",
        "for share in (before / 100,))",
        f"{ROWS}the_band_covers_about_95_of_100_draws_of_questions",
    ),
    _mutant(
        "comparison",
        "a claim needs evidence that the table does not hold",
        "agreeing numbers are enough",
        "return holds and not missing, missing",
        "return holds, missing",
        f"{ROWS}a_claim_needs_its_numbers_and_its_kinds_of_evidence",
    ),
)
