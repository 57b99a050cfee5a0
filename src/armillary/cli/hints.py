"""The spelling of the command line, where hints speak to programs: `--folder DIR`."""

from __future__ import annotations

import re
from typing import Any, Final

from armillary.errors import FormatError, UnknownName
from armillary.formats.diagnostic import Diagnostic, explained

__all__ = ["error_text", "spelled", "spoken", "with_fix"]

# Each keyword that a hint names, and the option that stands for it here.
OPTIONS: Final = {
    r"folders=\[\.\.\.\]": "--folder DIR",
    r"folders=\[('.+?')\]": r"--folder \1",
    r"packages=\{'(.+?)': \.\.\.\}": r"--package \1=DIR",
    r"packages=\{'([^']+)': '([^']+)'\}": r"--package '\1=\2'",
    r"plugins=\['(.+?)'\]": r"--plugin \1",
    r"plugins=\[\.\.\.\]": "--plugin PACKAGE",
    r"load\('robot\.urdf', srdf=\.\.\.\)": "robot.urdf --srdf FILE",
    r"srdf=\.\.\.": "--srdf FILE",
    r"Name a format with format=\.\.\.": "Name a format with --to NAME",
    r"format='(\w+)'": r"--format \1",
    r"format=\.\.\.": "--format NAME",
    r"lenient=True": "--lenient",
    r"strict=True": "--strict",
    r"joints=\[\.\.\.\]": "joints=[...], in Python only",
}
_ANY: Final = re.compile("|".join(OPTIONS))


def spoken(text: str) -> str:
    """Return a text with options in place of keyword arguments."""
    return _ANY.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    for pattern, option in OPTIONS.items():
        if match := re.fullmatch(pattern, found[0]):
            return match.expand(option)
    raise AssertionError(found)


def spelled(finding: Any) -> str:
    """Return a finding as the command line tells it."""
    if not isinstance(finding, Diagnostic):
        return spoken(str(finding))
    return str(_with_hint(finding, finding.hint))


def with_fix(finding: Any) -> str:
    """Return a diagnostic with a hint how to fix it: its own, else that of its id."""
    if not isinstance(finding, Diagnostic):
        return spelled(finding)
    try:
        fix = explained(finding.code).fix
    except UnknownName:
        fix = ""
    return str(_with_hint(finding, finding.hint or fix))


def error_text(error: Exception) -> str:
    """Return the text of an error as the command line tells it."""
    if isinstance(error, FormatError):
        return "\n".join(map(spelled, error.diagnostics))
    return spoken(str(error))


def _with_hint(finding: Diagnostic, hint: str) -> Diagnostic:
    # What files say stands in the message, which is left as it is.
    return Diagnostic(
        place=finding.place,
        severity=finding.severity,
        code=finding.code,
        message=finding.message,
        hint=spoken(hint),
    )
