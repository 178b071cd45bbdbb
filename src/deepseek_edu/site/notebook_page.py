"""Turn an executed notebook into a Markdown page with nbconvert and our own template.

nbconvert's HTML brings its own styles and asks other sites for scripts; its Markdown exporter with a template of ours
gives the same code blocks and scroll containers as the rest of the site. Charts come as static pictures with the
interactive figure on demand.
"""

from __future__ import annotations

import copy
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from deepseek_edu.site.page import json_script

TEMPLATES = Path(__file__).with_name("templates")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
SCRIPT = re.compile(r"(?is)<script.*?</script>")
OWN_SCROLLER = re.compile(r"\boverflow(?:-x|-y)?\s*:\s*(?:auto|scroll)\s*;?")  # the output's container scrolls
PLOTLY = "application/vnd.plotly.v1+json"


def without_outputs(node: Any) -> Any:
    """Return a copy without outputs and execution counts."""
    bare = copy.deepcopy(node)
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return bare


def page_text(node: Any, source: str, stem: str) -> str:
    """Return the staged page of a notebook: front matter, downloads, cells with their outputs."""
    body, _ = _exporter(stem).from_notebook_node(copy.deepcopy(node))
    title = re.search(r"(?m)^# (.+)$", body)
    named = title[1].strip() if title else stem
    downloads = (
        f'<p class="edu-downloads" data-search-exclude>'
        f'<a class="edu-button" href="{stem}.ipynb" download>Download the notebook</a> '
        f'<a class="edu-button" href="{stem}.executed.ipynb" download>with outputs</a></p>'
    )
    head = f"# {named}\n\n{downloads}\n"
    rest = body[: title.start()] + body[title.end() :] if title else body
    front = f"---\ntitle: {json.dumps(named, ensure_ascii=False)}\n---\n"
    return f"{front}<!-- edu-source: {source}:1 plain -->\n{head}\n{rest.strip()}\n"


@cache
def _exporter(stem: str) -> Any:
    from nbconvert.exporters import MarkdownExporter
    from traitlets.config import Config

    config = Config()
    config.ExtractOutputPreprocessor.enabled = False
    exporter = MarkdownExporter(config=config, template_name="edu", extra_template_basedirs=[str(TEMPLATES)])
    exporter.optimistic_validation = True
    exporter.register_filter("edu_code", code_fence)
    exporter.register_filter("edu_outputs", lambda cell: outputs(cell, f"{stem}-{cell['id']}"))
    return exporter


def code_fence(source: str) -> str:
    """Return a code fence that is longer than any run of backticks inside.

    >>> print(code_fence("x = 1"))
    ```python
    x = 1
    ```
    """
    longest = max((len(run) for run in re.findall(r"`+", source)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}python\n{source}\n{ticks}"


def outputs(cell: Any, prefix: str) -> str:
    """Return the outputs of a code cell as HTML without line breaks, which Markdown therefore leaves alone."""
    shown = [_output(output, f"{prefix}-{number}") for number, output in enumerate(cell.get("outputs", []), 1)]
    return "\n\n".join(part for part in shown if part)


def _output(output: Any, prefix: str) -> str:
    if output["output_type"] == "stream":
        return _text(output["text"], "edu-output--error" if output["name"] == "stderr" else "")
    data = output.get("data", {})
    if PLOTLY in data and "image/svg+xml" in data:
        inner = (
            f'<div class="edu-chart__static">{_inline_svg(data["image/svg+xml"], prefix)}</div>'
            '<button class="edu-chart__open" type="button" hidden>Show interactive figure</button>'
            f"{json_script(data[PLOTLY])}"
        )
        return _one_line(
            f'<div class="edu-output" data-search-exclude><edu-chart class="edu-chart">{inner}</edu-chart></div>'
        )
    if "image/svg+xml" in data:
        return _block(_inline_svg(data["image/svg+xml"], prefix))
    if "image/png" in data:
        alt = html.escape(data.get("text/plain", "picture"), quote=True)
        return _block(f'<img alt="{alt}" src="data:image/png;base64,{data["image/png"].strip()}">')
    if "text/html" in data:
        return _block(OWN_SCROLLER.sub("", SCRIPT.sub("", data["text/html"])))
    return _text(data.get("text/plain", ""))


def _text(text: str, style: str = "") -> str:
    shown = html.escape(ANSI.sub("", text).rstrip("\n"), quote=False)
    return _block(f"<pre>{shown}</pre>", style) if shown else ""


def _block(inner: str, style: str = "") -> str:
    classes = f"edu-output {style}".strip()
    return _one_line(
        f'<div class="{classes}" role="group" aria-label="Output" tabindex="0" data-search-exclude>{inner}</div>'
    )


def _one_line(markup: str) -> str:
    return markup.replace("\n", "&#10;")


def _inline_svg(svg: str, prefix: str) -> str:
    """Make a standalone SVG part of the page: its own style removed, its ids unique."""
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL).replace(" edu-svg--standalone", "")
    ids = re.findall(r'\bid="([^"]+)"', svg)
    for id in ids:
        svg = re.sub(rf'(["\s#]){re.escape(id)}(["\s)])', rf"\g<1>{prefix}-{id}\g<2>", svg)
    return svg
