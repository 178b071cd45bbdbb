"""What good input becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup, Tag

from tests.site.project import block

Render = Callable[..., str]


def soup(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def island(element: Tag) -> dict:
    return json.loads(element.find("script", type="application/json").string)


class TestValues:
    def test_an_expression_becomes_its_formatted_value(self, render: Render) -> None:
        # 16 values of 4 bits are 8 bytes, and one byte of scale
        assert "<p>9 bytes, 4.50 bits</p>" in render(
            "[[= quant.fp4_bytes(16, 16) ]] bytes, [[= quant.bits_per_value(16) | .2f ]] bits"
        )

    def test_the_last_bar_outside_of_brackets_begins_the_format(self, render: Render) -> None:
        assert "<p>7 and 007</p>" in render("[[= (5 | 3) ]] and [[= (5 | 3) | 03d ]]")

    def test_comprehensions_see_the_modules(self, render: Render) -> None:
        assert "<p>12</p>" in render("[[= sum(int(quant.round_to_e2m1(x)) for x in [2.0, 4.0, 6.0]) ]]")

    def test_a_negative_number_has_a_true_minus_sign(self, render: Render) -> None:
        assert "<p>−0.25</p>" in render("[[= -1 / 4 ]]")

    def test_values_work_in_headings_tables_and_formulas(self, render: Render) -> None:
        html = render(
            "## The [[= 3 * 5 ]] levels\n\n| a | b |\n|---|---|\n| 1 | [[= 1 / 3 | .2f ]] |\n\n$x = [[= 2**3 ]]$"
        )
        page = soup(html)
        assert page.h2["id"] == "the-15-levels"
        assert page.find_all("td")[1].text == "0.33"
        assert r"\(x = 8\)" in html

    def test_code_is_left_alone(self, render: Render) -> None:
        html = render("`[[= 1 + 1 ]]` and\n\n```python\n[[= 1 + 1 ]] [[claim nothing]]\n```\n\n~~~\n```quiz\n~~~\n")
        shown = soup(html).text
        assert shown.count("[[= 1 + 1 ]]") == 2
        assert "[[claim nothing]]" in shown
        assert "edu-quiz" not in html


class TestClaims:
    def test_a_badge_links_to_the_ledger_and_carries_its_label(self, render: Render) -> None:
        badge = soup(render("So they say [[claim read-only]].")).a
        assert badge["href"] == "claims.html#claim-read-only"
        assert badge["class"] == ["edu-claim", "edu-claim--report"]
        assert badge.text == "report"
        assert "about 10" in badge["title"]


class TestQuiz:
    CHOICE = block(
        "quiz",
        """
        id: tie
        question: Where does *2.5* go?
        options:
          - text: "3"
            why: "Away from zero."
          - text: "2"
            correct: true
            why: "Its code is even: `4`."
        """,
    )

    def test_a_choice_has_native_inputs_with_labels_and_reasons(self, render: Render) -> None:
        quiz = soup(render(self.CHOICE)).find("edu-quiz")
        assert quiz["id"] == "quiz-tie"
        assert quiz.legend.decode_contents() == "Where does <em>2.5</em> go?"
        inputs = quiz.find_all("input")
        assert [given["type"] for given in inputs] == ["radio", "radio"]
        assert [quiz.find("label", attrs={"for": given["id"]}).text for given in inputs] == ["3", "2"]
        reasons = quiz.find_all(class_="edu-why")
        assert len(reasons) == 2
        assert all("hidden" in reason.attrs for reason in reasons)
        assert island(quiz)["correct"] == [1]

    def test_without_script_answer_and_reasons_can_be_opened(self, render: Render) -> None:
        details = soup(render(self.CHOICE)).details
        assert "Right: 2" in details.text.replace("\n", "")
        assert "Away from zero." in details.text

    def test_two_right_options_make_checkboxes(self, render: Render) -> None:
        text = self.CHOICE.replace('  - text: "3"', '  - text: "3"\n    correct: true')
        quiz = soup(render(text)).find("edu-quiz")
        assert {given["type"] for given in quiz.find_all("input")} == {"checkbox"}
        assert island(quiz)["correct"] == [0, 1]

    def test_a_numeric_answer_is_computed_by_the_package(self, render: Render) -> None:
        text = block(
            "quiz", "id: n\nquestion: Bytes?\nanswer: quant.fp4_bytes(512, 16)\ntolerance: 0\nunit: bytes\nwhy: Count."
        )
        quiz = soup(render(text)).find("edu-quiz")
        data = island(quiz)
        assert (data["kind"], data["answer"], data["tolerance"], data["unit"]) == ("number", 288, 0, "bytes")
        assert quiz.find("label").text == "Your answer in bytes"

    def test_which_option_is_right_can_be_computed(self, render: Render) -> None:
        text = self.CHOICE.replace("correct: true", "right_if: quant.round_to_e2m1(2.5) == 2")
        text = text.replace('why: "Away', 'right_if: quant.round_to_e2m1(2.5) == 3\n    why: "Away')
        quiz = soup(render(text)).find("edu-quiz")
        assert island(quiz)["correct"] == [1]
        assert "Right: 2" in quiz.details.text.replace("\n", "")

    def test_checks_of_the_ledger_and_numpy_can_be_asked(self, render: Render) -> None:
        text = self.CHOICE.replace("correct: true", "right_if: np.abs(claims.dspark.__name__ > '') > 0")
        assert island(soup(render(text)).find("edu-quiz"))["correct"] == [1]

    @pytest.mark.behaviour(9)
    def test_the_version_changes_with_the_question_and_only_with_it(self, render: Render) -> None:
        version = soup(render(self.CHOICE)).find("edu-quiz")["data-version"]
        again = soup(render(f"Text before.\n\n{self.CHOICE}")).find("edu-quiz")["data-version"]
        changed = soup(render(self.CHOICE.replace("Away from", "Further from"))).find("edu-quiz")["data-version"]
        assert version == again != changed


class TestPrediction:
    QUIZ = block("quiz", "id: q\nquestion: How many?\nanswer: 3 * 3\ntolerance: 0\nwhy: Count.")

    def test_a_widget_is_covered_by_a_question_above_it(self, render: Render) -> None:
        fence = block("widget", "id: fp4\npredict:\n  quiz: q\n  when:\n    part: block")
        page = soup(render(f"{self.QUIZ}\n\n{fence}"))
        widget, version = page.find("edu-widget"), page.find("edu-quiz")["data-version"]
        assert island(widget)["predict"] == {"quiz": "q", "version": version, "when": {"part": "block"}}
        cover = widget.find(class_="edu-cover")
        assert "hidden" in cover.attrs, "nothing is covered without scripts"
        assert page.find(id=cover.a["href"].removeprefix("#")) is page.find("edu-quiz")
        assert cover.button["data-action"] == "uncover"
        assert cover.find_next_sibling(class_="edu-view") is not None, "the cover stands before what it covers"

    def test_no_other_widget_has_a_cover(self, render: Render) -> None:
        page = soup(render(f"{self.QUIZ}\n\n{block('widget', 'id: fp4')}"))
        assert page.find(class_="edu-cover") is None
        assert "predict" not in island(page.find("edu-widget"))


class TestBlocks:
    def test_a_walk_is_an_ordered_list_of_readable_cards(self, render: Render) -> None:
        text = block(
            "walk",
            "id: w\ncards:\n  - title: One\n    text: First.\n  - title: Two\n    text: |\n      Now [[= 1 + 1 ]].",
        )
        walk = soup(render(text)).find("edu-walk")
        cards = walk.ol.find_all("li", recursive=False)
        assert [card.strong.text for card in cards] == ["One", "Two"]
        assert "Now 2." in cards[1].text
        assert not walk.find(attrs={"hidden": True})

    def test_a_figure_has_a_named_picture_a_caption_and_its_evidence(self, render: Render) -> None:
        figure = soup(render(block("figure", "id: fp4-levels\ncaption: All levels.\nclaim: read-only"))).figure
        assert figure["id"] == "fig-fp4-levels"
        assert figure.svg["role"] == "img"
        assert figure.figcaption.a["href"] == "claims.html#claim-read-only"

    def test_a_run_shows_what_it_was_measured_on(self, render: Render) -> None:
        run = soup(render(block("run", "id: fp4_error"))).figure
        facts = run.details.text
        for word in ("Measured on", "Command", "Seed", "Machine", "Versions", "Date"):
            assert word in facts
        assert run.table.find_all("tr")
        assert run.find(class_="edu-claim--measured")

    def test_two_instances_of_a_widget_have_different_ids(self, render: Render) -> None:
        one = block("widget", "id: fp4\nvalues:\n  value: 2.5")
        page = soup(render(one + "\n" + one))
        assert [widget["id"] for widget in page.find_all("edu-widget")] == ["widget-fp4", "widget-fp4-2"]
        assert json.loads(page.find("script", class_="edu-spec").string)["values"]["value"] == 2.5
        ids = [element["id"] for element in page.find_all(id=True)]
        assert len(ids) == len(set(ids))

    @pytest.mark.behaviour(28)
    def test_a_lab_says_how_many_cases_are_visible_and_hidden(self, render: Render) -> None:
        lab = soup(render(block("lab", "id: fp4-codes"))).find("edu-lab")
        data = island(lab)
        facts = lab.find(class_="edu-lab__facts").text
        assert f"{len(data['cases'])} visible cases, {data['hidden']} hidden cases" in facts
        assert len(lab.find_all("li", class_="edu-case")) == len(data["cases"])
        assert "solution" not in data

    def test_headings_inside_a_block_follow_its_own(self, render: Render) -> None:
        body = "id: w\ncards:\n  - title: T\n    text: |\n      ## Rules\n\n      ### More"
        page = soup(render(block("walk", body)))
        assert [(heading.name, heading["id"]) for heading in page.find_all(["h5", "h6"])] == [
            ("h5", "walk-w-1-rules"),
            ("h6", "walk-w-1-more"),
        ]

    def test_a_block_inside_a_list_stays_inside(self, render: Render) -> None:
        text = "- item\n\n    " + block("quiz", "id: n\nquestion: Q?\nanswer: 1\ntolerance: 0\nwhy: W.").replace(
            "\n", "\n    "
        )
        page = soup(render(text))
        assert page.li.find("edu-quiz") is not None


class TestTables:
    @pytest.mark.behaviour(14)
    def test_tables_scroll_inside_a_container_that_the_keyboard_reaches(self, render: Render) -> None:
        holder = soup(render("| a |\n|---|\n| 1 |")).table.parent
        assert (holder["class"], holder["tabindex"], holder["role"]) == (["edu-scroll"], "0", "group")
        assert holder["aria-label"]

    def test_tables_inside_blocks_scroll_too(self, render: Render) -> None:
        body = "id: w\ncards:\n  - title: T\n    text: |\n      | a |\n      |---|\n      | 1 |"
        assert soup(render(block("walk", body))).table.parent["class"] == ["edu-scroll"]

    def test_a_head_without_words_is_dropped(self, render: Render) -> None:
        assert soup(render("| | |\n|---|---|\n| a | b |")).thead is None


class TestTooltips:
    def test_a_term_is_explained_once_and_not_in_headings_or_links(self, render: Render) -> None:
        html = render("# FP4\n\nFP4, [FP4](x.md) and FP4.", abbr={"glossary": {"FP4": "Four bits."}})
        assert html.count("<abbr") == 1
        assert "<h1" in html and "<abbr" not in re.search(r"<h1.*?</h1>", html).group()
        assert soup(html).p.text == "FP4, FP4 and FP4."
