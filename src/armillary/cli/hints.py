"""Messages as the command line prints them: options in place of keyword arguments."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from armillary.errors import FormatError, UnknownName
from armillary.formats.diagnostic import Diagnostic, explained

__all__ = ["diagnostic_text", "error_text", "with_options"]

# Each keyword argument that a hint names, and the option that replaces it.
OPTIONS: Final = {
    r"folders=\[\.\.\.\]": "--folder DIR",
    r"folders=\[('.+?')\]": r"--folder \1",
    r"packages=\{'(.+?)': \.\.\.\}": r"--package \1=DIR",
    r"packages=\{'([^']+)': '([^']+)'\}": r"--package '\1=\2'",
    r"arguments=\{'(\w+)': \.\.\.\}": r"--argument \1=VALUE",
    r"plugins=\['(.+?)'\]": r"--plugin \1",
    r"plugins=\[\.\.\.\]": "--plugin PACKAGE",
    r"load\('robot\.urdf', srdf=\.\.\.\)": "robot.urdf --srdf FILE",
    r"srdf=\.\.\.": "--srdf FILE",
    r"srdf='([^']+)'": r"--srdf '\1'",
    r"self_collision=False": "--no-self-collision",
    r"by cell\.replace\(rules=cell\.rules\.include_self\(.+?\)\)": (
        "by --self-collision"
    ),
    r"by cell\.rules\.exclude\(.+?\)": "by --no-self-collision",
    r"To test such a pair, add it by cell\.rules\.include\(.+\)\.": (
        "'armillary rules FILE --out FILE.srdf' writes which pairs are tested, to keep "
        "or to edit; --srdf FILE.srdf reads it."
    ),
    r"exact=True tests their triangles instead": (
        "'armillary collide --exact' tests their triangles instead"
    ),
    r"leave out exact=True": "leave out --exact",
    r"Name a format with format=\.\.\.": "Name a format with --to NAME",
    r"format='(\w+)'": r"--format \1",
    r"format=\.\.\.": "--format NAME",
    r"by arm\.scripted\(path, component=\.\.\.\)": "with --component FILE",
    r"load\('(\w+)', fetch=True\)": r"\1 --fetch",
    r"fetch=True": "--fetch",
    r"lenient=True": "--lenient",
    r"swapped_limits='(\w+)'": r"--swapped-limits \1",
    r"strict=True": "--strict",
    r"joints=\[\.\.\.\]": "joints=[...], in Python only",
    r"within=\{'(.+?)': \(0\.0, 1\.0\)\}": r"--within '\1=0:1'",
    r"(smaller|larger) chunk=": r"\1 --chunk",
    r"leave out chunk=": "leave out --chunk",
    r"with reduce=": "with --voxels",
    r"resume is False": "--no-resume was given",
    r"rotation=''": "--rotation none",
}
_ANY: Final = re.compile("|".join(OPTIONS))


def with_options(text: str) -> str:
    """Return a text with options in place of keyword arguments."""
    return _ANY.sub(_option, text)


def _option(match: re.Match[str]) -> str:
    for pattern, option in OPTIONS.items():
        if argument := re.fullmatch(pattern, match[0]):
            return argument.expand(option)
    raise AssertionError(match)


def diagnostic_text(diagnostic: Any, *, fix: bool = False) -> str:
    """Return a diagnostic, or what else an error was made of, as text.

    Args:
        diagnostic: A `Diagnostic`; of anything else the text.
        fix: Whether one without a hint ends with the fix that its id has.
    """
    if not isinstance(diagnostic, Diagnostic):
        return with_options(str(diagnostic))
    hint = diagnostic.hint or (_fix(diagnostic.code) if fix else "")
    # The message quotes the file; it is left as it is.
    return str(replace(diagnostic, hint=with_options(hint)))


def _fix(code: str) -> str:
    try:
        return explained(code).fix
    except UnknownName:
        return ""


def error_text(error: Exception) -> str:
    """Return the text of an error as the command line prints it."""
    if isinstance(error, FormatError):
        return "\n".join(map(diagnostic_text, error.diagnostics))
    return with_options(str(error))
