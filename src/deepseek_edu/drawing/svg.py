"""SVG pictures built from Python: escaped, deterministic, coloured by the page's style sheet alone.

A picture is drawn on a `Canvas` whose units are CSS pixels at the width it is made for. Most pictures are drawn
twice by the same function, 720 units wide for a column and 344 units for a phone, and the style sheet shows one:
text is then never scaled below its size. No colour, style attribute or id is written into a picture.

Rules a style sheet can rely on:

* `line`, `polyline` and `path` are strokes only; `rect`, `circle` and `polygon` are filled shapes; `text` is text.
* stroke widths, dashes and font sizes are attributes here (13 units, 11 for small text), colours are classes.

Classes used:

=====================  ==============================================================================
`edu-picture`          the wrapper; `edu-picture__wide` and `edu-picture__narrow` are its two drawings
`edu-svg`              every drawing
`k-text`               all text; with `k-text--strong` (bold), `k-text--small`, `k-text--mono` (code font)
`k-label` `k-muted`    text that names a thing, text that may recede
`k-axis` `k-grid`      axis lines, background lines
`k-tick`               tick marks and decision boundaries (line or polygon)
`k-level`              the levels a format can store (circle)
`k-value`              the exact value (circle, line, text)
`k-result`             what was stored and is read back (circle, rect, line, text)
`k-error`              the difference (line, polygon, text)
`k-clip`               the zone beyond the largest level, and values that fall in it (rect, polygon, text)
`k-band`               an interval of values that share a code (rect); with `k-band--odd` for every other one
`k-selected`           the interval, row or thing that is in use (rect, text)
`k-cell` `k-cell--hot` a cell (rect) and a cell in focus; `k-cell--soft` a cell of less weight
`k-arrow`              arrows and brackets (line, polyline, polygon)
`k-pick`               a group that sets a control when it is clicked
`k-ring`               a frame around a thing (rect), in the colour of its other class
`k-hit`                a clear rect over a thing, which does the same
`k-box`                a thing with a name (rect): soft ground of its kind; with `k-box--off` when it does not run
`k-series-1` … `-4`    chart series (polyline, circle, rect, text)
=====================  ==============================================================================
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from .numbers import coordinate, shown

WIDE = 720.0
NARROW = 344.0
FONT = 13.0
SMALL = 11.0


_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: object) -> str:
    """Text made safe inside an element and inside a double-quoted attribute."""
    return _escape_text(str(text))


@lru_cache(8192)
def _escape_text(text: str) -> str:
    return text.translate(_ESCAPED)


@lru_cache(256)
def _attribute(name: str) -> str:
    return "class" if name == "class_" else name.replace("_", "-")


def element(tag: str, *children: str, **attributes: object) -> str:
    """One element as text. Children are markup already; attribute values are escaped here.

    `class_` becomes `class`, other underscores become hyphens; `None` drops the attribute, `True` writes its bare name.

    >>> element("line", x1=0, y1=1.5, class_="k-axis", stroke_width=2)
    '<line x1="0" y1="1.5" class="k-axis" stroke-width="2"/>'
    """
    head = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        if value is True:
            head.append(_attribute(name))
        elif isinstance(value, (int, float)):
            head.append(f'{_attribute(name)}="{coordinate(value)}"')
        else:
            head.append(f'{_attribute(name)}="{escape(value)}"')
    body = "".join(children)
    return f"<{' '.join(head)}>{body}</{tag}>" if body else f"<{' '.join(head)}/>"


def _moved(x: float, y: float) -> str | None:
    return f"translate({coordinate(x)} {coordinate(y)})" if x or y else None


class Canvas:
    """A drawing surface. Methods append shapes in order and return nothing; `markup` is the finished drawing."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._parts: list[str] = []

    @property
    def narrow(self) -> bool:
        """Whether this canvas is meant for a phone."""
        return self.width < 500

    def add(self, markup: str) -> None:
        """Append markup made elsewhere."""
        self._parts.append(markup)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, style: str = "k-axis", width: float = 1, dash: str = ""
    ) -> None:
        """A straight stroke."""
        self.add(
            element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style, stroke_width=width, stroke_dasharray=dash or None)
        )

    def polyline(
        self, points: list[tuple[float, float]], style: str = "k-axis", width: float = 1, dash: str = ""
    ) -> None:
        """Connected strokes."""
        text = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)
        self.add(
            element(
                "polyline", points=text, class_=style, stroke_width=width, fill="none", stroke_dasharray=dash or None
            )
        )

    def polygon(self, points: list[tuple[float, float]], style: str) -> None:
        """A filled shape."""
        self.add(
            element("polygon", points=" ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points), class_=style)
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str = "k-cell",
        radius: float = 0,
        strength: float = 1,
    ) -> None:
        """A filled rectangle; `strength` from 0 to 1 is how much of its colour covers the ground."""
        faint = None if strength >= 1 else max(0.0, strength)
        self.add(
            element("rect", x=x, y=y, width=width, height=height, class_=style, rx=radius or None, fill_opacity=faint)
        )

    def circle(self, x: float, y: float, radius: float, style: str = "k-level") -> None:
        """A filled circle."""
        self.add(element("circle", cx=x, cy=y, r=radius, class_=style))

    def text(
        self, x: float, y: float, content: object, style: str = "", anchor: str = "middle", size: float = FONT
    ) -> None:
        """Text on a baseline at `y`; a number is written for readers.

        `style` is added to `k-text`; small sizes get `k-text--small`.
        """
        classes = " ".join(filter(None, ("k-text", "k-text--small" if size <= SMALL else "", style)))
        self.add(
            element(
                "text",
                escape(shown(content)),
                x=x,
                y=y,
                class_=classes,
                text_anchor=None if anchor == "start" else anchor,
                font_size=None if size == FONT else size,
            )
        )

    def arrow(
        self, x1: float, y1: float, x2: float, y2: float, style: str = "k-arrow", width: float = 1.5, head: float = 6
    ) -> None:
        """A stroke with a filled head at its end; a head longer than the stroke shrinks with it."""
        dx, dy = x2 - x1, y2 - y1
        length = (dx * dx + dy * dy) ** 0.5
        if length < 0.5:
            return
        head = min(head, length)
        ux, uy = dx / length, dy / length
        bx, by = x2 - ux * head, y2 - uy * head
        self.line(x1, y1, bx, by, style, width)
        half = head * 0.5
        self.polygon([(x2, y2), (bx - uy * half, by + ux * half), (bx + uy * half, by - ux * half)], style)

    def bracket(self, x1: float, x2: float, y: float, depth: float = 6, style: str = "k-arrow") -> None:
        """A square bracket from `x1` to `x2`; positive depth opens upwards (its back is `depth` below `y`)."""
        self.polyline([(x1, y), (x1, y + depth), (x2, y + depth), (x2, y)], style)

    def cell(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        content: object,
        style: str = "k-cell",
        text: str = "",
        size: float = FONT,
    ) -> None:
        """A rounded cell with centred text."""
        self.rect(x, y, width, height, style, radius=3)
        self.text(x + width / 2, y + height / 2 + size * 0.35, content, text, size=size)

    @contextmanager
    def group(self, x: float = 0, y: float = 0) -> Iterator[None]:
        """Shapes drawn inside belong together, with (x, y) as their origin.

        Groups are also what precomputed states share: keep what changes with a control apart from what does not, and
        use the origin for what only moves.
        """
        moved = _moved(x, y)
        self.add(f'<g transform="{moved}">' if moved else "<g>")
        yield
        self.add("</g>")

    @contextmanager
    def pick(self, control: str, value: object, x: float = 0, y: float = 0) -> Iterator[None]:
        """A group that sets a widget's control to a value when it is clicked.

        A convenience for pointers alone: the control itself has to offer the same to a keyboard and a screen reader.
        """
        head = element("g", class_="k-pick", data_set=f"{control}={value}", transform=_moved(x, y))
        self.add(head.removesuffix("/>") + ">")
        yield
        self.add("</g>")

    def markup(self) -> str:
        """The inner markup of the drawing."""
        return "".join(self._parts)


@dataclass(frozen=True)
class Drawing:
    """One finished drawing: inner markup and the size of its view box."""

    width: float
    height: float
    markup: str


def svg_root(
    drawing: Drawing, title: str, description: str, prefix: str | None = None, style: str = "edu-svg", inner: str = ""
) -> str:
    """The `<svg>` element of a drawing, named for screen readers.

    With a prefix, unique in the page, the name comes from `<title>` and `<desc>`; without one the same words go into
    `aria-label`, so that markup which is copied into a page several times holds no id.
    """
    if prefix is None:
        return _svg(drawing, inner, style, role="img", aria_label=f"{title}. {description}")
    names = element("title", escape(title), id=f"{prefix}-title")
    names += element("desc", escape(description), id=f"{prefix}-desc")
    return _svg(drawing, names + inner, style, role="img", aria_labelledby=f"{prefix}-title {prefix}-desc")


def _svg(drawing: Drawing, inner: str, style: str = "edu-svg", **names: object) -> str:
    box = f"0 0 {coordinate(drawing.width)} {coordinate(drawing.height)}"
    return element(
        "svg",
        inner,
        drawing.markup,
        xmlns="http://www.w3.org/2000/svg",
        class_=style,
        viewBox=box,
        font_size=FONT,
        **names,
    )


@dataclass(frozen=True)
class Picture:
    """A picture of one or two drawings of the same thing, with the words that stand in for it.

    Attributes:
        wide: drawing for a text column.
        title: what it is, a few words.
        description: what it shows, in sentences; a reader who cannot see it loses nothing.
        narrow: drawing for a phone, or `None` if the wide one is readable at 344 pixels.
        raw: the numbers behind the picture, unrounded, for tests and for "copy as data".
    """

    wide: Drawing
    title: str
    description: str
    narrow: Drawing | None = None
    raw: object = None

    @property
    def svg(self) -> str:
        """The wide drawing as one `<svg>` element without ids."""
        return svg_root(self.wide, self.title, self.description)

    def html(self, prefix: str | None = None) -> str:
        """Markup for a page; `prefix` makes ids, and has to be unique in the page when given.

        Without a prefix the two drawings share one `aria-label` on their wrapper.
        """
        if prefix is not None:
            wide = svg_root(self.wide, self.title, self.description, prefix)
            small = self.narrow and svg_root(self.narrow, self.title, self.description, f"{prefix}-narrow")
            names: dict[str, object] = {}
        else:
            wide = _svg(self.wide, "", aria_hidden="true")
            small = self.narrow and _svg(self.narrow, "", aria_hidden="true")
            names = {"role": "img", "aria_label": f"{self.title}. {self.description}"}
        if small is None:
            return element("div", wide, class_="edu-picture", **names)
        return element(
            "div",
            element("div", wide, class_="edu-picture__wide"),
            element("div", small, class_="edu-picture__narrow"),
            class_="edu-picture",
            **names,
        )


def draw(
    paint: Callable[[float], Canvas],
    title: str,
    description: str,
    raw: object = None,
    wide: float = WIDE,
    narrow: float | None = NARROW,
) -> Picture:
    """Draw the same thing for both widths. `paint(width)` returns the canvas of that width."""

    def once(width: float) -> Drawing:
        canvas = paint(width)
        return Drawing(canvas.width, canvas.height, canvas.markup())

    return Picture(once(wide), title, description, once(narrow) if narrow else None, raw)
