"""Where a name in a docstring leads: an item of the same file, another file, its twin in the other implementation."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence

from deepseek_edu.site.api import docstring
from deepseek_edu.site.api.docstring import FILE
from deepseek_edu.site.api.parts import Item, Module, Package

TWINS = {"reference": ("model", "PyTorch"), "model": ("reference", "NumPy")}
SHORTEST = 4
"""Letters of a name that may lead to another file by itself; shorter ones are more likely a symbol of a formula."""


class Names:
    """All anchors of the reference.

    Args:
        packages: what is documented.
    """

    def __init__(self, packages: Sequence[Package]) -> None:
        self.modules = {module.path: module for package in packages for module in package.modules}
        self.anchors = {path: set(_anchors(module.items)) for path, module in self.modules.items()}
        self.conventions = {package.name: docstring.conventions(package.doc) for package in packages}
        homes: dict[tuple[str, str], list[str]] = {}
        for path, module in self.modules.items():
            for item in module.items:
                homes.setdefault((module.package, item.name), []).append(path)
        self.homes = {key: paths[0] for key, paths in homes.items() if len(paths) == 1}

    def common(self, module: Module) -> dict[str, str]:
        """Return the arguments that mean the same in all files of a module's package."""
        return self.conventions.get(module.package, {})

    def link(self, module: Module, given: Iterable[str] = ()) -> Callable[[str], str | None]:
        """Return the function from a name on the page of `module` to a relative address, or None.

        Args:
            module: whose page the name stands on.
            given: names that mean something else there, such as parameters.
        """
        own = set(given)

        def find(name: str) -> str | None:
            name = name.removesuffix("()")
            if name in own:
                return None
            if name in self.anchors[module.path]:
                return f"#{name}"
            path, anchor = self._place(name, module.package)
            return self.address(module.path, path, anchor) if path and path != module.path else None

        return find

    def _place(self, name: str, package: str) -> tuple[str, str]:
        """Return (path of a module, anchor), or empty texts."""
        if file := FILE.fullmatch(name):
            path = "/".join(filter(None, (file["folder"] or package, file["name"])))
            return (path, "") if path in self.modules else ("", "")
        parts = name.removeprefix("deepseek_edu.").split(".")
        for start in ([package] if package else [], []):
            for end in range(len(parts), 0, -1):
                path, anchor = "/".join([*start, *parts[:end]]), ".".join(parts[end:])
                if path in self.modules and (not anchor or anchor in self.anchors[path]):
                    return path, anchor
        for scope in (package, ""):
            home = self.homes.get((scope, parts[0]), "")
            if home and len(parts[0]) >= SHORTEST and name in self.anchors[home]:
                return home, name
        return "", ""

    def twin(self, module: Module, anchor: str = "") -> tuple[str, str] | None:
        """Return (title, address) of the same file in the other implementation, or of the same name in it."""
        other, title = TWINS.get(module.package, ("", ""))
        path = f"{other}/{module.name}"
        if path not in self.modules or (anchor and anchor not in self.anchors[path]):
            return None
        return title, self.address(module.path, path, anchor)

    @staticmethod
    def address(here: str, path: str, anchor: str = "") -> str:
        """Return the relative address of a page of the reference, from another."""
        folder = posixpath.dirname(here) or "."
        return f"{posixpath.relpath(path, folder)}.html{f'#{anchor}' if anchor else ''}"


def _anchors(items: Iterable[Item]) -> Iterable[str]:
    for item in items:
        yield item.anchor
        yield from _anchors(item.members)
