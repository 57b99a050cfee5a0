"""Which scripts may run: those given by path, and those that the user approved."""

from __future__ import annotations

from armillary.errors import ScriptError
from armillary.scripts.source import digest

__all__ = ["consent", "require_consent"]

_given: set[str] = set()


def consent(source: str) -> None:
    """Let a script run in this process."""
    _given.add(digest(source))


def require_consent(source: str, file: str) -> None:
    """Refuse a script that nobody has approved.

    Raises:
        ScriptError: It came with a file, and may not run.
    """
    if digest(source) not in _given:
        raise ScriptError(
            f"The script {file} came with a file, and scripts of files do not run by "
            "themselves. Read it with `armillary trust show FILE`; if you trust it, "
            "`armillary trust approve FILE`."
        )
