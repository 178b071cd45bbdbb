"""Pack a finished site into one archive that runs from a USB stick with nothing but Python.

The archive holds `site/`, `serve.py` (the server, one file of the standard library), start scripts and a README. The
same site gives the same bytes.
"""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

from deepseek_edu.site.errors import SiteError

FOLDER = "deepseek-edu"
EARLIEST = (1980, 1, 1, 0, 0, 0)
STORED = {".whl", ".zip", ".woff2", ".png", ".gz"}
README = """\
DeepSeek, from the inside: the course, complete and offline
============================================================

To read, compute and be graded in the browser, start the small server in this folder. It needs Python 3.11 or newer
and no network:

  Linux, macOS:  sh start.sh          (or: python3 serve.py)
  Windows:       start.bat            (or: py serve.py)

It prints an address such as http://127.0.0.1:8000/ ; open it in a browser.

Opening site/index.html as a file shows the text, figures and formulas. Live Python, editors and search need the
server, because browsers do not let a page opened as a file start the worker that runs Python.

Nothing is sent anywhere. What you write stays in the browser, under the address it was written at.

Text: CC BY 4.0. Code: MIT. Works of others: site/notices.html
"""
START_SH = '#!/bin/sh\ncd "$(dirname "$0")" && exec python3 serve.py "$@"\n'
START_BAT = '@echo off\r\ncd /d "%~dp0"\r\npy -3 serve.py %*\r\nif errorlevel 9009 python serve.py %*\r\npause\r\n'


def pack(site: Path, archive: Path) -> int:
    """Write the archive and return its size in bytes.

    Raises:
        SiteError: `site` holds no finished site.
    """
    if not (site / "index.html").exists():
        raise SiteError(f"{site}: found no index.html; build the site first: deepseek-edu build")
    server = Path(__file__).with_name("server.py").read_text(encoding="utf-8")
    texts = {"README.txt": README, "serve.py": server, "start.bat": START_BAT, "start.sh": START_SH}
    archive.parent.mkdir(parents=True, exist_ok=True)
    draft = archive.with_name(f".{archive.name}.new")
    with zipfile.ZipFile(draft, "w") as out:
        for name, text in texts.items():
            _add(out, name, text.encode("utf-8"), executable=name.endswith(".sh"))
        for path in sorted(site.rglob("*")):
            if path.is_file():
                _add(out, f"site/{path.relative_to(site).as_posix()}", path.read_bytes())
    draft.replace(archive)
    return archive.stat().st_size


def _add(out: zipfile.ZipFile, name: str, data: bytes, executable: bool = False) -> None:
    entry = zipfile.ZipInfo(f"{FOLDER}/{name}", EARLIEST)
    entry.create_system = 3
    entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    entry.compress_type = zipfile.ZIP_STORED if Path(name).suffix in STORED else zipfile.ZIP_DEFLATED
    out.writestr(entry, data, compresslevel=9)
