"""Pack a finished site into one archive that runs from a USB stick with nothing but Python.

The archive holds `site/`, `serve.py` (the server, one file of the standard library), start scripts and a README. The
same site gives the same bytes.
"""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from pathlib import Path

from deepseek_edu.site.errors import PlaceError, SiteError

FOLDER = "deepseek-edu"
EARLIEST = (1980, 1, 1, 0, 0, 0)
STORED = {".whl", ".zip", ".woff2", ".png", ".gz", ".states"}
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
        PlaceError: `archive` is no path for an archive; nothing was touched.
        SiteError: `site` holds no finished site.
    """
    if not (site / "index.html").exists():
        raise SiteError(f"{site}: found no index.html; build the site first: deepseek-edu build")
    settled(archive, site)
    server = Path(__file__).with_name("server.py").read_text(encoding="utf-8")
    texts = {"README.txt": README, "serve.py": server, "start.bat": START_BAT, "start.sh": START_SH}
    try:
        handle, draft = tempfile.mkstemp(prefix=f".{archive.name}-", dir=archive.parent)
    except OSError as error:
        raise PlaceError(f"{archive}: found that its folder cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "w+b") as file, zipfile.ZipFile(file, "w") as out:
            for name, text in texts.items():
                _add(out, name, text.encode("utf-8"), executable=name.endswith(".sh"))
            for path in sorted(site.rglob("*")):
                if path.is_file():
                    _add(out, f"site/{path.relative_to(site).as_posix()}", path.read_bytes())
        Path(draft).chmod(0o644)
        Path(draft).replace(archive)
    finally:
        Path(draft).unlink(missing_ok=True)
    return archive.stat().st_size


def settled(archive: Path, site: Path) -> None:
    """Prove that an archive may be written at this path: a new name, or an archive that this command wrote before.

    Raises:
        PlaceError: it is something else.
    """
    allowed = "a new file NAME.zip in a folder that exists, or an archive packed before"
    if archive.is_dir():
        raise PlaceError(f"{archive}: found a folder; allowed: {allowed}")
    if archive.suffix != ".zip":
        raise PlaceError(f"{archive}: found a name that does not end in .zip; allowed: {allowed}")
    if not archive.parent.is_dir():
        raise PlaceError(f"{archive}: found no folder {archive.parent}; make it first, or name a folder that exists")
    if archive.resolve().is_relative_to(site.resolve()):
        raise PlaceError(f"{archive}: found a place inside the site that is packed; name a folder outside of it")
    if archive.is_symlink() or (archive.exists() and not _ours(archive)):
        raise PlaceError(f"{archive}: found something that deepseek-edu pack did not write; allowed: {allowed}")


def _ours(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
    return f"{FOLDER}/serve.py" in names and all(name.startswith(f"{FOLDER}/") for name in names)


def _add(out: zipfile.ZipFile, name: str, data: bytes, executable: bool = False) -> None:
    entry = zipfile.ZipInfo(f"{FOLDER}/{name}", EARLIEST)
    entry.create_system = 3
    entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    entry.compress_type = zipfile.ZIP_STORED if Path(name).suffix in STORED else zipfile.ZIP_DEFLATED
    out.writestr(entry, data, compresslevel=9)
