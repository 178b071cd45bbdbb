"""Nothing that a reader's browser or the site runs needs PyTorch."""

import subprocess
import sys

PARTS = ("reference", "widgets", "site", "drawing", "figures", "grading", "verify", "cli")


def test_the_course_never_imports_torch():
    """In a Python where torch cannot be imported, every module outside model and experiments still can."""
    program = f"""
import importlib, pkgutil, sys
sys.modules["torch"] = None
import deepseek_edu
for part in {PARTS!r}:
    package = importlib.import_module("deepseek_edu." + part)
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
loaded = [name for name in sys.modules if name.startswith("torch.") or name.startswith("deepseek_edu.model")]
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
