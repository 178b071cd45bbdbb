"""HTML of widgets: complete without scripts, escaped, named for screen readers, repeatable on one page."""

import json
import re
from html.parser import HTMLParser

import pytest

from deepseek_edu import widgets
from deepseek_edu.drawing.chart import Axis, Chart, Series
from deepseek_edu.drawing.svg import escape
from deepseek_edu.widgets import (
    Choice,
    ControlError,
    Metric,
    Metrics,
    Numbers,
    Prose,
    Slider,
    Steps,
    Table,
    Toggle,
    View,
)
from deepseek_edu.widgets.contract import REGISTRY, widget
from deepseek_edu.widgets.inputs import needs_a_row
from deepseek_edu.widgets.render import render_parts, render_widget

NASTY = """</script><img src=x onerror=alert(1)> & "double" 'single' <!--"""


class Page(HTMLParser):
    """Tags with attributes, text, and the check that elements are closed in order."""

    VOID = frozenset({"input", "img", "br", "meta"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data

    def all(self, tag: str, **wanted) -> list[dict]:
        return [a for t, a in self.tags if t == tag and all(a.get(k.replace("_", "-")) == v for k, v in wanted.items())]

    @property
    def ids(self) -> list[str]:
        return [a["id"] for _, a in self.tags if "id" in a]


def spec(html: str) -> dict:
    return json.loads(re.search(r'class="edu-spec">(.*?)</script>', html, re.DOTALL).group(1))


@pytest.fixture
def nasty():
    def function(
        slide: Slider(0, 1, 0.5, NASTY, unit=NASTY, help=NASTY) = 0,
        which: Choice({"a": NASTY, NASTY: "b"}, NASTY, help=NASTY) = "a",
        look: Choice({"a": NASTY, NASTY: "b"}, NASTY, look="segments") = "a",
        on: Toggle(NASTY) = True,
        row: Numbers(0, 1, 0.5, NASTY, length=2) = (0, 0.5),
    ) -> View:
        chart = Chart(NASTY, NASTY, Axis(NASTY), Axis(NASTY), (Series(NASTY, (0, 1), (0, 1), text=(NASTY, "")),))
        parts = (
            Metrics((Metric(NASTY, NASTY, unit=NASTY, note=NASTY, role=NASTY),), NASTY),
            Table(NASTY, (NASTY, "b"), ((NASTY, 1.5),), folded=True),
            Table(NASTY, (NASTY,), ((NASTY,),)),
            Prose(NASTY, NASTY),
            Steps((NASTY,), NASTY),
            chart,
        )
        return View(parts, NASTY)

    widget("nasty", title=NASTY)(function)
    yield REGISTRY["nasty"]
    REGISTRY.pop("nasty")


def test_hostile_text_everywhere_stays_text(nasty):
    html = render_widget(nasty, {}, NASTY, live_size=NASTY)
    page = Page(html)
    assert not page.all("img")
    assert not any(key.startswith("on") and key != "on" for _, attrs in page.tags for key in attrs)
    assert html.count("<script") == html.count("</script>") == 2
    assert page.all("edu-widget")[0]["data-live-size"] == NASTY
    assert page.all("option")[1]["value"] == NASTY
    assert spec(html)["title"] == NASTY
    assert page.words.count("onerror=alert(1)") > 15


def test_the_element_has_everything_the_contract_names():
    html = render_widget("fp4", {"value": 2.5}, "widgets/fp4-1a2b.json", live_size="9.4 MB")
    page = Page(html)
    (element,) = page.all("edu-widget")
    assert element == {
        "id": "widget-fp4",
        "data-widget": "fp4",
        "data-states": "widgets/fp4-1a2b.json",
        "data-live-size": "9.4 MB",
    }
    assert page.all("section", aria_labelledby="widget-fp4-title")
    assert page.all("h3", id="widget-fp4-title")
    assert page.all("fieldset", disabled=None)[0]
    assert [a["data-part"] for a in page.all("div", **{"class": "edu-part"})] == ["0", "1", "2", "3"]
    assert page.all("p", **{"class": "edu-summary", "role": "status", "aria-live": "polite"})
    assert [b["data-action"] for b in page.all("button")] == ["live", "edit", "reset", "link", "copy"]
    assert all("hidden" in b for b in page.all("button"))
    assert "With JavaScript switched on" in page.words
    data = spec(html)
    assert data["id"] == "fp4"
    assert data["values"]["value"] == 2.5
    assert data["defaults"]["value"] == 3.2
    assert "def nearest_code" in data["mechanism"]["source"]
    assert [c["name"] for c in data["controls"]] == list(data["values"])


def test_the_start_state_is_in_the_page_word_for_word():
    html = render_widget("fp4")
    for index, part in enumerate(render_parts(widgets.evaluate("fp4"))):
        assert f'<div class="edu-part" data-part="{index}">{part}</div>' in html


@pytest.mark.behaviour(14)
def test_every_input_is_native_and_named():
    page = Page(render_widget("fp4"))
    labelled = {a["for"] for a in page.all("label")}
    inputs = page.all("input") + page.all("select")
    assert all(a["id"] in labelled for a in inputs)
    for slider in page.all("input", type="range"):
        assert {"min", "max", "step", "value", "aria-valuetext"} <= set(slider)
    assert page.all("input", type="range")[0]["aria-valuetext"] == "3.20"
    described = [a["aria-describedby"] for _, a in page.tags if "aria-describedby" in a]
    assert described and set(described) <= set(page.ids)


def test_a_typed_number_may_lie_between_the_steps():
    numbers = Page(render_widget("fp4")).all("input", type="number")
    assert len(numbers) == 16 + 32
    assert {(a["step"], a["min"], a["max"]) for a in numbers} == {("any", "-24", "24")}


def test_only_the_controls_that_apply_are_shown():
    def shown(html):
        return {a["data-control"] for _, a in Page(html).tags if "data-control" in a and "hidden" not in a}

    assert shown(render_widget("fp4")) == {"part", "value", "scale", "amax", "ties"}
    assert shown(render_widget("fp4", {"part": "block"})) == {"part", "block", "preset", "ties"}
    assert shown(render_widget("fp4", {"part": "block", "preset": "own"})) == {
        "part",
        "block",
        "preset",
        "values16",
        "ties",
    }


def test_two_instances_on_a_page_share_no_id_and_no_radio_group():
    first, second = Page(render_widget("fp4")), Page(render_widget("fp4", {"part": "block"}, instance=2))
    assert len(set(first.ids)) == len(first.ids)
    assert not set(first.ids) & set(second.ids)
    groups = [{a["name"] for a in page.all("input", type="radio")} for page in (first, second)]
    assert not groups[0] & groups[1]
    assert second.all("edu-widget")[0]["id"] == "widget-fp4-2"


def test_parts_with_a_prefix_have_ids_of_that_prefix():
    (html,) = render_parts(View((widgets.evaluate("fp4").parts[0],), "S."), "here")
    ids = Page(html).ids
    assert ids and all(id.startswith("here-0") for id in ids)


@pytest.mark.behaviour(14)
def test_a_wide_table_scrolls_in_a_named_box_reachable_by_keyboard():
    page = Page(render_parts(widgets.evaluate("fp4"))[3])
    (box,) = page.all("div", role="region")
    assert box["tabindex"] == "0"
    assert box["aria-label"].startswith("How each scale is chosen")
    assert page.all("th", scope="row") and page.all("th", scope="col")


def test_the_picture_says_in_words_what_it_shows():
    picture = Page(render_parts(widgets.evaluate("fp4"))[0])
    assert (
        picture.all("div", role="img")[0]["aria-label"]
        == "Number line. The 15 levels from −6 to 6; 3.2 is stored as level 3."
    )
    block = Page(render_parts(widgets.evaluate("fp4", {"part": "block", "preset": "own"}))[0])
    assert "Clipped: channel 0." in block.all("div", role="img")[0]["aria-label"]


def test_all_fifteen_levels_are_on_the_number_line_at_both_widths():
    html = render_parts(widgets.evaluate("fp4"))[0]
    assert html.count('class="k-level"') == 2 * 15


def test_start_values_a_control_cannot_take_stop_the_page():
    with pytest.raises(ControlError, match="control 'value'"):
        render_widget("fp4", {"value": 100})


@pytest.fixture
def folded():
    def function(
        part: Choice({"a": "A", "b": "B"}, "Part", look="segments") = "a",
        size: Slider(0, 2, 0.5, "Size", unit="B", more=True, when={"part": "a"}) = 1.5,
        value: Slider(0, 9, 1, "Value") = 3,
        on: Toggle("Wrong rule", more=True, when={"part": "a"}) = False,
        row: Numbers(0, 1, 0.5, "Row", length=2, more=True, when={"part": "a"}) = (0, 0.5),
    ) -> View:
        return View((Prose("first"), Prose("second")), "summary")

    widget("folded", title="Folded")(function)
    yield REGISTRY["folded"]
    REGISTRY.pop("folded")


def controls_in(html: str) -> list[str]:
    return re.findall(r'data-control="(\w+)"', html)


def test_settings_marked_more_are_folded_after_the_first_part_with_their_values_on_the_line(folded):
    html = render_widget(folded)
    Page(html)
    above, rest = html.split('<div class="edu-view">')
    first, after = rest.split("<details", 1)
    details, others = after.split("</details>", 1)
    assert controls_in(above) == ["part", "value"]
    assert controls_in(details) == ["size", "on", "row"]
    assert "first" in first and "second" in others
    assert "Size: 1.5 B · Wrong rule: off · Row</span></summary>" in details
    assert '<fieldset disabled aria-label="More settings">' in details
    assert [control["name"] for control in spec(html)["controls"] if control.get("more")] == ["size", "on", "row"]


def test_the_fold_is_away_while_nothing_in_it_applies(folded):
    assert re.search(r"<details[^>]* hidden>", render_widget(folded, {"part": "b"}))
    assert not re.search(r"<details[^>]* hidden>", render_widget(folded, {"part": "a"}))


def test_a_widget_without_such_settings_has_no_fold():
    assert "edu-more" not in render_widget("fp4")


def test_an_error_of_nothing_is_not_marked_as_one():
    metrics = (Metric("Error", 0.0, role="error"), Metric("Off", 0.5, role="error"), Metric("Clipped", 1, role="clip"))
    (html,) = render_parts(View((Metrics(metrics),), "One is nothing."))
    assert html.count("edu-metric--error") == 1 and html.count("edu-metric--clip") == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x = [-16, 16] and y", "x = [-16,_16] and y"),
        ("> 50 passes, ≥ 50 too", ">_50 passes, ≥_50 too"),
        ("a list of words [as long as this one is] may wrap", "a list of words [as long as this one is] may wrap"),
    ],
)
def test_a_short_list_and_a_sign_with_its_number_stay_on_one_line(text, kept):
    view = View((Prose(text), Steps((text,)), Metrics((Metric("m", 1, note=text),))), "Said three times.")
    for html in render_parts(view):
        assert escape(kept) in html.replace("\u00a0", "_")


@pytest.mark.parametrize(
    ("options", "look", "wide"),
    [
        (("Full", "Reindex", "Reuse"), "segments", False),
        (("New York twice", "Other spelling", "Your own"), "segments", True),
        (("as typed", "one token changed"), "segments", False),
        (("loss", "above the best possible"), "segments", True),
        (("a", "b", "c", "d"), "segments", True),
        (("move the yellow star up twice then paint it green",), "select", True),
        (("To the even code (hardware)",), "select", False),
        (("Layer 20: full, ratio 1, candidate pool, and more",), "search", False),
    ],
)
def test_a_choice_whose_words_would_wrap_has_a_row_of_its_own(options, look, wide):
    assert needs_a_row(Choice(dict(zip(options, options, strict=True)), "Which", look=look)) == wide
