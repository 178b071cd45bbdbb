"""Widget `router`: how a token finds its experts, what the correction bias may do and what it may not.

Mechanism: `reference.moe` (report, sections 2.2 and 4.2.2), called through the module, so that an edited text changes
every part: one token at a toy of four experts, the same with all 384, the load of a batch over bias updates, and the
clamps inside an expert. Whatever is not a size of the released model is illustrative.
"""

import numpy as np

from deepseek_edu.drawing.numbers import fixed, listed, show
from deepseek_edu.reference import moe

from .contract import Choice, Numbers, Slider, Toggle, View, widget
from .memo import remembered
from .parts import Metric, Metrics, Prose, Table
from .router_drawing import Routed, grid_picture, toy_picture
from .router_inside import inside
from .router_load_drawing import load_picture
from .router_numbers import NAMES, OWN, ROUTER, TOKENS, WIDTH, batch, boxes, released, toy_experts

BIASED = 2  # the slider of the toy moves the bias of expert C
BIAS_REACH = 1
REACH = 2.5  # the axis of scores goes as far, and farther for a large hidden state of the reader's
STEPS = 24
LOSS_WEIGHT = 1e-4  # of the sequence balance loss (report, section 4.2.2)
TOKEN = {"part": "token"}
GRID = {"part": "grid"}
LOAD = {"part": "load"}
INSIDE = {"part": "inside"}


@widget(
    "router",
    title="Send a token to its experts",
    mechanism={
        "reference.moe": (
            "router_scores",
            "route",
            "modality_bias",
            "swiglu",
            "experts_output",
            "expert_load",
            "update_bias",
            "sequence_balance_loss",
        )
    },
    source="report §2.2 and §4.2.2",
    chapter="06_experts",
    grid=("part", "token", "leak", "seen", "spill", "speed"),
)
def router(
    part: Choice(
        {"token": "One token", "grid": "384 experts", "load": "Load and bias", "inside": "Inside an expert"},
        "Show",
        look="segments",
    ) = "token",
    token: Choice(
        {"a": "Token 1", "b": "Token 2", "c": "All zero", "own": "Your own"},
        "Hidden state",
        look="segments",
        when=TOKEN,
    ) = "a",
    hidden: Numbers(
        -4, 4, 0.1, "Your hidden state u", length=WIDTH, names=("u₀", "u₁", "u₂", "u₃"), when={**TOKEN, "token": "own"}
    ) = OWN,
    bias: Slider(-BIAS_REACH, BIAS_REACH, 0.1, "Correction bias of expert C", when=TOKEN) = 0.6,
    leak: Toggle("Let the bias leak into the weights (wrong)", when=TOKEN) = False,
    seen: Choice({"text": "Text", "image": "Part of an image"}, "The token is", look="segments", when=GRID) = "text",
    draw: Slider(1, 3, 1, "Token (another hidden state)", when=GRID) = 1,
    spill: Toggle("Let the biases leak into the weights (wrong)", when=GRID) = False,
    speed: Choice(
        {"0.02": "0.02", "0.05": "0.05", "0.1": "0.1", "0.4": "0.4"}, "Bias update speed", look="segments", when=LOAD
    ) = "0.05",
    step: Slider(0, STEPS, 1, "Training step", look="steps", when=LOAD) = 0,
    gate: Slider(-16, 16, 0.25, "Gate before the clamp", stops=33, when=INSIDE) = 12.0,
    up: Slider(-16, 16, 0.25, "Up before the clamp", stops=17, when=INSIDE) = -6.0,
    limit: Slider(
        0, 16, 0.5, "Clamp at (swiglu_limit)", help="The model uses 10. 0 means no clamp.", stops=9, when=INSIDE
    ) = 10.0,
) -> View:
    """Evaluate the widget for checked control values."""
    if part == "token":
        return _one_token(np.array(hidden if token == "own" else TOKENS[token]), bias, leak)
    if part == "grid":
        return _all_boxes(int(draw) - 1, seen, spill)
    if part == "load":
        return _load(float(speed), int(step))
    return inside(gate, up, limit)


def _routed(names: tuple[str, ...], logits, scores, bias, k: int, scale: float) -> Routed:
    """One token through the router, and once more with weights made from the biased scores."""
    experts, weights = moe.route(scores[None], bias[None], k, True, scale)
    _, leaked = moe.route((scores + bias)[None], 0 * bias[None], k, True, scale)
    chosen = tuple(int(expert) for expert in experts[0])
    return Routed(names, logits, scores, bias, chosen, tuple(map(float, weights[0])), tuple(map(float, leaked[0])))


def _one_token(u: np.ndarray, bias: float, leak: bool) -> View:
    matrices, settings = toy_experts()
    biases = np.zeros(len(NAMES))
    biases[BIASED] = bias
    scores = moe.router_scores(u[None], ROUTER)[0]
    routed = _routed(NAMES, ROUTER @ u, scores, biases, 2, released().route_scale)
    plain = _routed(NAMES, ROUTER @ u, scores, 0 * biases, 2, released().route_scale)

    def run(name: str, weight: float | None = None) -> np.ndarray:
        inner = (matrices[f"{name}.{matrix}.weight"] for matrix in ("w1", "w2", "w3"))
        return moe.swiglu(u[None], *inner, settings.swiglu_limit, None if weight is None else np.array([weight]))[0]

    def output(weights: tuple[float, ...]) -> np.ndarray:
        return moe.experts_output(u[None], np.array([routed.chosen]), np.array([weights]), matrices, settings)[0]

    parts = {e: run(f"experts.{e}", w) for e, w in zip(routed.chosen, routed.weights, strict=True)}
    right, wrong = output(routed.weights), output(routed.leaked)
    reach = max(REACH, float(scores.max()), float(scores[BIASED]) + BIAS_REACH)
    shared = run("shared_experts")
    picture = toy_picture(u, ROUTER, routed, (-BIAS_REACH, reach), parts, shared, right, wrong, leak)
    chosen = [NAMES[e] for e in routed.chosen]
    items = [
        Metric("Chosen", " and ".join(chosen), note="2 of 4, by score + bias", role="result"),
        *_weight_metrics(routed, leak),
    ]
    if leak:
        items.append(Metric("Largest error of the output", float(np.abs(wrong - right).max()), role="error"))
    return View(
        (picture, Metrics(tuple(items), "One token"), *_bias_words(routed, plain), *_leak_words(routed, leak)),
        f"Score plus bias chooses experts {chosen[0]} and {chosen[1]}; their weights, from the scores alone, are "
        f"{fixed(routed.weights[0], 3)} and {fixed(routed.weights[1], 3)}"
        + (
            f"; with the leak they would be {fixed(routed.leaked[0], 3)} and {fixed(routed.leaked[1], 3)}."
            if leak
            else "."
        ),
    )


def _weight_metrics(routed: Routed, leak: bool) -> list[Metric]:
    total = sum(routed.weights)
    items = [
        Metric("Sum of the weights", total, show(total, 6), note="scores of the chosen, divided by their sum, × 1.5")
    ]
    if leak:
        worst = _worst(routed)
        items.append(Metric("Largest error of a weight", worst, fixed(worst, 3), role="error"))
    return items


def _worst(routed: Routed) -> float:
    """The largest error of a weight when biases leak into the weights."""
    return max((wrong - right for right, wrong in zip(routed.weights, routed.leaked, strict=True)), key=abs)


def _bias_words(routed: Routed, plain: Routed) -> tuple[Prose, ...]:
    """What the bias did to the choice of the toy."""
    name, bias = NAMES[BIASED], float(routed.bias[BIASED])
    score, total = float(routed.scores[BIASED]), float(routed.sums[BIASED])
    before, after = set(plain.chosen), set(routed.chosen)
    if before == after:
        what = "changes nothing" if bias else "is zero"
        return (Prose(f"The bias of expert {name} {what}: the two largest scores are chosen either way."),)
    came, went = NAMES[(after - before).pop()], NAMES[(before - after).pop()]
    words = (
        f"The bias moves expert {name} from {fixed(score, 2)} to {fixed(total, 2)}: {came} is chosen instead of {went}."
    )
    if BIASED in after:
        weight = routed.weights[routed.chosen.index(BIASED)]
        words += f" Its weight, {fixed(weight, 3)}, still comes from its score of {fixed(score, 2)}."
    return (Prose(words),)


def _leak_words(routed: Routed, leak: bool) -> tuple[Prose, ...]:
    if not leak:
        return ()
    if np.allclose(routed.weights, routed.leaked, rtol=0, atol=1e-12):
        return (Prose("Both rules give the same weights here: no chosen expert has a bias of its own."),)
    return (
        Prose(
            "With the leak, weights are made from score + bias. The bias is there to spread the load; now it also "
            "scales what each expert says, so moving it for balance changes the answer of every token it touches.",
            "warn",
        ),
    )


def _all_boxes(index: int, seen: str, leak: bool) -> View:
    settings, toy = released(), boxes()
    scores = moe.router_scores(toy.hidden[index : index + 1], toy.router)[0]
    logits = toy.router @ toy.hidden[index]
    names = tuple(str(expert) for expert in range(len(scores)))
    both = moe.modality_bias(toy.text_bias, toy.image_bias, [False, True])
    k, scale = settings.n_activated_experts, settings.route_scale
    by_kind = {name: _routed(names, logits, scores, both[row], k, scale) for row, name in enumerate(("text", "image"))}
    words = {"text": "text", "image": "an image"}
    then = "image" if seen == "text" else "text"
    routed, other = by_kind[seen], by_kind[then]
    order = np.argsort(-routed.sums, kind="stable")
    first_out = next(int(e) for e in order if e not in routed.chosen)
    common = set(routed.chosen) & set(other.chosen)
    metrics = Metrics(
        (
            Metric("Run for this token", k, note=f"of {len(scores)}, and the shared expert"),
            Metric("Chosen for text and image alike", len(common), note="same scores, other bias"),
            *_weight_metrics(routed, leak),
        ),
        "384 experts",
    )
    prose = Prose(
        "The scores come from the hidden state alone: the switch between text and image moves none of them. Each kind "
        f"has a bias set of its own, so {k - len(common)} of the {k} experts are not those of {words[then]}. Hidden "
        "state, router and biases are drawn at random: illustrative."
    )
    spilled = _leak_words(routed, leak)
    table = Table(
        "The chosen experts, best first",
        ("Expert", "Logit", "Score", "Bias", "Score + bias", "Weight", "Weight with the leak"),
        tuple(
            (names[e], float(logits[e]), float(scores[e]), float(routed.bias[e]) + 0.0, float(routed.sums[e]), w, wrong)
            for e, w, wrong in zip(routed.chosen, routed.weights, routed.leaked, strict=True)
        ),
        folded=True,
    )
    summary = (
        f"For {words[seen]}, experts {', '.join(names[e] for e in routed.chosen)} are chosen; {len(common)} of them "
        f"would be chosen for {words[then]} too. The weights sum to {show(sum(routed.weights), 4)}"
        + (f"; with the leak one is off by {fixed(_worst(routed), 3)}." if leak else ".")
    )
    top = max(float(max(one.sums.max(), one.scores.max())) for one in by_kind.values())
    picture = grid_picture(routed, other.chosen, words[seen], words[then], first_out, top, leak)
    return View((picture, metrics, *(spilled or (prose,)), table), summary)


@remembered(8)
def _training(speed: float) -> dict:
    """Assignments, loads, biases and balance losses of all steps; one expert for each token."""
    scores = moe.router_scores(batch(), ROUTER)
    bias, found = np.zeros(len(NAMES)), {"assigned": [], "loads": [], "biases": [], "losses": []}
    for _ in range(STEPS + 1):
        experts, _ = moe.route(scores, bias, 1)
        load = moe.expert_load(experts, len(NAMES))
        found["assigned"].append([int(e) for e in experts[:, 0]])
        found["loads"].append([int(n) for n in load])
        found["biases"].append(bias)
        found["losses"].append(float(moe.sequence_balance_loss(scores, experts, LOSS_WEIGHT)))
        bias = moe.update_bias(bias, load, speed)
    return {**found, "biases": np.array(found["biases"])}


def _load(speed: float, step: int) -> View:
    run = _training(speed)
    load, loads = run["loads"][step], run["loads"]
    mean = sum(load) / len(load)
    even = next((i for i, counts in enumerate(loads) if all(count == mean for count in counts)), None)
    moved = sum(a != b for a, b in zip(run["assigned"][step], run["assigned"][max(0, step - 1)], strict=True))
    names = " / ".join(map(str, load))
    loss = run["losses"][step]
    metrics = Metrics(
        (
            Metric("Load of A / B / C / D", names, note=f"even would be {show(mean)} each", role="result"),
            Metric("Busiest expert", max(load), unit="tokens"),
            Metric("Tokens that moved in this step", moved),
            Metric(
                "Sequence balance loss",
                loss,
                show(loss, 4),
                note=f"the batch as one sequence, factor {show(LOSS_WEIGHT)}",
            ),
        ),
        "Load and bias",
    )
    if even is None:
        prose = Prose(
            f"At speed {show(speed)} the load never becomes even within {STEPS} steps: an update is larger than the "
            "gaps between scores, so tokens jump back and forth together. A smaller speed settles."
        )
    elif step < even:
        over = [NAMES[e] for e, count in enumerate(load) if count > mean]
        under = [NAMES[e] for e, count in enumerate(load) if count < mean]
        prose = Prose(
            f"The next update lowers the bias of {listed(over)} and raises that of "
            f"{listed(under)} by {show(speed)}, whatever the size of the difference. At this speed the "
            f"load is even at step {even}."
        )
    else:
        prose = Prose(
            f"The load became even at step {even}. Where every expert has {show(mean)} tokens, no bias moves any more. "
            "The scores are those of step 0: only the choice was shifted."
        )
    summary = f"Step {step} at speed {show(speed)}: experts A to D get {names} tokens; " + (
        f"even from step {even} on." if even is not None else f"never even within {STEPS} steps."
    )
    return View((load_picture(NAMES, step, run["assigned"], loads, run["biases"]), metrics, prose), summary)
