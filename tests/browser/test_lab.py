"""The lab on the page: right, wrong and hostile code each end with a named outcome, and the code is kept."""

import time
from pathlib import Path

import pytest

from tests.browser.conftest import CHAPTER

ROOT = Path(__file__).resolve().parents[2]
SOLUTION = (ROOT / "labs" / "fp4-codes" / "solution.py").read_text()
STARTER = (ROOT / "labs" / "fp4-codes" / "starter.py").read_text()


class Lab:
    """Drives the first lab of a page as a learner would."""

    def __init__(self, page):
        self.page = page
        self.element = page.locator("edu-lab").first
        self.element.scroll_into_view_if_needed()

    def write(self, code: str) -> None:
        editor = self.element.locator(".cm-content")
        editor.wait_for()
        editor.click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(code)

    def press(self, action: str) -> None:
        self.element.locator(f"[data-action={action}]").click()

    def wait_for(self, *states: str, timeout: float = 60) -> str:
        deadline = time.monotonic() + timeout
        while (state := self.element.get_attribute("data-state")) not in states:
            assert time.monotonic() < deadline, f"the lab is {state!r}, not {states}"
            self.page.wait_for_timeout(20)
        return state

    def run(self, code: str, *states: str) -> str:
        self.write(code)
        self.press("run")
        return self.wait_for(*(states or ("passed", "failed", "timeout", "crashed", "error", "stopped")))

    @property
    def outcome(self) -> str:
        return self.element.locator(".edu-lab__outcome").inner_text()

    @property
    def code(self) -> str:
        return self.element.evaluate("lab => lab.code")


@pytest.fixture
def lab(visit) -> Lab:
    return Lab(visit.open(CHAPTER))


def with_encode(body: str) -> str:
    """The right solution, but `encode` does something else before it calls the right one."""
    right = SOLUTION.replace("def encode(", "def right_encode(")
    return right + f"\n\ndef encode(*args):\n    {body}\n    return right_encode(*args)\n"


def test_the_solution_passes(lab):
    assert lab.run(SOLUTION) == "passed"
    assert "practice" in lab.element.inner_text().lower()


@pytest.mark.behaviour(24)
def test_a_wrong_answer_names_the_first_failing_case(lab):
    wrong = (ROOT / "labs" / "fp4-codes" / "wrong" / "ties_away.py").read_text()
    assert lab.run(wrong) == "failed"
    for word in ("got", "expected"):
        assert word in lab.element.inner_text().lower()


def test_the_starter_does_not_pass(lab):
    assert lab.run(STARTER) in ("failed", "error")


@pytest.mark.behaviour(6, 7)
@pytest.mark.parametrize(
    ("name", "body", "state"),
    [
        ("endless loop", "while True: pass", "timeout"),
        ("sleep", "import time; time.sleep(600)", "timeout"),
        ("deep repr", "x = []\n    for _ in range(100_000): x = [x]\n    repr(x)", "crashed"),
        ("memory", "x = [bytearray(1 << 28) for _ in range(64)]", "*"),
        ("recursion", "f = lambda n: f(n + 1)\n    f(0)", "failed"),
    ],
)
def test_hostile_code_ends_with_a_name_and_python_comes_back(lab, name, body, state):
    code = with_encode(body)
    ended = lab.run(code)
    assert ended in (("crashed", "failed", "error") if state == "*" else (state,)), lab.outcome
    assert lab.outcome.strip()
    if ended in ("timeout", "crashed"):
        assert "restarted" in lab.element.inner_text().lower()
    assert lab.code == code, "the learner's code is gone"
    assert lab.run(SOLUTION) == "passed"


def test_a_syntax_error_is_named_with_its_line(lab):
    assert lab.run("def encode(values):\n    return [\n") == "error"
    assert "line 2" in lab.outcome.lower()
    assert "SyntaxError" in lab.outcome or "syntax" in lab.outcome.lower()


@pytest.mark.behaviour(6, 7)
def test_stop_ends_an_endless_loop_and_python_is_usable_within_two_seconds(lab):
    lab.run(SOLUTION, "passed")  # Python is loaded
    lab.write(with_encode("while True: pass"))
    lab.press("run")
    lab.wait_for("running")
    lab.page.wait_for_timeout(300)
    lab.press("stop")
    began = time.monotonic()
    lab.wait_for("stopped")
    assert "restarted" in lab.element.inner_text().lower()
    first_case = lab.page.evaluate(
        """async () => {
            const lab = document.querySelector('edu-lab');
            const began = performance.now();
            await lab.ready();
            return performance.now() - began;
        }"""
    )
    assert first_case >= 0
    assert time.monotonic() - began <= 2
    assert lab.run(SOLUTION) == "passed"


@pytest.mark.behaviour(8)
def test_the_page_stays_responsive_while_learner_code_loops(lab):
    lab.write(with_encode("while True: pass"))
    lab.press("run")
    lab.wait_for("running")
    waits = lab.page.evaluate(
        """async () => {
            const waits = [];
            for (let i = 0; i < 20; i++) {
                const began = performance.now();
                await new Promise(done => setTimeout(done, 10));
                waits.push(performance.now() - began);
            }
            return waits;
        }"""
    )
    assert sorted(waits)[len(waits) // 2] < 100, "the page's own thread is blocked"
    lab.press("stop")
    lab.wait_for("stopped")


@pytest.mark.behaviour(10)
def test_reset_brings_the_starter_back_and_undo_brings_the_code_back(lab):
    lab.write("# my own work\n" + SOLUTION)
    lab.press("reset")
    assert lab.code.strip() == STARTER.strip()
    lab.press("undo")
    assert lab.code.startswith("# my own work")


@pytest.mark.behaviour(28)
def test_visible_and_hidden_cases_are_counted_up_front(lab):
    import re

    text = lab.element.inner_text()
    assert re.search(r"\d+ visible", text)
    assert re.search(r"\d+ hidden", text)
