"""Which scripts may run: those given by path, and those that the user approved.

What a cell file holds never runs by itself. The user's approvals are digests of texts
in a file of the user's own, beside the configuration of armillary.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from armillary.errors import ScriptError
from armillary.plugins import config_path, own_content
from armillary.replaced_file import replacing
from armillary.scripts.source import digest

__all__ = ["approve", "approved", "consent", "is_isolated", "isolate", "revoke"]

STORE: Final = "trusted-scripts"
ROW: Final = re.compile(r"([0-9a-f]{64})  (.*)")

NO_PLACE: Final = (
    "There is no place for approvals: ARMILLARY_CONFIG is off, or there is no home "
    "folder."
)

_given: set[str] = set()
_isolated: set[str] = set()


def consent(source: str) -> None:
    """Let a script run in this process, which was given its path."""
    _given.add(digest(source))


def isolate(source: str) -> None:
    """Let a script run in a process of its own, while nobody has approved it."""
    _isolated.add(digest(source))


def is_isolated(source: str, file: str) -> bool:
    """Return whether a script is to run in a process of its own.

    Raises:
        ScriptError: It came with a file, and may not run at all.
    """
    key = digest(source)
    if key in _given or key in approved():
        return False
    if key in _isolated:
        return True
    raise ScriptError(
        f"The script {file} came with a file, and scripts of files do not run by "
        "themselves. Read it with 'armillary trust show FILE'. If you trust it, "
        "'armillary trust approve FILE' lets it run; arm.load(FILE, "
        "scripts='isolated') runs it in a process of its own."
    )


def approved() -> dict[str, str]:
    """Return the file name under which each digest was approved by the user.

    Raises:
        PluginError: The store is not the user's own.
    """
    path = _store()
    if path is None:
        return {}
    rows = own_content(path).decode("utf-8", "replace").splitlines()
    matches = filter(None, map(ROW.fullmatch, rows))
    return {each[1]: each[2] for each in matches}


def approve(source: str, file: str) -> str:
    """Let a script run from now on, and return its digest.

    Raises:
        ScriptError: There is no place for the user's approvals.
    """
    key = digest(source)
    path = _store()
    if path is None:
        raise ScriptError(NO_PLACE)
    if key not in approved():
        shown = "".join(c if c.isprintable() else "?" for c in file)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Appended at once: others may approve at the same time.
        place = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(place, "wb") as store:
            store.write(f"\n{key}  {shown}\n".encode())
    return key


def revoke(key: str) -> bool:
    """Take an approval back, and return whether there was one.

    key: The digest of the script.

    Raises:
        ScriptError: There is no place for the user's approvals.
    """
    known = approved()
    if known.pop(key, None) is None:
        return False
    _write(known)
    return True


def _store() -> Path | None:
    path = config_path()
    return None if path is None else path.with_name(STORE)


def _write(known: dict[str, str]) -> None:
    path = _store()
    assert path is not None  # known is not empty
    text = "".join(f"{key}  {file}\n" for key, file in sorted(known.items()))
    with replacing(path, draft=STORE, mode=0o600) as file:
        file.write(text.encode())
