"""On a phone a reader sees what a control moves: few controls above the picture, the others folded under it."""

import pytest

from deepseek_edu import widgets

PHONE = {"width": 360, "height": 740}
PLACES = """id => {
  const widget = document.querySelector(`edu-widget[data-widget=${id}] .edu-widget`);
  const top = element => element.getBoundingClientRect().top;
  const form = widget.querySelector('form.edu-controls').getBoundingClientRect();
  const fields = [...widget.querySelectorAll('.edu-control:not([hidden]) .edu-segments')];
  const rows = fields.map(field => [...field.children].map(each => Math.round(each.getBoundingClientRect().width)));
  return {form: form.height, rows};
}"""
FOLDED = [name for name in widgets.names() if any(control.more for control in widgets.get(name).controls.values())]


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("id", widgets.names())
def test_controls_and_the_picture_they_move_fit_a_phone(open_context, id):
    page = open_context(viewport=PHONE).open(f"{widgets.get(id).chapter}.html")
    places = page.evaluate(PLACES, id)
    # of 740 pixels, so that the head of the picture stands under all controls on one screen
    assert places["form"] <= 500
    assert all(max(row) - min(row) <= 1 for row in places["rows"]), "segments of a choice are of one width"
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("id", FOLDED)
def test_folded_settings_open_by_keyboard_after_the_picture_and_say_their_values(open_context, id):
    page = open_context(viewport=PHONE).open(f"{widgets.get(id).chapter}.html")
    widget = page.locator(f"edu-widget[data-widget={id}]").first
    fold, told = widget.locator(".edu-more"), widget.locator(".edu-more__values")
    chosen, before = widgets.get(id), told.inner_text()
    shown = [name for name, control in chosen.controls.items() if control.more and chosen.shown(name, chosen.defaults)]
    assert fold.is_visible() == bool(shown)
    if not shown:
        return
    assert all(chosen.controls[name].label in before for name in shown)
    assert fold.locator("[data-control]:visible").count() == 0
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[data-control]').dataset.control") == shown[0]
    field = fold.locator("[data-control]:visible").locator("input, select").first
    kind = chosen.controls[shown[0]].kind
    if kind == "numbers":  # the folded line names a list without its numbers
        if chosen.controls[shown[0]].columns:  # a table scrolls by keyboard, before its first field
            page.keyboard.press("Tab")
        start = field.input_value()
        page.keyboard.press("ArrowUp")
        assert float(field.input_value()) == chosen.defaults[shown[0]][0] + chosen.controls[shown[0]].step
        assert told.inner_text() == before
    else:
        start = None
        page.keyboard.press("Space" if kind == "toggle" else "ArrowDown" if kind == "choice" else "ArrowRight")
        if told.inner_text() == before:  # it stood at its end
            page.keyboard.press("ArrowUp" if kind == "choice" else "ArrowLeft")
        assert told.inner_text() != before
    assert field.is_visible()
    widget.locator("[data-action=reset]").click()
    assert told.inner_text() == before
    assert start is None or field.input_value() == start


def test_folded_settings_open_without_scripts(open_context):
    page = open_context(viewport=PHONE, java_script_enabled=False).open("05_sharing_selecting.html", settle=False)
    fold = page.locator("edu-widget[data-widget=csa2] .edu-more")
    fold.locator("summary").click()
    assert fold.locator("[data-control=turn]").is_visible()
    assert fold.locator("input").first.is_disabled()
