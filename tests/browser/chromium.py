"""Find a Chromium to test with, or say how to get one. `python -m tests.browser.chromium` prints its path.

Order: the file named by DEEPSEEK_EDU_CHROMIUM, Chromium or Chrome on the PATH, macOS's and Windows' usual places,
Playwright's own download, and on Debian or Ubuntu as root the distribution's package, which is installed. Of Chromium
the variant without a window is preferred: the same engine, and a page opens in half the processor time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
USUAL_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)
HELP = """No Chromium or Chrome was found, and the browser tests are never skipped.
Install one of these and run the command again:
  Debian, Ubuntu   sudo apt-get install chromium
  macOS            brew install --cask chromium
  anywhere         .venv/bin/python -m playwright install chromium
or name an executable: DEEPSEEK_EDU_CHROMIUM=/path/to/chrome make test"""


class NoChromium(RuntimeError):
    """No browser is installed and none could be installed; the message says what to do."""


def _named_by_environment() -> str | None:
    named = os.environ.get("DEEPSEEK_EDU_CHROMIUM")
    if named and not os.access(named, os.X_OK):
        raise NoChromium(f"DEEPSEEK_EDU_CHROMIUM names {named!r}, which is not an executable file.\n\n{HELP}")
    return named


def _from_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if path and Path(path).is_file() else None


def _install_from_debian() -> str | None:
    if not (shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0):
        return None
    print("Installing Debian's Chromium for the browser tests (once) …", file=sys.stderr, flush=True)
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    install = ["apt-get", "install", "-y", "-qq"]
    if subprocess.run(["apt-get", "update", "-qq"], **quiet).returncode:
        print("`apt-get update` failed.", file=sys.stderr)
        return None
    for package in ("chromium-headless-shell", "chromium"):  # older releases have the second only
        if subprocess.run([*install, package], **quiet).returncode == 0:
            return shutil.which(package)
        print(f"`{' '.join([*install, package])}` failed.", file=sys.stderr)
    return None


def find() -> str:
    """Return the path of a Chromium or Chrome executable; raise NoChromium with instructions if there is none."""
    found = _named_by_environment()
    found = found or next((path for name in NAMES if (path := shutil.which(name))), None)
    found = found or next((path for path in USUAL_PLACES if Path(path).is_file()), None)
    found = found or _from_playwright() or _install_from_debian()
    if not found:
        raise NoChromium(HELP)
    return found


ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    *(("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()),
)


if __name__ == "__main__":
    try:
        print(f"Browser for the tests: {find()}")
    except NoChromium as error:
        sys.exit(str(error))
