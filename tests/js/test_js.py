"""Runs node's own test runner on the pure modules, and the type checker on all of them."""

import re
import subprocess
from pathlib import Path

import pytest

from deepseek_edu.site.bundle import find_node

ROOT = Path(__file__).resolve().parents[2]
SUITES = sorted(path.name for path in Path(__file__).parent.glob("*.test.mjs"))


def node(*arguments):
    return subprocess.run([find_node(), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("suite", SUITES)
def test_the_modules_do_what_their_tests_say(suite):
    done = node("--test", "--test-reporter=tap", f"tests/js/{suite}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE).group(1)) >= 5
    assert "# skipped 0" in done.stdout


@pytest.mark.parametrize("modules", ["jsconfig.json", "jsconfig.sw.json"])
def test_the_types_of_all_modules_agree(modules):
    done = node("node_modules/typescript/bin/tsc", "--noEmit", "-p", f"assets/js/{modules}")
    assert done.returncode == 0, done.stdout
