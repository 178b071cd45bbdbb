"""HTML of widgets: the parts of a view and the whole element for a page; the inputs are in inputs.py.

Parts carry no ids, so that a precomputed part can be shown in any instance of the widget on a page.
"""

import re
from collections.abc import Mapping

from deepseek_edu.drawing.numbers import shown
from deepseek_edu.drawing.svg import element, escape

from .contract import Widget
from .inputs import control_specs, render_controls, render_more
from .parts import Metrics, Prose, Steps, Table, View, kind_of

_TOGETHER = re.compile(r"\[[^][]{1,14}\]|[<>≤≥±] \d")
_NOSCRIPT = (
    "This is the start state, computed when the site was built. With JavaScript switched on, the controls work and the "
    "code can be edited and run."
)
_ACTIONS = {"live": "Run live", "edit": "Edit the code", "reset": "Reset", "link": "Copy link", "copy": "Copy as data"}


def render_parts(view: View, prefix: str = "") -> list[str]:
    """HTML of each part. With a `prefix`, unique in the page, pictures are named through ids, else by `aria-label`."""
    rendered = []
    for index, part in enumerate(view.parts):
        kind = kind_of(part)
        if kind in ("picture", "chart"):
            rendered.append(part.html(f"{prefix}-{index}" if prefix else None))
        else:
            rendered.append(_RENDER[kind](part))
    return rendered


def unbroken(text: str) -> str:
    """The text with no line break inside a short list in brackets, nor between a sign and its number.

    >>> unbroken("from [0, 4] and > 50").replace("\u00a0", "_")
    'from [0,_4] and >_50'
    """
    return _TOGETHER.sub(lambda found: found[0].replace(" ", "\u00a0"), text)


def _metrics(part: Metrics) -> str:
    items = []
    for item in part.items:
        unit = f' <span class="edu-metric__unit">{escape(item.unit)}</span>' if item.unit else ""
        note = f' <span class="edu-metric__note">{escape(unbroken(item.note))}</span>' if item.note else ""
        nothing = item.role in ("error", "clip") and isinstance(item.value, (int, float)) and item.value == 0
        role = f" edu-metric--{item.role}" if item.role and not nothing else ""
        items.append(
            f'<div class="edu-metric{escape(role)}"><dt>{escape(item.label)}</dt>'
            f"<dd>{escape(item.shown)}{unit}{note}</dd></div>"
        )
    return element("dl", *items, class_="edu-metrics", aria_label=part.label or None)


def _table(part: Table) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in part.columns)
    body = []
    for index, row in enumerate(part.rows):
        words = part.text[index] if part.text else [""] * len(row)
        cells = [escape(text or shown(v)) for text, v in zip(words, row, strict=True)]
        selected = ' class="is-selected"' if index in part.selected else ""
        cells_html = "".join(f"<td>{cell}</td>" for cell in cells[1:])
        body.append(f'<tr{selected}><th scope="row">{cells[0]}</th>{cells_html}</tr>')
    caption = escape(part.caption)
    wordy = "".join(f" edu-table--{i + 1}" for i in range(1, len(part.columns)) if _wordy(part.rows, i))
    scroll = (
        f'<div class="edu-scroll" role="region" tabindex="0" aria-label="{caption}"><table class="edu-table{wordy}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
    if part.folded:
        return f'<details class="edu-details"><summary>{caption}</summary>{scroll}</details>'
    return f'<p class="edu-table__caption">{caption}</p>{scroll}'


def _wordy(rows: tuple[tuple, ...], column: int) -> bool:
    """Whether a column holds words, which read from the left, and not figures."""
    return all(isinstance(row[column], str) and any(c.isalpha() for c in row[column]) for row in rows)


def _prose(part: Prose) -> str:
    role = f" edu-prose--{part.role}" if part.role else ""
    return f'<div class="edu-prose{escape(role)}"><p>{escape(unbroken(part.text))}</p></div>'


def _steps(part: Steps) -> str:
    return element(
        "ol",
        *(f"<li>{escape(unbroken(item))}</li>" for item in part.items),
        class_="edu-steps",
        aria_label=part.label or None,
    )


_RENDER = {"metrics": _metrics, "table": _table, "prose": _prose, "steps": _steps}


def render_widget(
    widget: Widget,
    values: Mapping[str, object] | None = None,
    states_path: str = "",
    *,
    instance: int = 1,
    live_size: str = "",
    heading: str = "h3",
    predict: Mapping[str, object] | None = None,
) -> str:
    """The element for a page, complete without JavaScript.

    Args:
        widget: a registered widget, or its id.
        values: start values of this instance; others are the widget's own.
        states_path: path of the precomputed states below the folder of the site's own files.
        instance: 1 for the first one of this widget on its page, 2 for the second …
        live_size: what "Run live" loads, for example "9.4 MB".
        heading: tag of the title, to fit the page's outline.
        predict: `{"quiz": id, "version", "when": {control: value}}`: while these controls have these values, the page's
            script covers what was computed until that question has an answer, or the reader asks to see it.

    Raises:
        ControlError: a start value is not allowed.
    """
    from .live import mechanism_source

    if isinstance(widget, str):
        from . import get

        widget = get(widget)
    id = f"widget-{widget.id}" + (f"-{instance}" if instance > 1 else "")
    checked = widget.check(values or {})
    view = widget.view(widget.canonical(checked))
    holders = [f'<div class="edu-part" data-part="{i}">{html}</div>' for i, html in enumerate(render_parts(view))]
    holders.insert(1, render_more(widget, checked, id))
    spec = {
        "id": widget.id,
        "title": widget.title,
        "controls": control_specs(widget),
        "defaults": _plain(widget.defaults),
        "values": _plain(checked),
        "mechanism": {
            "modules": {name: list(names) for name, names in widget.mechanism.items()},
            "names": list(widget.names),
            "source": mechanism_source(widget),
        },
        **({"predict": dict(predict)} if predict else {}),
    }
    buttons = "".join(
        f'<button type="button" class="edu-button" data-action="{action}" hidden>{label}</button>'
        for action, label in _ACTIONS.items()
    )
    data = f' data-states="{escape(states_path)}"' if states_path else ""
    data += f' data-live-size="{escape(live_size)}"' if live_size else ""
    return (
        f'<edu-widget id="{id}" data-widget="{escape(widget.id)}"{data}>'
        f'<section class="edu-widget" aria-labelledby="{id}-title">'
        f'<header class="edu-widget__head"><p class="edu-widget__kind">Widget</p>'
        f'<{heading} class="edu-widget__title" id="{id}-title">{escape(widget.title)}</{heading}>'
        "</header>"
        f'<form class="edu-controls"><fieldset disabled aria-label="Controls">{render_controls(widget, checked, id)}'
        f'</fieldset></form>{_cover(predict)}<div class="edu-view">{"".join(holders)}</div>'
        f'<p class="edu-summary" role="status" aria-live="polite">{escape(view.summary)}</p>'
        f'<div class="edu-widget__bar" hidden>{buttons}<p class="edu-status" role="status"></p></div>'
        f'<div class="edu-editor" hidden></div><noscript><p class="edu-noscript">{_NOSCRIPT}</p></noscript>'
        f"{_source(widget)}"
        f'<script type="application/json" class="edu-spec">{_script(spec)}</script></section></edu-widget>'
    )


def _cover(predict: Mapping[str, object] | None) -> str:
    """What stands in place of the result until a question is answered; without scripts it stays hidden."""
    if not predict:
        return ""
    return (
        '<div class="edu-cover" hidden><p><strong>Predict first.</strong> What is computed here answers '
        f'<a href="#quiz-{escape(str(predict["quiz"]))}">the question above</a>. Answer it, right or wrong, and it is '
        "shown.</p>"
        '<button type="button" class="edu-button" data-action="uncover">Show without answering</button></div>'
    )


def _source(widget: Widget) -> str:
    """What computes the widget, and where that is described."""
    files = ", ".join(f"<code>{escape(name.split('.', 1)[1].replace('.', '/'))}.py</code>" for name in widget.mechanism)
    words = [f"Computed by {files}" if files else "", escape(widget.source)]
    text = " · ".join(filter(None, words))
    return f'<p class="edu-widget__source">{text}</p>' if text else ""


def _script(value: object) -> str:
    from deepseek_edu.drawing.chart import json_for_script

    return json_for_script(value)


def _plain(values: Mapping[str, object]) -> dict:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
