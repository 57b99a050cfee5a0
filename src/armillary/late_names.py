"""Names of a package that are imported when somebody first asks for one.

A robot has joints and shapes of two or three kinds, of thirty that there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any, final

from armillary.forks import IMPORT_LOCK

__all__ = ["LateNames"]


@final
class LateNames(Mapping[str, Any]):
    """Classes and functions by their names, each imported when it is looked up."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        """Import nothing yet.

        Args:
            package: The name of the package.
            homes: From names to the modules of the package that have them.
        """
        self._package = package
        self._homes = homes
        self._known: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __getitem__(self, name: str) -> Any:
        """Return what has a name.

        Raises:
            KeyError: There is none of this name.
        """
        known = self._known.get(name)
        if known is not None:
            return known
        home = f"{self._package}.{self._homes[name]}"
        # Where one thread imports a package and another a module of it, Python may
        # fail. A thread that imports has locks of modules, for which another may wait
        # that has this one: it takes no further lock.
        with nullcontext() if _is_importing() else IMPORT_LOCK:
            module = import_module(home)
        return self._known.setdefault(name, getattr(module, name))

    def __repr__(self) -> str:
        return f"<names of {self._package}: {', '.join(self)}>"

    def getter(self) -> Callable[[str], Any]:
        """Return the function `__getattr__` of the package, which has no other names.

        It raises AttributeError for names that are not there.
        """

        def get(name: str) -> Any:
            if name not in self._homes:
                raise AttributeError(
                    f"module '{self._package}' has no attribute {name!r}"
                )
            return self[name]

        return get


def _is_importing() -> bool:
    """Return whether this thread runs code of a module that is being imported."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
