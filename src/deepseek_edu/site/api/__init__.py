"""The API reference: pages made from the sources of the package, read statically, in reading order.

    parts.py      packages, modules and items as plain data
    items.py      one function, class or constant as griffe found it
    read.py       the packages' files, in reading order
    docstring.py  a docstring as HTML: paragraphs, aligned columns, lists of arguments, examples, links
    names.py      where a name leads: other items, the same file in the other implementation
    pages.py      Markdown pages and their place in the navigation
    trim.py       a short navigation on all other pages

Nothing is imported from what is described, so that the site builds without PyTorch.
"""

from deepseek_edu.site.api.pages import INDEX, nav_entry, write
from deepseek_edu.site.api.trim import trimmed

__all__ = ["INDEX", "nav_entry", "trimmed", "write"]
