"""The small server: right types, compression, conditional requests, prefixes, no way out of the folder."""

import gzip
import http.client
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from deepseek_edu.site import server


@pytest.fixture
def folder(tmp_path):
    site = tmp_path / "site"
    (site / "edu" / "runtime" / "pyodide-1.2.3").mkdir(parents=True)
    (site / "notebooks").mkdir()
    (site / "index.html").write_text("<h1>Start</h1>" * 100)
    (site / "chapter.html").write_text("<h1>Chapter</h1>")
    (site / "notebooks" / "one.html").write_text("<h1>Notebook</h1>")
    (site / "404.html").write_text("<h1>Nothing here</h1>")
    (site / "edu" / "app-1a2b3c4d5e.js").write_text("let a = 1;\n" * 100)
    (site / "edu" / "runtime" / "pyodide-1.2.3" / "core.wasm").write_bytes(b"\0asm" * 500)
    (site / "edu" / "runtime" / "lock.json").write_text("{}")
    (site / ".hidden").write_text("no")
    (tmp_path / "secret.txt").write_text("secret")
    (site / "way-out").symlink_to(tmp_path / "secret.txt")
    return site


@contextmanager
def running(folder, prefix="/"):
    serving = server.make_server(folder, port=0, prefix=prefix)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield serving
    finally:
        serving.shutdown()
        serving.server_close()
        thread.join()


def get(serving, path, method="GET", **headers):
    connection = http.client.HTTPConnection(*serving.server_address[:2], timeout=5)
    connection.putrequest(method, path, skip_accept_encoding=True, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/chapter.html", "text/html; charset=utf-8"),
        ("/edu/app-1a2b3c4d5e.js", "text/javascript; charset=utf-8"),
        ("/edu/runtime/pyodide-1.2.3/core.wasm", "application/wasm"),
        ("/edu/runtime/lock.json", "application/json"),
    ],
)
def test_every_file_has_its_type(folder, path, kind):
    with running(folder) as serving:
        answer, _ = get(serving, path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_compression_is_offered_only_to_those_who_ask(folder):
    with running(folder) as serving:
        plain, body = get(serving, "/index.html")
        packed, data = get(serving, "/index.html", Accept_Encoding="gzip, br")
    assert plain.headers["Content-Encoding"] is None
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(data) < len(body)
    assert gzip.decompress(data) == body == (folder / "index.html").read_bytes()
    assert packed.headers["Vary"] == "Accept-Encoding"


def test_an_unchanged_file_is_not_sent_again_and_a_changed_one_is(folder):
    with running(folder) as serving:
        first, _ = get(serving, "/chapter.html")
        again, body = get(serving, "/chapter.html", If_None_Match=first.headers["ETag"])
        (folder / "chapter.html").write_text("<h1>Changed chapter</h1>")
        changed, fresh = get(serving, "/chapter.html", If_None_Match=first.headers["ETag"])
    assert (again.status, body) == (304, b"")
    assert (changed.status, fresh) == (200, b"<h1>Changed chapter</h1>")


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/edu/app-1a2b3c4d5e.js", True),
        ("/edu/runtime/pyodide-1.2.3/core.wasm", True),
        ("/edu/runtime/lock.json", False),
        ("/chapter.html", False),
    ],
)
def test_only_names_that_carry_their_content_are_kept_for_ever(folder, path, kept):
    with running(folder) as serving:
        answer, _ = get(serving, path)
    assert ("immutable" in answer.headers["Cache-Control"]) is kept
    if not kept:
        assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.behaviour(5)
def test_a_prefix_is_the_only_way_in(folder):
    with running(folder, "/a/b/") as serving:
        inside, body = get(serving, "/a/b/chapter.html")
        outside, _ = get(serving, "/chapter.html")
        root, _ = get(serving, "/")
        bare, _ = get(serving, "/a/b")
    assert (inside.status, body) == (200, b"<h1>Chapter</h1>")
    assert outside.status == 404
    assert (root.status, root.headers["Location"]) == (302, "/a/b/")
    assert (bare.status, bare.headers["Location"]) == (302, "/a/b/")


@pytest.mark.behaviour(5)
@pytest.mark.parametrize("prefix", ["/", "/a/b/"])
def test_every_file_is_sent_as_it_is(folder, prefix):
    """Readers' browsers compare hashes before they keep the course, and the shell reads a relative sitemap."""
    (folder / "sitemap.xml").write_text("<urlset><url><loc>chapter.html</loc></url></urlset>")
    names = ["sitemap.xml", "chapter.html", "notebooks/one.html", "edu/app-1a2b3c4d5e.js", "edu/runtime/lock.json"]
    with running(folder, prefix) as serving:
        sent = {name: get(serving, prefix + name)[1] for name in names}
    assert sent == {name: (folder / name).read_bytes() for name in names}


def test_a_wrong_address_shows_the_sites_own_page(folder):
    with running(folder) as serving:
        answer, body = get(serving, "/nowhere.html")
    assert answer.status == 404
    assert b"Nothing here" in body


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/edu/../../secret.txt",
        "/edu/%2e%2e%2f%2e%2e%2fsecret.txt",
        "/..%5csecret.txt",
        "/way-out",
        "/.hidden",
        "/chapter.html%00.js",
        "//etc/passwd",
        "/%ff",
    ],
)
def test_nothing_outside_the_folder_is_served(folder, path):
    with running(folder) as serving:
        answer, body = get(serving, path)
    assert answer.status in (302, 400, 404)
    assert b"secret" not in body
    assert b"root:" not in body


def test_the_policy_header_allows_this_origin_only(folder):
    with running(folder) as serving:
        answer, _ = get(serving, "/")
    rules = dict(rule.strip().split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert rules["frame-ancestors"] == "'self'"
    assert not any("http" in value or "*" in value for value in rules.values())


def test_head_sends_no_body(folder):
    with running(folder) as serving:
        answer, body = get(serving, "/chapter.html", method="HEAD")
    assert (answer.status, body) == (200, b"")
    assert answer.headers["Content-Length"] == "16"


def test_a_port_in_use_gives_the_next_free_one(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        serving = server.make_server(folder, port=port)
        serving.server_close()
    assert port < serving.server_port < port + server.PORTS_TO_TRY


@pytest.mark.behaviour(2)
def test_the_file_alone_serves_a_packed_course_and_stops_cleanly(folder):
    packed = folder.parent / "packed"
    packed.mkdir()
    folder.rename(packed / "site")
    (packed / "serve.py").write_bytes(Path(server.__file__).read_bytes())
    command = [sys.executable, "-I", "-u", "serve.py", "--port", "0", "--prefix", "/course/"]
    process = subprocess.Popen(command, cwd=packed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = line.split("http://")[1].split()[0]
        host, _, path = address.partition("/")
        connection = http.client.HTTPConnection(host, timeout=5)
        connection.request("GET", f"/{path}chapter.html")
        assert connection.getresponse().read() == b"<h1>Chapter</h1>"
        connection.close()
        process.send_signal(2)
        out, errors = process.communicate(timeout=5)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Stopped" in out
    assert "Traceback" not in errors
