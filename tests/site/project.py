"""A small course: its own pages, claims and notebook; everything else is the repository's, copied or linked."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

from tests.site_build import ROOT

COPIED = ("assets", "labs", "src", "LICENSE", "package-lock.json", "pyproject.toml", "README.md", "requirements")
OWN_CACHE = {"notebooks", "build.lock", "katex.json"}

CLAIMS = """\
[sixteen-codes]
text = "Four bits give {value} codes."
label = "code"
source = "Counting"
value = 15
check = "deepseek_edu.claims.fp4.distinct_levels"

[read-only]
text = "The report saw about 10."
label = "report"
source = "Technical report, section 2.4.4"
read = "Only the report can know."
"""

INDEX = """\
---
title: A small course
description: For tests.
---

# A small course

Go to the [chapter](chapter.md#numbers). FP4 is short for something.
"""

CHAPTER = """\
---
title: A chapter
description: For tests.
chapter: small
section: Tests
objectives:
  - Count to *nine*.
prerequisites:
  - Nothing.
---

# A chapter

## Numbers

Sixteen values take [[= quant.fp4_bytes(16, 16) ]] bytes [[claim sixteen-codes]], and $x^2$ is inline.

$$
\\\\sqrt{512}
$$

| a | b |
|---|---:|
| 1 | [[= 1 / 4 | .2f ]] |

```quiz
id: half
question: What is half of 9?
answer: 9 / 2
tolerance: 0.01
why: "Because."
```

```walk
id: steps
cards:
  - title: One
    text: First.
  - title: Two
    text: |
      Second, [[= 1 + 1 ]].
```

```figure
id: fp4-levels
caption: All levels.
claim: read-only
```

```widget
id: fp4
values:
  value: 2.5
```

```lab
id: fp4-codes
```
"""

GLOSSARY = """\
---
title: Glossary
---

# Glossary

FP4
:   Floating point in four bits. More words.
"""

CONFIG_NAV = """\
nav:
  - Start: index.md
  - Chapters:
      - A chapter: chapter.md
      - A notebook: notebooks/small.md
  - Reference:
      - Glossary: glossary.md
      - Ledger of claims: claims.md
      - Notices: notices.md
"""

NOTEBOOK = """\
# %% [markdown]
# # A small notebook
#
# Two and two, with `[[= 1 ]]` left alone.

# %%
import numpy as np
from deepseek_edu.reference import quant

print("levels", len(np.unique(quant.decode_e2m1(np.arange(16, dtype=np.uint8)))))

# %%
from deepseek_edu.drawing.chart import Axis, Chart, Series

Chart("Squares", "Three squares.", Axis("n"), Axis("n²"), (Series("n²", (1, 2, 3), (1, 4, 9)),))
"""

PAGES = {"index.md": INDEX, "chapter.md": CHAPTER.replace("\\\\", "\\"), "glossary.md": GLOSSARY}


def make_project(
    folder: Path,
    pages: dict[str, str] | None = None,
    claims: str = CLAIMS,
    notebook: str | None = NOTEBOOK,
) -> Path:
    """Write the project and return its root. `pages` adds to or replaces the pages of the small course."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    for name in COPIED:
        _copy(ROOT / name, folder / name)
    (folder / ".cache").mkdir()
    if (ROOT / ".cache").exists():
        for kept in (ROOT / ".cache").iterdir():
            if kept.name not in OWN_CACHE:
                _copy(kept, folder / ".cache" / kept.name)
    (folder / "course").mkdir()
    for name, text in {**PAGES, **(pages or {})}.items():
        (folder / "course" / name).write_text(text, encoding="utf-8")
    (folder / "course" / "claims.toml").write_text(claims, encoding="utf-8")
    (folder / "notebooks").mkdir()
    if notebook:
        (folder / "notebooks" / "small.py").write_text(notebook, encoding="utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    head, _, rest = config.partition("\nnav:\n")
    tail = rest[rest.index("\nextra_css:") :]
    nav = CONFIG_NAV if notebook else CONFIG_NAV.replace("      - A notebook: notebooks/small.md\n", "")
    (folder / "mkdocs.yml").write_text(f"{head}\n{nav}{tail}", encoding="utf-8")
    return folder


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


def block(kind: str, body: str) -> str:
    """Return a fence of ours."""
    return f"```{kind}\n{textwrap.dedent(body).strip()}\n```\n"
