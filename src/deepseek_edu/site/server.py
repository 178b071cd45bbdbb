"""A small static server for the finished site: one file, standard library only; a packed course has it as `serve.py`.

It gives every file its right type, compresses text and WebAssembly once, answers conditional requests, may serve under
any prefix, and sends the same Content-Security-Policy as the pages name. Files are sent as they are: a reader's
browser compares each with its listed hash before it keeps the course on the device.

Leaves out: HTTPS, uploads, directory listings. It listens on this machine only unless told otherwise.

    python serve.py            # in the folder of a packed course
    python serve.py site --port 8000 --prefix /a/b/
"""

import argparse
import contextlib
import errno
import gzip
import hashlib
import html
import http.server
import re
import socket
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Callable
from pathlib import Path

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'self'"
)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".ipynb": "application/x-ipynb+json",
    ".webmanifest": "application/manifest+json",
    ".wasm": "application/wasm",
    ".xml": "application/xml",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".py": "text/plain; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".zip": "application/zip",
    ".whl": "application/zip",
}
COMPRESSED_ALREADY = {".png", ".woff2", ".zip", ".ico", ".states"}
# app-1a2b3c4d5e.js, bundle.a5f9d56c.min.js, KaTeX_Main-ARRPAO67.woff2, pyodide-314.0.4/…, wheels with a build tag
HASHED = re.compile(r"(-[0-9a-f]{8,}\.\w+|-[0-9A-Z]{8}\.woff2|\.[0-9a-f]{8}\.min\.\w+)$|/pyodide-[\d.]+/|\.whl$")
HOME = re.compile(rb"<!-- home -->.*?<!-- /home -->", re.DOTALL)  # words of 404.html for servers that know no prefix
PORTS_TO_TRY = 20
LAST_PORT = 65_535


class Site:
    """The files of one folder as the server sends them; bodies are compressed on first use and kept in memory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._kept: dict[Path, tuple[tuple[int, int], bytes, bytes | None, str]] = {}
        self._lock = threading.Lock()

    def find(self, path: str) -> Path | None:
        """The file for a decoded path below the prefix, or None; never a file outside the folder."""
        parts = [part for part in path.split("/") if part]
        if any(part.startswith(".") or "\\" in part or "\0" in part or ":" in part for part in parts):
            return None
        found = self.directory.joinpath(*parts)
        if path.endswith("/") or not parts:
            found = found / "index.html"
        with contextlib.suppress(OSError, ValueError):
            found = found.resolve()
            if found.is_file() and found.is_relative_to(self.directory):
                return found
        return None

    def body(self, file: Path) -> tuple[bytes, bytes | None, str]:
        """Bytes, compressed bytes (or None where that saves nothing) and entity tag of a file as it is now."""
        status = file.stat()
        version = (status.st_mtime_ns, status.st_size)
        kept = self._kept.get(file)
        if kept is None or kept[0] != version:
            data = file.read_bytes()
            kept = (version, *self.prepare(data, file.suffix))
            with self._lock:
                self._kept[file] = kept
        return kept[1:]

    @staticmethod
    def prepare(data: bytes, suffix: str) -> tuple[bytes, bytes | None, str]:
        tag = hashlib.sha256(data).hexdigest()[:16]
        packed = None
        if suffix not in COMPRESSED_ALREADY and len(data) > 256:
            packed = gzip.compress(data, 6, mtime=0)
            if len(packed) > 0.97 * len(data):
                packed = None
        return data, packed, tag

    def warm(self) -> None:
        """Compress the large files before anyone asks for them."""
        for file in sorted(self.directory.rglob("*")):
            if file.is_file() and file.stat().st_size > 500_000:
                self.body(file)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD for one site under one prefix."""

    protocol_version = "HTTP/1.1"
    server_version = "deepseek-edu"
    sys_version = ""
    server: "SiteServer"

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a body must not wait behind its header

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        address = urllib.parse.urlsplit(self.path)
        try:
            path = urllib.parse.unquote(address.path, errors="strict")
        except UnicodeDecodeError:
            return self._send(400, b"bad address\n", None, None, "text/plain", with_body)
        prefix = self.server.prefix
        if not path.startswith(prefix):
            if path + "/" == prefix or path == "/":
                return self._redirect(prefix)
            return self._not_found(with_body)
        below = path[len(prefix) :]
        file = self.server.site.find(below)
        if file is None:
            folder = self.server.site.find(below + "/") if below and not below.endswith("/") else None
            if folder is not None:
                return self._redirect(urllib.parse.quote(path + "/"))
            return self._not_found(with_body)
        data, packed, tag = self.server.site.body(file)
        kind = TYPES.get(file.suffix.lower(), "application/octet-stream")
        return self._send(200, data, packed, tag, kind, with_body, immutable=bool(HASHED.search("/" + below)))

    def _not_found(self, with_body: bool) -> None:
        page = self.server.site.find("404.html")
        data = page.read_bytes() if page else b"<!doctype html><title>Not found</title><p>There is no such page.\n"
        # the page may be shown at any depth, so only a server knows where the course begins
        link = (
            f'<p><a href="{html.escape(urllib.parse.quote(self.server.prefix))}">Go to the start of the course</a></p>'
        )
        data = HOME.sub(link.encode(), data)
        self._send(404, data, None, None, TYPES[".html"], with_body)

    def _redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(
        self,
        status: int,
        data: bytes,
        packed: bytes | None,
        tag: str | None,
        kind: str,
        with_body: bool,
        immutable: bool = False,
    ) -> None:
        coded = packed is not None and "gzip" in self.headers.get("Accept-Encoding", "")
        body = packed if coded else data
        quoted = f'"{tag}{"-gz" if coded else ""}"'
        known = [part.strip().removeprefix("W/") for part in self.headers.get("If-None-Match", "").split(",")]
        unchanged = tag is not None and (quoted in known or "*" in known)
        self.send_response(304 if unchanged else status)
        if tag is not None:
            self.send_header("ETag", quoted)
            self.send_header("Cache-Control", "public, max-age=31536000, immutable" if immutable else "no-cache")
        else:
            self.send_header("Cache-Control", "no-store")
        if packed is not None:
            self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if not unchanged:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if coded:
                self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if with_body and not unchanged:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        self.server.log(format % arguments)


class SiteServer(http.server.ThreadingHTTPServer):
    """Serves one folder; `url` is its address."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, address: tuple[str, int], directory: Path, prefix: str, log: Callable[[str], None]) -> None:
        self.site = Site(directory)
        self.prefix = prefix
        self.log = log
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        # The inherited version asks the name service for this machine's name, which may hang without a network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host}:{port}{self.prefix}"


def make_server(
    directory: str | Path,
    port: int = 8000,
    prefix: str = "/",
    host: str = "127.0.0.1",
    log: Callable[[str], None] = lambda line: None,
) -> SiteServer:
    """Bind a server for a folder; if the port is taken, the next free one is used (0 asks for any).

    Raises:
        NotADirectoryError: there is no such folder.
        ValueError: `port` is no port.
        OSError: no port near the wanted one is free.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder: build the site first")
    prefix = "/" + prefix.strip("/") + "/" if prefix.strip("/") else "/"
    if not 0 <= port <= LAST_PORT:
        raise ValueError(f"port {port}; allowed: 0 to {LAST_PORT}, 0 picks a free one")
    last = min(port + PORTS_TO_TRY - 1, LAST_PORT)
    for candidate in range(port, last + 1) if port else [0]:
        try:
            return SiteServer((host, candidate), folder, prefix, log)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise OSError(errno.EADDRINUSE, f"ports {port} to {last} on {host} are all in use")


def serve(directory: str | Path, port: int = 8000, prefix: str = "/", host: str = "127.0.0.1") -> None:
    """Serve a folder and print its address until Ctrl-C."""
    server = make_server(directory, port, prefix, host)
    if port and server.server_port != port:
        print(f"Port {port} is in use.")
    print(f"The course is at {server.url}  (Ctrl-C stops)", flush=True)
    threading.Thread(target=server.site.warm, daemon=True).start()
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        print("\nStopped.")
    finally:
        server.server_close()


def main() -> None:
    here = Path(__file__).resolve().parent
    packed = here / "site" if (here / "site").is_dir() else here
    parser = argparse.ArgumentParser(description="Serve the course on this machine.")
    parser.add_argument("directory", nargs="?", default=packed, help="folder of the finished site")
    parser.add_argument("--port", type=int, default=8000, help="if it is taken, the next free one is used")
    parser.add_argument("--prefix", default="/", help="sub-path to serve under, such as /a/b/")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 lets other machines in")
    given = parser.parse_args()
    try:
        serve(given.directory, given.port, given.prefix, given.host)
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        sys.exit(f"{parser.prog}: {error.strerror or error}")


if __name__ == "__main__":
    main()
