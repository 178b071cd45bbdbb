"""What the grader's child process may read, and its fresh folder and environment."""

import importlib.util
import math
import os
import sys
import sysconfig
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/System/Library",
    "/usr/share/locale",
)
_OTHER_PACKAGES = ("/usr/lib/python3", "/usr/local/lib/node_modules", "/usr/lib/node_modules")


def prepare(folder, limits):
    """Make the sandbox below `folder` and return the settings `isolation.apply` takes.

    "packages" is a folder with links to NumPy and nothing else, "work" the only place the submission may write to.
    """
    work, packages = folder / "work", folder / "packages"
    work.mkdir()
    packages.mkdir()
    numpy = _numpy_folders()
    for path in numpy:
        (packages / path.name).symlink_to(path, target_is_directory=True)
    return {
        "work": str(work),
        "packages": str(packages),
        "memory_mb": limits.memory_mb,
        "cpu_seconds": math.ceil(limits.total_seconds + limits.load_seconds) + 1,
        "readable": [*map(str, numpy), str(packages), *_library_folders()],
        "excluded": _closed_folders(),
    }


def environment(work):
    """The child's environment: nothing of the grader's own."""
    return {
        "HOME": work,
        "TMPDIR": work,
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PATH": "/nonexistent",
    }


def _numpy_folders():
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).resolve().parent
    libraries = folder.with_name("numpy.libs")
    return [folder, libraries] if libraries.is_dir() else [folder]


def _library_folders():
    """Python's standard library and the system's shared libraries."""
    paths = sysconfig.get_paths(
        vars={
            "base": sys.base_prefix,
            "platbase": sys.base_exec_prefix,
            "installed_base": sys.base_prefix,
            "installed_platbase": sys.base_exec_prefix,
        }
    )
    folders = {paths["stdlib"], paths["platstdlib"], os.path.join(sys.base_prefix, "lib"), *_SYSTEM}
    return sorted(folder for folder in folders if os.path.exists(folder))


def _closed_folders():
    """Other installed packages, this package and the course around it: solutions and references are there."""
    here = Path(__file__).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    closed = {*_OTHER_PACKAGES, str(here.parents[1])}
    if (here.parents[3] / "labs").is_dir():
        closed.add(str(here.parents[3]))
    for base in (sys.prefix, sys.base_prefix, "/usr", "/usr/local"):
        for name in ("site-packages", "dist-packages"):
            closed |= {f"{base}/{lib}/{version}/{name}" for lib in ("lib", "lib64")}
    closed |= {path for path in map(sysconfig.get_path, ("purelib", "platlib")) if path}
    return sorted(path for path in closed if os.path.isdir(path))
