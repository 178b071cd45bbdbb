"""The `quiz` fence: one question with options that each say why, or with a number that the package computes."""

from __future__ import annotations

import hashlib
import math
from html import escape

from deepseek_edu.site.errors import SourceError
from deepseek_edu.site.page import PageContext, json_script
from deepseek_edu.site.schema import Key, Lines, check, load
from deepseek_edu.site.source import Piece, Place
from deepseek_edu.site.values import evaluate

CHOICE = {"id": Key("text", True), "question": Key("text", True), "options": Key("list", True)}
OPTION = {
    "text": Key("text", True),
    "why": Key("text", True),
    "correct": Key("true or false"),
    "right_if": Key("text"),
}
NUMBER = {
    "id": Key("text", True),
    "question": Key("text", True),
    "answer": Key("number or expression", True),
    "tolerance": Key("number", True),
    "unit": Key("text"),
    "why": Key("text", True),
}


def render_quiz(piece: Piece, page: PageContext) -> str:
    """Return the `<edu-quiz>` element.

    Raises:
        SourceError: a malformed question, with line, found and allowed.
    """
    body = load(piece.body, piece.place.after(1))
    numeric = isinstance(body, Lines) and "answer" in body
    if isinstance(body, Lines) and "answer" in body and "options" in body:
        at = body.line_of("options")
        raise SourceError(at.file, at.line, "answer and options in one quiz", "options (choice) or answer (number)")
    body = check(body, NUMBER if numeric else CHOICE, "a quiz", piece.place)
    id = page.unique(f"quiz-{body['id']}", body.line_of("id"), f"the quiz {body['id']}")
    version = hashlib.sha256(piece.body.encode()).hexdigest()[:8]
    page.questions[body["id"]] = version
    question = page.phrase(body["question"], body.line_of("question"))
    if numeric:
        answers, outcome, data = _number(id, body, page)
    else:
        answers, outcome, data = _choice(id, body, page)
    return (
        f'<edu-quiz id="{id}" data-version="{version}"><form class="edu-quiz" novalidate><fieldset>'
        f'<legend class="edu-quiz__question">{question}</legend>{answers}</fieldset>'
        '<button type="submit" class="edu-button" hidden>Check</button>'
        '<p class="edu-quiz__result" role="status"></p>'
        '<details class="edu-quiz__nojs" data-search-exclude><summary>Answer and reasons</summary>'
        f"{outcome}</details></form>"
        f"{json_script({'id': body['id'], 'version': version, **data})}</edu-quiz>"
    )


def _choice(id: str, body: Lines, page: PageContext) -> tuple[str, str, dict]:
    options = [check(option, OPTION, "an option", body.line_of("options")) for option in body["options"]]
    correct = [number for number, option in enumerate(options) if _right(option)]
    at = body.line_of("options")
    if len(options) < 2:
        raise SourceError(at.file, at.line, f"{len(options)} option", "two options or more")
    if not correct:
        raise SourceError(at.file, at.line, "no option with correct: true", "one correct option or more")
    kind = "radio" if len(correct) == 1 else "checkbox"
    shown, reasons = [], []
    for number, option in enumerate(options):
        text = page.phrase(option["text"], option.line_of("text"))
        why = page.markdown(option["why"], option.line_of("why"))
        shown.append(
            f'<div class="edu-option"><input type="{kind}" name="{id}" value="{number}" id="{id}-{number}">'
            f'<label for="{id}-{number}">{text}</label><div class="edu-why" hidden>{why}</div></div>'
        )
        verdict = "Right" if number in correct else "Not right"
        reasons.append(f"<li><p><strong>{verdict}:</strong> {text}</p>{why}</li>")
    return "".join(shown), f"<ul>{''.join(reasons)}</ul>", {"kind": "choice", "correct": correct}


def _right(option: Lines) -> bool:
    """Whether an option is right: stated by `correct`, or computed from the expression `right_if`."""
    if "right_if" not in option:
        return option.get("correct", False)
    place = option.line_of("right_if")
    if "correct" in option:
        raise SourceError(place.file, place.line, "correct and right_if in one option", "one of the two")
    value = evaluate(option["right_if"], place)
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, bool):
        raise SourceError(place.file, place.line, f"right_if with the value {value!r}", "a value that is true or false")
    return value


def _number(id: str, body: Lines, page: PageContext) -> tuple[str, str, dict]:
    place = body.line_of("answer")
    answer = _answer(body["answer"], place)
    tolerance = float(body["tolerance"])
    if tolerance < 0:
        at = body.line_of("tolerance")
        raise SourceError(at.file, at.line, f"tolerance: {body['tolerance']}", "a tolerance of 0 or more")
    unit = body.get("unit", "")
    why = page.markdown(body["why"], body.line_of("why"))
    named = f"Your answer in {escape(unit)}" if unit else "Your answer"
    shown = (
        f'<div class="edu-option edu-option--number"><label for="{id}-value">{named}</label>'
        f'<input type="text" inputmode="decimal" autocomplete="off" name="{id}" id="{id}-value" size="10">'
        f'<div class="edu-why" hidden>{why}</div></div>'
    )
    outcome = f"<p><strong>{_plain(answer)}{' ' + escape(unit) if unit else ''}</strong></p>{why}"
    return shown, outcome, {"kind": "number", "answer": answer, "tolerance": tolerance, "unit": unit}


def _answer(stated: object, place: Place) -> float | int:
    value = evaluate(stated, place) if isinstance(stated, str) else stated
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SourceError(
            place.file, place.line, f"the answer {value!r}", "an expression whose value is a finite number"
        )
    return value


def _plain(value: float) -> str:
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")
