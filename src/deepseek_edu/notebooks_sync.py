"""Write the .ipynb beside each notebook's .py source: no outputs, fixed cell ids, so that only the source changes it.

    python -m deepseek_edu.notebooks_sync          write what is out of date
    python -m deepseek_edu.notebooks_sync --check  only say what is out of date; exit 1 if something is

The .py file (jupytext, percent format) is the source. Saving a notebook in JupyterLab updates it by `jupytext.toml`.
"""

import argparse
import json
import sys
from pathlib import Path

from deepseek_edu.site.notebook_page import without_outputs
from deepseek_edu.site.notebooks import read

ROOT = Path(__file__).resolve().parents[2]


def notebook_text(root, source):
    """Return the text of the .ipynb file that belongs to a .py source below root/notebooks."""
    node = without_outputs(read(root, source).node)
    return json.dumps(node, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def stale(root=ROOT):
    """Return [(path of the .ipynb, its right text)] for each that is missing or differs from its source."""
    sources = sorted((Path(root) / "notebooks").glob("*.py"))
    wanted = [(source.with_suffix(".ipynb"), notebook_text(Path(root), source)) for source in sources]
    return [(path, text) for path, text in wanted if not path.exists() or path.read_text(encoding="utf-8") != text]


def main(arguments=None):
    """Write or check; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m deepseek_edu.notebooks_sync", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a notebook is out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder that holds notebooks/")
    options = parser.parse_args(arguments)
    found = stale(options.root)
    for path, text in found:
        if not options.check:
            path.write_text(text, encoding="utf-8")
        print(f"{'out of date' if options.check else 'wrote'}: {path.name}")
    return 1 if found and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
