"""Names that nothing has yet, for what a format must call something."""

from __future__ import annotations

__all__ = ["FreeNames"]


class FreeNames:
    """Derive names that nothing has yet."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def derive(self, name: str) -> str:
        """Return `name`, or `name_2`, `name_3` and so on where that is taken."""
        found, count = name, 1
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found
