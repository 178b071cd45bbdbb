"""The fences `widget`, `lab`, `run`, `walk` and `figure`: from checked YAML to the markup of the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepseek_edu.site.errors import SourceError, one_of
from deepseek_edu.site.page import PageContext, json_script
from deepseek_edu.site.quiz import render_quiz
from deepseek_edu.site.runs import render_run
from deepseek_edu.site.schema import Key, Lines, check, load
from deepseek_edu.site.source import Piece, Place

if TYPE_CHECKING:
    from deepseek_edu.grading import Lab

WIDGET = {"id": Key("text", True), "values": Key("mapping"), "predict": Key("mapping")}
PREDICT = {"quiz": Key("text", True), "when": Key("mapping")}
LAB = {"id": Key("text", True)}
FIGURE = {"id": Key("text", True), "caption": Key("text", True), "claim": Key("text", True)}
WALK = {"id": Key("text", True), "cards": Key("list", True)}
CARD = {"title": Key("text", True), "text": Key("text", True), "figure": Key("text")}


def render_widget(piece: Piece, page: PageContext) -> str:
    """Return an `<edu-widget>` at its starting values."""
    from deepseek_edu import widgets
    from deepseek_edu.widgets import render

    body = check(load(piece.body, piece.place.after(1)), WIDGET, "a widget", piece.place)
    id, at = body["id"], body.line_of("id")
    known = widgets.names()
    if id not in known:
        raise SourceError(at.file, at.line, f"the unknown widget {id}", one_of(known, id))
    values = dict(body.get("values", {}))
    try:
        html = render.render_widget(
            id,
            values,
            page.project.staged.get("states", {}).get(id, ""),
            instance=page.count(f"widget-{id}"),
            live_size=page.project.staged.get("live", {}).get("widget", ""),
            predict=_prediction(id, body, page),
        )
    except widgets.ControlError as error:
        at = body.line_of("values")
        raise SourceError(
            at.file, at.line, f"values that the widget {id} refuses ({error})", "values of its controls"
        ) from error
    # a group and no landmark: the same widget may stand on a page twice, under the same name
    html = html.replace('<section class="edu-widget"', '<section class="edu-widget" role="group"', 1)
    return html.replace("<edu-widget ", "<edu-widget data-search-exclude ", 1)


def _prediction(id: str, body: Lines, page: PageContext) -> dict[str, Any] | None:
    """What uncovers a widget: the question above it and the settings that are covered, as `render_widget` takes it."""
    from deepseek_edu import widgets

    if "predict" not in body:
        return None
    asked = check(body["predict"], PREDICT, "predict", body.line_of("predict"))
    quiz, at = asked["quiz"], asked.line_of("quiz")
    if quiz not in page.questions:
        known = one_of(page.questions, quiz) if page.questions else "a quiz that stands above the widget on its page"
        raise SourceError(at.file, at.line, f"predict with {quiz}, which is no question above the widget", known)
    when, at = dict(asked.get("when", {})), asked.line_of("when")
    chosen = widgets.get(id)
    for name, wanted in when.items():
        if not isinstance(chosen.controls.get(name), widgets.Choice | widgets.Toggle):
            choices = [name for name, c in chosen.controls.items() if isinstance(c, widgets.Choice | widgets.Toggle)]
            raise SourceError(at.file, at.line, f"when with {name}, no choice of {id}", one_of(choices, str(name)))
        try:
            chosen.controls[name].check(name, wanted)
        except widgets.ControlError as error:
            raise SourceError(at.file, at.line, f"when: {error}", "a value of that control") from error
    return {"quiz": quiz, "version": page.questions[quiz], "when": when}


def render_lab(piece: Piece, page: PageContext) -> str:
    """Return an `<edu-lab>`: statement, starter code, visible cases. Nothing of the solution is in it."""
    body = check(load(piece.body, piece.place.after(1)), LAB, "a lab", piece.place)
    id, at = body["id"], body.line_of("id")
    labs = page.project.root / "labs"
    known = sorted(path.parent.name for path in labs.glob("*/lab.toml"))
    if id not in known:
        raise SourceError(at.file, at.line, f"the unknown lab {id}", one_of(known, id))
    lab = _loaded(page.project.root, id)
    data = lab.page_data()
    element = page.unique(f"lab-{id}", at, f"the lab {id}")
    place = Place(f"labs/{id}/statement.md", 1)
    statement = page.markdown(lab.statement, place, prefix=element)
    visible, hidden = len(data["cases"]), data["hidden"]
    cases = "".join(_case(case) for case in data["cases"])
    actions = {"run": "Run", "stop": "Stop", "reset": "Reset", "undo": "Undo reset", "download": "Download code"}
    buttons = "".join(
        f'<button type="button" class="edu-button" data-action="{name}" hidden>{label}</button>'
        for name, label in actions.items()
    )
    live = escape(page.project.staged.get("live", {}).get("lab", ""), quote=True)
    return (
        f'<edu-lab id="{element}" data-lab="{id}" data-live-size="{live}" data-search-exclude>'
        f'<section class="edu-lab" aria-labelledby="{element}-title"><header class="edu-lab__head">'
        f'<p class="edu-lab__kind">Lab</p><h3 class="edu-lab__title" id="{element}-title">{escape(data["title"])}</h3>'
        f'<p class="edu-lab__facts">{data["points"]:g} points · {visible} visible cases, '
        f"{hidden} hidden cases run at grading</p>"
        f'</header><div class="edu-lab__statement">{statement}</div>'
        f'<div class="edu-lab__editor"><pre tabindex="0" aria-label="Starter code"><code>{escape(data["starter"])}'
        "</code></pre></div>"
        f'<div class="edu-lab__bar">{buttons}</div><div class="edu-lab__outcome" role="status"></div>'
        f'<ol class="edu-lab__cases">{cases}</ol>{json_script(data)}</section></edu-lab>'
    )


def _loaded(root: Path, id: str) -> Lab:
    """Return a lab whose files are sound, or raise SourceError with file and line of what is not."""
    from deepseek_edu.grading import LabError, load_lab

    try:
        lab = load_lab(root / "labs" / id)
    except LabError as error:
        file = Path(error.where)
        name = file.relative_to(root.resolve()).as_posix() if file.is_relative_to(root.resolve()) else error.where
        named = re.match(r"unknown (?:key|limit) '(\w+)'", error.found)
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n") if named and file.is_file() else []
        keys = (number for number, line in enumerate(lines, 1) if named and re.match(rf"\s*{named[1]}\s*=", line))
        allowed = error.allowed.removeprefix("Allowed: ")
        raise SourceError(name, next(keys, None), error.found, allowed[:1].lower() + allowed[1:]) from error
    try:
        ast.parse(lab.starter)
    except SyntaxError as error:
        place = f"labs/{id}/starter.py"
        raise SourceError(
            place, error.lineno, f"a syntax error ({error.msg})", "a starter that Python can read"
        ) from error
    return lab


def _case(case: dict[str, Any]) -> str:
    call = f"{case['function']}({', '.join(_literal(argument) for argument in case['args'])})"
    note = f'<span class="edu-case__note">{escape(case["note"])}</span>' if case.get("note") else ""
    return (
        f'<li class="edu-case" data-case="{escape(str(case["id"]), quote=True)}">'
        f'<code class="edu-case__call">{escape(call)}</code>'
        f' → <code class="edu-case__expected">{escape(_literal(case["expected"]))}</code>{note}</li>'
    )


def _literal(value: Any) -> str:
    """Show a value of a case as Python, shortened where it is long. Tagged values are shown as what they mean."""
    if isinstance(value, dict) and len(value) == 1:
        ((tag, inner),) = value.items()
        if tag == "$bytes":
            return f"bytes.fromhex({inner!r})"
        if tag in ("$float", "$int"):
            return f'float("{inner}")' if tag == "$float" else str(inner)
    if isinstance(value, list) and len(value) > 8:
        return "[" + ", ".join(_literal(item) for item in value[:6]) + f", … {len(value)} values]"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return repr(value)


def picture(id: str, place: Place, prefix: str) -> str:
    """Return the markup of a figure of the package."""
    from deepseek_edu import figures

    if id not in figures.names():
        raise SourceError(place.file, place.line, f"the unknown figure {id}", one_of(figures.names(), id))
    return figures.get(id).html(prefix)


def render_figure(piece: Piece, page: PageContext) -> str:
    """Return a `<figure>` with its caption and the badge of its evidence."""
    body = check(load(piece.body, piece.place.after(1)), FIGURE, "a figure", piece.place)
    id = page.unique(f"fig-{body['id']}", body.line_of("id"), f"the figure {body['id']}")
    drawn = picture(body["id"], body.line_of("id"), f"{id}-svg")
    caption = page.phrase(body["caption"], body.line_of("caption"))
    badge = page.badge(body["claim"], body.line_of("claim"))
    return (
        f'<figure class="edu-figure" id="{id}"><div data-search-exclude>{drawn}</div>'
        f"<figcaption>{caption} {badge}</figcaption></figure>"
    )


def render_walk(piece: Piece, page: PageContext) -> str:
    """Return an `<edu-walk>`: cards in order, all readable, which the page's script shows one at a time."""
    body = check(load(piece.body, piece.place.after(1)), WALK, "a walk", piece.place)
    id = page.unique(f"walk-{body['id']}", body.line_of("id"), f"the walk {body['id']}")
    cards = [check(card, CARD, "a card", body.line_of("cards")) for card in body["cards"]]
    shown = "".join(_card(id, number, card, page) for number, card in enumerate(cards, 1))
    return f'<edu-walk class="edu-walk" id="{id}"><ol>{shown}</ol></edu-walk>'


def _card(id: str, number: int, card: Lines, page: PageContext) -> str:
    at = card.line_of("figure")
    drawn = picture(card["figure"], at, f"{id}-{number}-svg") if "figure" in card else ""
    # a block scalar's text begins on the line after its key
    text = page.markdown(card["text"], card.line_of("text").after(1), prefix=f"{id}-{number}", level=5)
    title = page.phrase(card["title"], card.line_of("title"))
    return f'<li class="edu-walk__card"><p class="edu-walk__title"><strong>{title}</strong></p>{text}{drawn}</li>'


RENDERERS: dict[str, Callable[[Piece, PageContext], str]] = {
    "figure": render_figure,
    "lab": render_lab,
    "quiz": render_quiz,
    "run": render_run,
    "walk": render_walk,
    "widget": render_widget,
}
