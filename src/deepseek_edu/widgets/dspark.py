"""Widget `dspark`: how long drafts last, which are verified, which stand, and why the text stays the target's.

Mechanism: `reference.acceptance` (rejection sampling) and `reference.scheduler` (report, section 2.4.3; the scheduler's
algorithm is that of the DSpark paper). Drafting itself, three small layers over a window, is not run here. All chances,
costs and curves are invented.
"""

from deepseek_edu.drawing.numbers import grouped

from . import dspark_schedule as schedule
from .contract import Choice, Numbers, Slider, Toggle, View, widget
from .dspark_acceptance import PAIRS, TOKENS, acceptance_view, normalised
from .dspark_round_drawing import STEPS, round_view
from .dspark_rounds import RULES
from .dspark_survival import survival_view

FIRST = (0.92, 0.86, 0.76, 0.55, 0.42)
SECOND = (0.94, 0.88, 0.81, 0.73, 0.61)
SURVIVAL = {"part": "survival"}
SLIDERS = {**SURVIVAL, "chances": "own"}
SCHEDULE = {"part": "schedule"}
TYPED = {**SCHEDULE, "case": "own"}
ACCEPTANCE = {"part": "acceptance"}
ROUND = {"part": "round"}


@widget(
    "dspark",
    title="Draft five, verify once",
    mechanism={
        "reference.acceptance": (
            "acceptance_probability",
            "residual",
            "accept",
            "accept_greedy",
            "expected_tokens",
        ),
        "reference.scheduler": ("survival", "by_survival", "causal_lengths", "capacity", "lagged_lengths"),
    },
    source="report §2.4.3; DSpark paper; speculative sampling",
    chapter="07b_dspark",
    grid=("part", "how", "rule", "chances", "case"),
)
def dspark(
    part: Choice(
        {"round": "A round", "acceptance": "Acceptance", "survival": "Survival", "schedule": "Scheduler"},
        "Show",
        look="segments",
    ) = "round",
    step: Slider(1, 5, 1, "Step", look="steps", names=STEPS, when=ROUND) = 5,
    how: Choice(
        {"sampled": "Sampled", "greedy": "Greedy (temperature 0)"}, "Words are", look="segments", when=ROUND, more=True
    ) = "sampled",
    number: Slider(1, 6, 1, "Round (another word, other draws)", when=ROUND, more=True) = 1,
    rule: Choice(RULES, "Rule", when=ACCEPTANCE) = "exact",
    pair: Choice(
        {"different": "Different", "close": "Close", "far": "Far apart", "own": "Your own"},
        "Draft and target",
        look="segments",
        when=ACCEPTANCE,
    ) = "different",
    weights: Numbers(
        0,
        100,
        1,
        "Weights, divided by their sum",
        length=2 * len(TOKENS),
        columns=len(TOKENS),
        names=TOKENS,
        rows=("Target\u00a0P", "Draft\u00a0Q"),
        when={**ACCEPTANCE, "pair": "own"},
    ) = (*PAIRS["different"][0], *PAIRS["different"][1]),
    count: Choice(
        {"40": "40", "400": "400", "4000": grouped(4000)}, "Rounds", look="segments", when=ACCEPTANCE, more=True
    ) = "4000",
    sample: Slider(1, 8, 1, "Sample (other random numbers)", stops=4, when=ACCEPTANCE, more=True) = 1,
    chances: Choice(
        {"own": "Sliders", "second": "A second set"}, "Chances of the drafts", look="segments", when=SURVIVAL
    ) = "own",
    first: Slider(0, 1, 0.01, "Draft 1 stands", stops=7, when=SLIDERS) = FIRST[0],
    second: Slider(0, 1, 0.01, "Draft 2, if draft 1 does", stops=7, when=SLIDERS) = FIRST[1],
    third: Slider(0, 1, 0.01, "Draft 3, if both do", stops=7, when=SLIDERS) = FIRST[2],
    fourth: Slider(0, 1, 0.01, "Draft 4, if all three do", stops=7, when=SLIDERS) = FIRST[3],
    fifth: Slider(0, 1, 0.01, "Draft 5, if all four do", stops=7, when=SLIDERS) = FIRST[4],
    cost: Slider(0, 1, 0.05, "Cost of verifying one draft (invented)", stops=11, when=SURVIVAL, more=True) = 0.45,
    bonus: Toggle("Count the target’s own token", when=SURVIVAL, more=True) = False,
    case: Choice(
        {
            "three": "Three requests",
            "two": "Two requests, a worked example",
            "high": "One request, later draft confident",
            "low": "One request, later draft hopeless",
            "lagged": "Total from the step before",
            "own": "Your own",
        },
        "Requests",
        when=SCHEDULE,
    ) = "three",
    confidence: Slider(0, 1, 0.05, "Confidence in A’s first draft", stops=11, when={**SCHEDULE, "case": "three"}) = 0.9,
    confidences: Numbers(
        0,
        1,
        0.01,
        "Confidence in each draft, if those before it stand",
        length=schedule.REQUESTS * schedule.DRAFTS,
        columns=schedule.DRAFTS,
        names=tuple(f"draft {j + 1}" for j in range(schedule.DRAFTS)),
        rows=("A", "B", "C"),
        when=TYPED,
    ) = schedule.CONFIDENCE,
    speeds: Numbers(
        0,
        200,
        1,
        "Steps per second, by tokens in the batch",
        length=len(schedule.SPEEDS),
        names=tuple(str(schedule.REQUESTS + n) for n in range(len(schedule.SPEEDS))),
        when=TYPED,
    ) = schedule.SPEEDS,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "round":
        return round_view(int(number), how == "greedy", int(step))
    if part == "acceptance":
        size = len(TOKENS)
        target, draft = (weights[:size], weights[size:]) if pair == "own" else PAIRS[pair]
        return acceptance_view(normalised(target), normalised(draft), rule, int(count), int(sample))
    if part == "survival":
        own = (first, second, third, fourth, fifth)
        return survival_view(own if chances == "own" else SECOND, cost, bonus, FIRST if chances == "own" else SECOND)
    if case == "three":
        typed = schedule.Case(schedule.rows((confidence, *schedule.CONFIDENCE[1:])), schedule.SPEEDS)
    elif case == "own":
        typed = schedule.Case(schedule.rows(confidences), speeds)
    else:
        typed = schedule.CASES[case]
    return schedule.schedule_view(typed)
