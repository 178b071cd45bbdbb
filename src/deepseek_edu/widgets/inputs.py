"""The native inputs of a widget's controls, as HTML, and the controls as data for the page's script."""

from collections.abc import Iterable, Mapping

from deepseek_edu.drawing.svg import escape

from .contract import Choice, Control, Numbers, Slider, Text, Toggle, Widget

_LONGEST = {2: 18, 3: 11}
"""Letters of a choice that fit on one line of a segment where so many share half of a wide row."""
_LONGEST_OPTION = 38
_LONGEST_WORD = {1: 32, 2: 16, 3: 10, 4: 7, 5: 5}
"""Letters of a word that fit into a segment where so many stand side by side on a phone, 320 pixels wide."""


def render_controls(widget: Widget, values: Mapping[str, object], prefix: str) -> str:
    """The native inputs above the picture. `prefix` is the id of the element on its page."""
    names = (name for name, control in widget.controls.items() if not control.more)
    return _rows(widget, names, values, prefix)


def render_more(widget: Widget, values: Mapping[str, object], prefix: str) -> str:
    """The folded inputs under the picture, with their values on the folded line; "" where a widget has none."""
    names = [name for name, control in widget.controls.items() if control.more]
    if not names:
        return ""
    shown = [name for name in names if widget.shown(name, values)]
    return (
        f'<details class="edu-more"{"" if shown else " hidden"}><summary>More settings '
        f'<span class="edu-more__values">{escape(_settings(widget, shown, values))}</span></summary>'
        f'<div class="edu-controls"><fieldset disabled aria-label="More settings">'
        f"{_rows(widget, names, values, prefix)}</fieldset></div></details>"
    )


def _settings(widget: Widget, names: Iterable[str], values: Mapping[str, object]) -> str:
    """Settings as the folded line tells them; lists and texts are only named."""
    words = []
    for name in names:
        control = widget.controls[name]
        told = isinstance(control, (Slider, Choice, Toggle))
        words.append(f"{control.label}: {control.text(values[name])}" if told else control.label)
    return " · ".join(words)


def _rows(widget: Widget, names: Iterable[str], values: Mapping[str, object], prefix: str) -> str:
    return "".join(_control(widget, name, values, f"{prefix}-{name}") for name in names)


def control_specs(widget: Widget) -> list[dict]:
    """The controls as plain data for the page's script."""
    return [
        {
            "name": name,
            "kind": control.kind,
            "label": control.label,
            "when": dict(control.when),
            **({"more": True} if control.more else {}),
            **control.spec(),
        }
        for name, control in widget.controls.items()
    ]


def _control(widget: Widget, name: str, values: Mapping[str, object], id: str) -> str:
    control, value = widget.controls[name], values[name]
    help_id = f"{id}-help" if control.help else None
    label = escape(control.label)
    described = f' aria-describedby="{escape(help_id)}"' if help_id else ""
    several = isinstance(control, Numbers) or getattr(control, "look", "") == "segments"
    if several:
        tag, head = "fieldset", f'<legend class="edu-control__label">{label}</legend>'
    else:
        tag, head = "div", f'<label class="edu-control__label" for="{escape(id)}">{label}</label>'
    body = _body(control, value, id, described)
    note = f'<p class="edu-control__help" id="{escape(help_id)}">{escape(control.help)}</p>' if help_id else ""
    look = f' data-look="{control.look}"' if getattr(control, "look", "") else ""
    look += " data-wide" if isinstance(control, Choice) and needs_a_row(control) else ""
    hidden = "" if widget.shown(name, values) else " hidden"
    return (
        f'<{tag} class="edu-control" data-control="{escape(name)}" data-kind="{control.kind}"{look}'
        f"{described if several else ''}{hidden}>{head}{body}{note}</{tag}>"
    )


def _body(control: Control, value: object, id: str, described: str) -> str:
    if isinstance(control, Slider):
        return _slider(control, value, id, described)
    if isinstance(control, Toggle):
        return f'<input type="checkbox" id="{escape(id)}"{" checked" if value else ""}{described}>'
    if isinstance(control, Text):
        return _text(control, value, id, described)
    if isinstance(control, Numbers):
        return _table(control, value, id) if control.columns else _numbers(control, value, id)
    return {"select": _select, "segments": _segments, "search": _search}[control.look](control, value, id, described)


def _slider(control: Slider, value: float, id: str, described: str) -> str:
    text = escape(control.text(value))
    field = (
        f'<input type="range" id="{escape(id)}" min="{_js(control.min)}" max="{_js(control.max)}" '
        f'step="{_js(control.step)}" value="{_js(value)}" aria-valuetext="{text}"{described}>'
        f'<output for="{escape(id)}">{text}</output>'
    )
    if control.look != "steps":
        return field
    label = escape(control.label)
    buttons = "".join(
        f'<button type="button" class="edu-button edu-step" data-step="{step}" hidden>{words}'
        f'<span class="edu-visually-hidden"> ({label})</span></button>'
        for step, words in (("back", "Back"), ("next", "Next"), ("play", "Play"))
    )
    return f'{field}<div class="edu-stepper">{buttons}</div>'


def _select(control: Choice, value: object, id: str, described: str) -> str:
    options = "".join(
        f'<option value="{escape(key)}"{" selected" if key == value else ""}>{escape(words)}</option>'
        for key, words in control.options.items()
    )
    return f'<select id="{escape(id)}"{described}>{options}</select>'


def _search(control: Choice, value: object, id: str, described: str) -> str:
    options = "".join(f"<option>{escape(words)}</option>" for words in control.options.values())
    return (
        f'<input type="text" class="edu-text" list="{escape(id)}-options" autocomplete="off" spellcheck="false" '
        f'id="{escape(id)}" value="{escape(control.options[value])}"{described}>'
        f'<datalist id="{escape(id)}-options">{options}</datalist>'
    )


def needs_a_row(control: Choice) -> bool:
    """Whether a choice stands in a row of its own where two stand side by side: in half of it words would wrap."""
    letters = max(map(len, control.options.values()))
    if control.look == "segments":
        return letters > _LONGEST.get(len(control.options), 0)
    return control.look == "select" and letters > _LONGEST_OPTION


def columns_on_phones(labels: Iterable[str]) -> int:
    """How many segments of a choice stand side by side on a phone: rows of equal length, at most two lines in each.

    >>> columns_on_phones(["Full", "Reindex", "Reuse"])
    3
    >>> columns_on_phones(["A round", "Acceptance", "Survival", "Scheduler"])
    2
    """
    labels = list(labels)
    longest = max(len(word) for label in labels for word in label.split())
    letters = max(map(len, labels))
    for rows in range(1, len(labels) + 1):
        columns = -(-len(labels) // rows)
        room = _LONGEST_WORD.get(columns, 3)
        if longest <= room and letters <= 2 * room:
            return columns
    return 1


def _segments(control: Choice, value: object, id: str, described: str) -> str:
    return (
        f'<div class="edu-segments" data-columns="{columns_on_phones(control.options.values())}">'
        + "".join(
            f'<span class="edu-segment"><input type="radio" name="{escape(id)}" id="{escape(id)}-{index}" '
            f'value="{escape(key)}"{" checked" if key == value else ""}>'
            f'<label for="{escape(id)}-{index}">{escape(words)}</label></span>'
            for index, (key, words) in enumerate(control.options.items())
        )
        + "</div>"
    )


def _number(control: Numbers, item: float, id: str, index: int) -> str:
    keyboard, step = ("numeric", "1") if control.whole and control.min >= 0 else ("decimal", "any")
    return (
        f'<input type="number" inputmode="{keyboard}" id="{escape(id)}-{index}" min="{_js(control.min)}" '
        f'max="{_js(control.max)}" step="{step}" value="{_js(item)}"'
    )


def _numbers(control: Numbers, value: tuple[float, ...], id: str) -> str:
    return (
        '<div class="edu-numbers">'
        + "".join(
            f'<span class="edu-number"><label for="{escape(id)}-{index}">'
            f'<span class="edu-visually-hidden">{escape(control.label)}, number </span>'
            f"{escape(control.name_of(index))}</label>{_number(control, item, id, index)}></span>"
            for index, item in enumerate(value)
        )
        + "</div>"
    )


def _table(control: Numbers, value: tuple[float, ...], id: str) -> str:
    """Numbers as a table: names of columns above, of rows at the side; each input carries both in its own name."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in control.names)
    rows = []
    for row, name in enumerate(control.rows):
        start = row * control.columns
        cells = "".join(
            f'<td>{_number(control, item, id, start + i)} aria-label="{escape(control.label)}: '
            f'{escape(control.name_of(start + i))}"></td>'
            for i, item in enumerate(value[start : start + control.columns])
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<div class="edu-scroll" role="region" tabindex="0" aria-label="{escape(control.label)}">'
        f'<table class="edu-numbers edu-numbers--table"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _text(control: Text, value: str, id: str, described: str) -> str:
    words = f' maxlength="{control.max_length}" autocomplete="off" autocapitalize="off" spellcheck="false"{described}'
    style = ' class="edu-text edu-text--code"' if control.code else ' class="edu-text"'
    if control.lines == 1:
        return f'<input type="text" id="{escape(id)}"{style} value="{escape(value)}"{words}>'
    return f'<textarea id="{escape(id)}"{style} rows="{control.lines}"{words}>\n{escape(value)}</textarea>'


def _js(value: float) -> str:
    """A number the way HTML attributes and JavaScript write it."""
    return str(int(value)) if value == int(value) else repr(float(value))
