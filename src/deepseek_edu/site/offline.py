"""List the finished site for readers who keep it on their device.

`edu/offline.json` names every file with its hash, its size and the size it is kept at, and the version: a hash over
that list. The page (`assets/js/offline.js`) fills a cache from it when a reader asks, with text packed as a server
would send it; `sw.js` at the site's root then serves that cache and unpacks.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

LISTING = "edu/offline.json"
WORKER = "sw.js"
VERSION_LENGTH = 10
COMPRESSED_ALREADY = {".whl", ".zip", ".woff2", ".png", ".states"}


def write_listing(root: Path, site: Path) -> None:
    """Put the service worker and the list into a site that is otherwise finished."""
    shutil.copyfile(root / "assets/js" / WORKER, site / WORKER)
    files = {path.relative_to(site).as_posix(): path.read_bytes() for path in _listed(site)}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    known = json.dumps(hashes, sort_keys=True).encode()
    listing = {
        "version": hashlib.sha256(known).hexdigest()[:VERSION_LENGTH],
        "files": {name: [hashes[name], len(files[name]), _packed(name, files[name])] for name in sorted(files)},
    }
    stored = sum(kept for _, _, kept in listing["files"].values())
    listing |= {"stored": stored, "loaded": stored}  # copies made before files were packed ask for both
    (site / LISTING).write_text(json.dumps(listing, separators=(",", ":")), encoding="utf-8")


def differences(site: Path) -> list[str]:
    """Return the files in which a site is no longer what its list says; readers could not keep such a site."""
    listing = json.loads((site / LISTING).read_text(encoding="utf-8"))
    listed = {name: hash for name, (hash, *_) in listing["files"].items()}
    found = {path.relative_to(site).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in _listed(site)}
    return sorted({name for name, _ in listed.items() ^ found.items()})


def _listed(site: Path) -> Iterator[Path]:
    """Yield every file of a site but the list itself."""
    return (path for path in site.rglob("*") if path.is_file() and path != site / LISTING)


def _packed(name: str, data: bytes) -> int:
    """Return the bytes of a file as a server sends it and as a reader keeps it: packed, where that saves any."""
    if Path(name).suffix in COMPRESSED_ALREADY:
        return len(data)
    return min(len(data), len(gzip.compress(data, 6, mtime=0)))
