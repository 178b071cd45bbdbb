"""A small lab of its own for the grader's tests: two functions, one second per case."""

import textwrap

import pytest

from deepseek_edu.grading import load_lab
from deepseek_edu.grading.runner import run_cases
from deepseek_edu.grading.submission import Submission

LAB_FILES = {
    "lab.toml": """
        title = "Double and join"
        chapter = "00_test"
        points = 10
        mechanism = ["builtins:sum"]
        functions = ["double", "join"]
        [limits]
        seconds = 1.0
        memory_mb = 256
        load_seconds = 1.5
        total_seconds = 20.0
        """,
    "statement.md": "Double a number; join a list of texts.\n",
    "starter.py": """
        def double(x):
            raise NotImplementedError("double")

        def join(parts):
            raise NotImplementedError("join")
        """,
    "solution.py": """
        def double(x):
            return 2 * x

        def join(parts):
            return "".join(parts)
        """,
    "cases.py": """
        from deepseek_edu.grading import Case

        HIDDEN = 3

        def visible():
            return [
                Case("first", "join", (["a", "b"],), "ab"),
                Case("middle", "double", (1.5,), 3.0, tolerance=0.25),
                Case("last", "join", (["c"],), "c"),
            ]

        def generate(rng, index):
            number = rng.randrange(1, 10**6)
            return Case(f"hidden-{index}", "double", (number,), 2 * number)
        """,
    "wrong/adds_one.py": '''
        """Adds one. Fails middle."""

        def double(x):
            return x + 1

        def join(parts):
            return "".join(parts)
        ''',
}


def write_lab(folder, **changes):
    """Write the lab into a folder; a change replaces a file's text, None leaves the file out."""
    for name, text in {**LAB_FILES, **changes}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"))
    return folder


@pytest.fixture
def toy_folder(tmp_path):
    return write_lab(tmp_path / "project" / "labs" / "toy")


@pytest.fixture
def toy(toy_folder):
    return load_lab(toy_folder)


@pytest.fixture
def run(toy):
    """Run a submission whose `double` is the given source (dedented); `join` is right."""

    def run_double(source, cases=None):
        text = textwrap.dedent(source) + '\n\ndef join(parts):\n    return "".join(parts)\n'
        return run_cases(Submission("test.py", text), toy, cases or toy.visible)

    return run_double
