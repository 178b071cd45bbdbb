"""Widget `evidence`: rows of a table of results, predicted before they are seen; claims sorted; an experiment planned.

Mechanism: `reference.comparison`. The scores are the report's (table 1, page 24), the claims and the checklist ours.
"""

from deepseek_edu.drawing.numbers import fixed, grouped, percent, show
from deepseek_edu.reference import comparison

from .contract import Choice, Slider, Text, Toggle, View, widget
from .evidence_data import AFTER, BEFORE, CLAIMS, ROWS, judged, scores, signed
from .evidence_drawing import claims_picture, plan_picture, rows_picture
from .evidence_plan import FIELDS, checked
from .parts import Metric, Metrics, Prose, Table

NAMES = {key: name for key, (name, *_) in ROWS.items()}
QUESTIONS = (50, 100, 200, 500, 1000, 2000, 5000, 10000)
IN_ROWS, IN_CLAIMS, IN_PLAN = {"part": "rows"}, {"part": "claims"}, {"part": "plan"}
DRAFT = {
    "question": "Is V4.1-Flash-Base better at mathematics?",
    "plan": "Run both models on MGSM with the same prompts.",
    "measure": "Accuracy in percent.",
    "rule": "",
}
SAMPLES = {
    "question": ("", "Does it score higher on MGSM than V4-Flash-Base when prompts are in Swahili?"),
    "plan": ("", f"5 runs with different seeds; same prompts and settings; {grouped(2500)} questions."),
    "measure": ("", f"Mean accuracy and its {percent(0.95)} interval over the runs."),
    "rule": ("", "If the interval of the difference lies above 1 point, yes; otherwise undecided."),
}


@widget(
    "evidence",
    title="What a table of results can support",
    mechanism={
        "reference.comparison": (
            "difference",
            "direction",
            "direction_counts",
            "error_reduction",
            "sign_test",
            "chance_band",
            "judge",
        )
    },
    source="report §4.3.2, table 1",
    chapter="08_evidence",
    grid=("part", "stage", "up", "other", "check", *CLAIMS),
)
def evidence(
    part: Choice(
        {"rows": "Predict and read", "claims": "Sort claims", "plan": "Plan an experiment"}, "Show", look="segments"
    ) = "rows",
    stage: Choice(
        {"predict": "Predict", "reveal": "Reveal", "chance": "Chance alone"},
        "Step",
        look="segments",
        when=IN_ROWS,
    ) = "predict",
    up: Choice(NAMES, "You say: this row went up", when=IN_ROWS) = "mmlu-pro",
    other: Choice(NAMES, "You say: this row did not", when=IN_ROWS) = "longbench",
    level: Slider(
        0, 1, 0.1, "Equal up to", unit="points", help="The report uses 0.3.", when={**IN_ROWS, "stage": "reveal"}
    ) = 0.3,
    questions: Slider(
        0,
        len(QUESTIONS) - 1,
        1,
        "Suppose each row had",
        names=tuple(f"{grouped(count)} questions" for count in QUESTIONS),
        help="An assumption of yours: the table does not say how many.",
        when={**IN_ROWS, "stage": "chance"},
    ) = 3,
    c1: Toggle(f"Supported: {CLAIMS['c1'].short}", when=IN_CLAIMS) = False,
    c2: Toggle(f"Supported: {CLAIMS['c2'].short}", when=IN_CLAIMS) = False,
    c3: Toggle(f"Supported: {CLAIMS['c3'].short}", when=IN_CLAIMS) = False,
    c4: Toggle(f"Supported: {CLAIMS['c4'].short}", when=IN_CLAIMS) = False,
    c5: Toggle(f"Supported: {CLAIMS['c5'].short}", when=IN_CLAIMS) = False,
    c6: Toggle(f"Supported: {CLAIMS['c6'].short}", when=IN_CLAIMS) = False,
    c7: Toggle(f"Supported: {CLAIMS['c7'].short}", when=IN_CLAIMS) = False,
    c8: Toggle(f"Supported: {CLAIMS['c8'].short}", when=IN_CLAIMS) = False,
    check: Toggle("Check my sorting", when=IN_CLAIMS) = False,
    question: Text(400, "Question", lines=2, samples=SAMPLES["question"], when=IN_PLAN) = DRAFT["question"],
    plan: Text(800, "Plan", lines=3, samples=SAMPLES["plan"], when=IN_PLAN) = DRAFT["plan"],
    measure: Text(400, "Measure", lines=2, samples=SAMPLES["measure"], when=IN_PLAN) = DRAFT["measure"],
    rule: Text(400, "Decision rule", lines=2, samples=SAMPLES["rule"], when=IN_PLAN) = DRAFT["rule"],
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "claims":
        return _claims(dict(zip(CLAIMS, (c1, c2, c3, c4, c5, c6, c7, c8), strict=True)), check)
    if part == "plan":
        return _plan({"question": question, "plan": plan, "measure": measure, "rule": rule})
    return _rows(stage, up, other, level if stage == "reveal" else comparison.SAME_LEVEL, QUESTIONS[int(questions)])


def _rows(stage: str, up: str, other: str, level: float, questions: int) -> View:
    guesses = {up: "up", other: "not up"} if up != other else {}
    gaps = {key: comparison.difference(*scores(key)) for key in ROWS}
    directions = {key: comparison.direction(*scores(key), level) for key in ROWS}
    band = {key: comparison.chance_band(*scores(key), questions) for key in ROWS} if stage == "chance" else {}
    picture = rows_picture(stage, guesses, directions, gaps, band)
    if stage == "predict":
        return _prediction(picture, up, other)
    right = sum((guess == "up") == (directions[key] == "up") for key, guess in guesses.items())
    counts = comparison.direction_counts([scores(key) for key in ROWS], level)
    same = fixed(level, 1)
    if stage == "chance":
        return _chance(picture, counts, gaps, band, questions)
    metrics = Metrics(
        (
            Metric("Your predictions", right, unit=f"of {len(guesses)} right", role="result"),
            Metric("Up / same / down", "/".join(map(str, counts.values())), note=f"same: at most {same} apart"),
            Metric("Largest gain", max(gaps.values()), signed(max(gaps.values())), unit="points"),
            Metric("Largest loss", min(gaps.values()), signed(min(gaps.values())), unit="points"),
        ),
        "The rows",
    )
    wrong = [key for key, guess in guesses.items() if (guess == "up") != (directions[key] == "up")]
    heard = _heard(up, other, wrong, directions)
    words = (
        f"{heard} {counts['up']} rows went up, {counts['down']} down, {counts['same']} stayed within {same} "
        "points. Points are not the whole story: ten points from 85 leave a third of the errors, from 45 most of them."
    )
    table = Table(
        f"{BEFORE}, {AFTER}, points between them, and the share of wrong answers that is gone",
        ("Benchmark", "V4", "V4.1", "Points", "Errors gone"),
        tuple(
            (name, before, after, gaps[key], comparison.error_reduction(before, after))
            for key, (name, before, after) in ROWS.items()
        ),
        tuple(
            ("", fixed(before, 1), fixed(after, 1), signed(gaps[key]), _percent(before, after))
            for key, (_, before, after) in ROWS.items()
        ),
    )
    summary = (
        f"{counts['up']} rows up, {counts['same']} the same, {counts['down']} down, when at most {same} points "
        f"count as the same. {heard}"
    )
    return View((picture, metrics, Prose(words), table), summary)


def _percent(before: float, after: float) -> str:
    return percent(comparison.error_reduction(before, after))


def _prediction(picture, up: str, other: str) -> View:
    same = up == other
    words = (
        f"You name {NAMES[up]} twice: once as gone up, once as not. Name two rows."
        if same
        else f"You say that {NAMES[up]} went up and that {NAMES[other]} did not. Why? Then press Reveal."
    )
    hidden = (
        "Say “up” at one row and “not up” at another, in the picture or above it. All scores are those of base models, "
        "in percent."
    )
    return View((picture, Prose(words if same else hidden, "warn" if same else "")), words)


def _heard(up: str, other: str, wrong: list[str], directions: dict[str, str]) -> str:
    if up == other:
        return f"No prediction: {NAMES[up]} was named twice."
    if not wrong:
        return "Both of your predictions are right."
    said = {"up": "went up", "down": "went down", "same": "stayed the same"}
    return " ".join(f"{NAMES[key]} {said[directions[key]]}, against your prediction." for key in wrong)


def _chance(picture, counts: dict[str, int], gaps: dict, band: dict, questions: int) -> View:
    beyond = [key for key in ROWS if abs(gaps[key]) > band[key]]
    p = comparison.sign_test(counts["up"], counts["down"])
    metrics = Metrics(
        (
            Metric("Beyond the band", len(beyond), unit=f"of {len(ROWS)} rows", role="result"),
            Metric("Widest band", max(band.values()), f"±{fixed(max(band.values()), 1)}", unit="points"),
            Metric("Sign test", p, show(p, 3), note=f"{counts['up']} up, {counts['down']} down, by fair coins"),
        ),
        "What chance could do",
    )
    names = ", ".join(NAMES[key] for key in beyond) or "none"
    words = (
        f"With {grouped(questions)} questions in each benchmark, another draw of questions moves a difference by at "
        f"most the band in 95 of 100 draws. Beyond it: {names}. Both models answered the same questions, which mostly "
        "makes the true band narrower; the table does not hold what is needed to compute it."
    )
    coins = (
        f"Fair coins give a split as uneven as {counts['up']} to {counts['down']} in {100 * p:.0f} of 100 throws. And "
        "these rows are a selection: coins that are picked after they were thrown prove nothing. Neither number tells "
        "of a second training run."
    )
    summary = (
        f"With {grouped(questions)} questions in each benchmark {len(beyond)} of {len(ROWS)} differences lie beyond "
        f"what the draw of questions alone would do: {names}. Sign test over the rows: p = {show(p, 3)}."
    )
    return View((picture, metrics, Prose(words), Prose(coins)), summary)


def _claims(sorted_as: dict[str, bool], check: bool) -> View:
    found = {key: judged(claim) for key, claim in CLAIMS.items()}
    truth = {key: supported for key, (supported, _) in found.items()}
    right = sum(truth[key] == side for key, side in sorted_as.items())
    here = sum(sorted_as.values())
    picture = claims_picture(sorted_as, found, check)
    if not check:
        metrics = Metrics((Metric("You call supported", here, unit=f"of {len(CLAIMS)}"),), "Your sorting")
        words = (
            "Click a card to move it, or use the switches. Ask of each: could the table be exactly as it is, and the "
            "claim be wrong?"
        )
        summary = f"You call {here} of {len(CLAIMS)} claims supported. Switch “Check my sorting” on to compare."
        return View((picture, metrics, Prose(words)), summary)
    metrics = Metrics(
        (
            Metric("Sorted right", right, unit=f"of {len(CLAIMS)}", role="result"),
            Metric("The table supports", sum(truth.values()), unit=f"of {len(CLAIMS)}"),
        ),
        "Your sorting",
    )
    sides = ("not supported", "supported")
    reasons = Table(
        "Each claim, and why",
        ("Claim", "You say", "It is", "Why"),
        tuple((CLAIMS[key].text, sides[side], sides[truth[key]], found[key][1]) for key, side in sorted_as.items()),
        selected=tuple(i for i, (key, side) in enumerate(sorted_as.items()) if truth[key] != side),
        folded=True,
    )
    words = (
        "A claim is supported if the numbers agree with it and if it rests on nothing that the table does not hold. "
        "The table holds scores of base models and the sizes in its head: no spread, no cause, no chat."
    )
    summary = f"{right} of {len(CLAIMS)} claims are sorted right; the table supports {sum(truth.values())} of them."
    return View((picture, metrics, Prose(words), reasons), summary)


def _plan(fields: dict[str, str]) -> View:
    found = checked(fields)
    missing = [check for check, words in found if not words]
    metrics = Metrics(
        (
            Metric("Said", len(found) - len(missing), unit=f"of {len(found)}", role="result"),
            Metric("Missing", len(missing)),
        ),
        "Checklist",
    )
    hints = " ".join(
        f"{title}: {'; '.join(check.hint for check in missing if check.field == field)}."
        for field, title in FIELDS.items()
        if any(check.field == field for check in missing)
    )
    limits = "The checklist looks for words and numbers. Whether the experiment is a good one, you have to judge."
    table = Table(
        "The checklist, and the words that meet it",
        ("Part", "It", "Found"),
        tuple((FIELDS[check.field], check.name, words or "missing") for check, words in found),
        selected=tuple(i for i, (_, words) in enumerate(found) if not words),
        folded=True,
    )
    names = ", ".join(f"{FIELDS[check.field].lower()} {check.name}" for check in missing[:3])
    more = f", and {len(missing) - 3} more" if len(missing) > 3 else ""
    said = f"{len(found) - len(missing)} of {len(found)} points are said."
    summary = f"{said} Still missing: {names}{more}." if missing else f"{said} Nothing is missing."
    parts = (
        plan_picture(fields, found),
        metrics,
        *([Prose(hints, "warn")] if hints else []),
        Prose(limits),
        table,
    )
    return View(parts, summary)
