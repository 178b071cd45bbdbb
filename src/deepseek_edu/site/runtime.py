"""Assemble `edu/runtime`: everything a page needs to run Python in the reader's browser, from this site alone.

Pyodide's core comes from `node_modules`, the numpy wheel from wherever its exact bytes can be had, and our own wheel
is built by the standard backend. A reduced `pyodide-lock.json` names the two wheels with their SHA-256; the loader in
the page checks them. Folder and file names carry versions or content hashes, so that only the lock is ever revalidated.

Leaves out: micropip, the consoles, type declarations and source maps of Pyodide, and every other package of its lock.
"""

import gzip
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deepseek_edu.site.numpy_wheel import find_numpy_wheel

CORE_FILES = ("pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
BUILD_TIME = "1580601600"  # hatchling's own default for reproducible wheels
NOT_IN_BROWSER = {"model", "site", "experiments", "claims", "cli.py", "commands.py", "notebooks_sync.py"}


@dataclass(frozen=True)
class RuntimeFile:
    """One file of the runtime: path relative to `edu/runtime`, bytes as stored and as transferred."""

    path: str
    size: int
    compressed: int


@dataclass(frozen=True)
class RuntimeInfo:
    """What was assembled. `live_bytes` is the compressed transfer with numpy, `core_bytes` without it."""

    files: tuple[RuntimeFile, ...]
    live_bytes: int
    core_bytes: int


def assemble(root: Path, out_dir: Path, cache_dir: Path, say: Callable[[str], None] = lambda line: None) -> RuntimeInfo:
    """Write the browser runtime into `out_dir` and return its files with their compressed sizes.

    Args:
        root: repository root (`pyproject.toml`, `node_modules`).
        out_dir: becomes `edu/runtime`; replaced as a whole.
        cache_dir: kept between builds, outside the site.
        say: receives one line per step that takes time.

    Raises:
        RuntimeSourceError: the numpy wheel was nowhere to be had.
        FileNotFoundError: Pyodide is not installed in `node_modules`.
    """
    pyodide = root / "node_modules" / "pyodide"
    if not (pyodide / "pyodide-lock.json").exists():
        raise FileNotFoundError(f"{pyodide} is missing: run `npm ci` in {root} first")
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    version = json.loads((pyodide / "package.json").read_text(encoding="utf-8"))["version"]
    numpy = lock["packages"]["numpy"]
    numpy_wheel = find_numpy_wheel(numpy["file_name"], numpy["sha256"], cache_dir, pyodide / "pyodide.mjs", say)
    own_wheel = build_own_wheel(root, cache_dir, say)

    if out_dir.exists():
        shutil.rmtree(out_dir)
    core = out_dir / f"pyodide-{version}"
    core.mkdir(parents=True)
    for name in CORE_FILES:
        shutil.copyfile(pyodide / name, core / name)
    for wheel in (numpy_wheel, own_wheel):
        shutil.copyfile(wheel, out_dir / wheel.name)
    _write_lock(lock, version, own_wheel, out_dir / "pyodide-lock.json")

    files = tuple(_describe(path, out_dir, cache_dir) for path in sorted(out_dir.rglob("*")) if path.is_file())
    live = sum(file.compressed for file in files)
    without_numpy = live - next(file.compressed for file in files if file.path == numpy_wheel.name)
    return RuntimeInfo(files, live, without_numpy)


def _write_lock(lock: dict, version: str, own_wheel: Path, target: Path) -> None:
    """Reduce Pyodide's lock to numpy and our wheel.

    Our wheel deliberately names no dependency here: labs and the harness run without numpy, and the worker loads
    numpy beside it when a mechanism or the learner's code needs it.
    """
    from pyodide_lock import PackageSpec, PyodideLockSpec

    info = {"version": version, **lock["info"]}
    spec = PyodideLockSpec(info=info, packages={"numpy": lock["packages"]["numpy"]})
    name, release = own_wheel.name.split("-")[:2]
    spec.packages["deepseek-edu"] = PackageSpec(
        name=name.replace("_", "-"),
        version=release,
        file_name=own_wheel.name,
        install_dir="site",
        sha256=hashlib.sha256(own_wheel.read_bytes()).hexdigest(),
        imports=["deepseek_edu"],
    )
    spec.check_wheel_filenames()
    spec.to_json(target)


def build_own_wheel(root: Path, cache_dir: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Build our wheel with hatchling, or return the cached one of the same sources.

    The file name carries a build tag made from the content, so a browser never pairs a new lock with an old wheel.
    """
    stamp = _source_stamp(root)
    kept = sorted((cache_dir / "wheel" / stamp).glob("*.whl"))
    if kept:
        return kept[0]
    say("building the package's own wheel")
    from build import ProjectBuilder
    from pyproject_hooks import quiet_subprocess_runner

    def run(command, cwd=None, extra_environ=None):
        quiet_subprocess_runner(command, cwd, {**(extra_environ or {}), "SOURCE_DATE_EPOCH": BUILD_TIME})

    folder = cache_dir / "wheel" / f"{stamp}.{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    sources = folder / "sources"
    for path in _wheel_sources(root):
        target = sources / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    builder = ProjectBuilder(sources, python_executable=sys.executable, runner=run)
    wheel = Path(builder.build("wheel", folder))
    name, version, *tags = wheel.name.split("-")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:10]
    wheel = wheel.rename(folder / "-".join([name, version, f"0h{digest}", *tags]))
    shutil.rmtree(sources)
    final = cache_dir / "wheel" / stamp
    if not final.exists():
        folder.rename(final)
    else:
        shutil.rmtree(folder)
    return sorted(final.glob("*.whl"))[0]


def _wheel_sources(root: Path) -> list[Path]:
    """The files of our wheel: the package without the parts that a browser never imports."""
    package = root / "src" / "deepseek_edu"
    files = [path for path in sorted(package.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    kept = [path for path in files if path.relative_to(package).parts[0] not in NOT_IN_BROWSER]
    return [root / "pyproject.toml", root / "README.md", root / "LICENSE", *kept]


def _source_stamp(root: Path) -> str:
    digest = hashlib.sha256()
    for path in _wheel_sources(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _describe(path: Path, out_dir: Path, cache_dir: Path) -> RuntimeFile:
    data = path.read_bytes()
    return RuntimeFile(path.relative_to(out_dir).as_posix(), len(data), _compressed_size(data, cache_dir))


def _compressed_size(data: bytes, cache_dir: Path) -> int:
    """Size after gzip level 6, as our server sends it; remembered because Pyodide's core takes a second."""
    memory = cache_dir / "gzip-sizes.json"
    sizes = json.loads(memory.read_text(encoding="utf-8")) if memory.exists() else {}
    key = hashlib.sha256(data).hexdigest()
    if key not in sizes:
        sizes[key] = min(len(data), len(gzip.compress(data, 6, mtime=0)))
        cache_dir.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps(sizes, indent=0, sort_keys=True), encoding="utf-8")
    return sizes[key]
