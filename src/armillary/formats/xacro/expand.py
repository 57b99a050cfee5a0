"""Expand a xacro file in a confined process, under limits."""

from __future__ import annotations

import errno
import fnmatch
import glob
import importlib.util
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from armillary import confined_process
from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Budget, Diagnostic, Place, Report, fault
from armillary.formats.files import read_bytes
from armillary.formats.paths import Roots
from armillary.limits import (
    FILE_SIZE,
    PROCESS_MEMORY,
    REFERENCE_LENGTH,
    XACRO_LISTED,
    XACRO_QUESTIONS,
    XACRO_SECONDS,
)

__all__ = ["expand"]

CHILD: Final = str(Path(__file__).with_name("child.py"))
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_NOT_GIVEN: Final = re.compile(r"Undefined substitution argument (\w+)")


class XacroAnswer(msgspec.Struct, kw_only=True):
    """A line of the process; one of the first five says which.

    Attributes:
        find: The name of a package, whose folder it asks for.
        read: The path of a file, whose contents it asks for.
        match: A pattern of paths, for which it asks which files match.
        urdf: The result.
        error: What is wrong, in place of a result.
        files, macros: In which files and macros it is, the innermost last.
    """

    find: str = ""
    read: str = ""
    match: str = ""
    urdf: str | None = None
    error: str = ""
    files: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()


def expand(
    path: str, roots: Roots, arguments: Mapping[str, str], report: Report
) -> bytes:
    """Return the URDF that a xacro file makes.

    Args:
        path: The file.
        roots: Packages, for `$(find name)`, and the folders that may be read.
        arguments: Values for `$(arg name)`.
        report: Takes what xacro warns of.

    Raises:
        FormatError: The library `xacro` is not installed, the file is faulty, reads
            what it may not, or takes too much time or memory.
    """
    if importlib.util.find_spec("xacro") is None:
        raise fault(
            path,
            "missing-library",
            "this is read with the library xacro, which is not installed",
            hint="Install it: pip install armillary[xacro].",
        )
    home, real = os.path.dirname(os.path.realpath(path)), os.path.realpath(path)
    budget = report.budget
    files = _Files(path, home, roots, budget)
    request = {
        "path": real,
        "arguments": {name: str(value) for name, value in arguments.items()},
        "memory": budget.most(PROCESS_MEMORY),
    }
    with tempfile.TemporaryFile() as complaints:
        answer = _talk(files, home, request, complaints, budget)
        complaints.seek(0)
        text = _COLOURS.sub("", complaints.read(1 << 16).decode("utf-8", "replace"))
    hint = ""
    if files.outside:
        folder = quote(os.path.dirname(files.outside))
        hint = f"If it is trusted, allow its folder: folders=[{folder}]."
    if answer is None:
        message = (
            f"{XACRO_SECONDS.excess(most=budget.most(XACRO_SECONDS))}, or "
            f"{budget.most(PROCESS_MEMORY) >> 20} MiB, and was ended"
        )
        hint = hint or "See whether a macro calls itself."
        raise fault(path, "xacro-error", message, hint=hint)
    if answer.urdf is None:
        chain = [file for file in answer.files if file != real]
        where = [f"in {quote(os.path.relpath(file, home))}" for file in chain[-1:]]
        where += [f"in macro {quote(name)}" for name in answer.macros[-1:]]
        message = ", ".join([answer.error.strip().removesuffix("."), *where])
        if not_given := _NOT_GIVEN.search(message):
            hint = f"Give its value: arguments={{{quote(not_given[1])}: ...}}."
        raise fault(path, "xacro-error", message, hint=hint)
    if text.strip():
        report.warning(Place(path), "xacro-warning", " ".join(text.split()))
    if files.outside:
        message = f"{quote(files.outside)} may not be read, and was left out"
        report.warning(Place(path), "reference-outside", message, hint=hint)
    return answer.urdf.encode()


def _talk(
    files: _Files,
    home: str,
    request: Mapping[str, Any],
    complaints: IO[bytes],
    budget: Budget,
) -> XacroAnswer | None:
    """Return the last answer of the process, or None if it took too much."""
    end = time.monotonic() + budget.most(XACRO_SECONDS)
    process = confined_process.ConfinedProcess(
        [CHILD, confined_process.__file__], folder=home, complaints=complaints
    )
    try:
        message: Mapping[str, Any] = request
        for _ in range(budget.most(XACRO_QUESTIONS)):
            line = process.ask(
                json.dumps(message).encode(),
                seconds=end - time.monotonic(),
                longest=2 * budget.most(FILE_SIZE),
            )
            answer = msgspec.json.decode(line, type=XacroAnswer)
            # No file has a longer path, and following one would take long.
            if len(answer.read + answer.match) > REFERENCE_LENGTH.most:
                return None
            if answer.find:
                message = files.package(answer.find)
            elif answer.read:
                message = files.read(answer.read)
            elif answer.match:
                message = files.matches(answer.match)
            else:
                return answer
    # Such as an answer that ends early: what the process says is not to be trusted.
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    finally:
        process.end()
    return None


class _Files:
    """What the process may know of files: it asks, and this decides.

    Attributes:
        outside: The last path that was refused, empty if there is none.
    """

    def __init__(self, path: str, home: str, roots: Roots, budget: Budget) -> None:
        self._place = Place(path)
        self._home = home
        self._roots = roots
        self._allowed = list(roots.allowed(home))
        self._budget = budget
        self._left = budget.most(XACRO_LISTED)
        self.outside = ""

    def package(self, name: str) -> dict[str, Any]:
        """Return the folder of a package, which may be read from now on."""
        folder = self._roots.package(name, base=self._home, place=self._place)
        if isinstance(folder, Diagnostic):
            return {"error": f"{folder.message}. {folder.hint}".removesuffix(".")}
        self._allowed.append(folder)
        return {"result": str(folder)}

    def read(self, path: str) -> dict[str, Any]:
        """Return the contents of a file, a character for each byte."""
        if not self._may_read(path):
            message = "this is outside of the folders that may be read"
            return {"errno": errno.EACCES, "error": message, "path": self.outside}
        try:
            data = read_bytes(path, self._budget.most(FILE_SIZE))
        except FormatError as error:
            message = error.diagnostics[0].message
            return {"errno": errno.ENOENT, "error": message, "path": path}
        return {"result": data.decode("latin-1")}

    def matches(self, pattern: str) -> dict[str, Any]:
        """Return the paths that match a pattern with * and ?, as `glob.glob` does."""
        first, *rest = Path(pattern).parts or (".",)
        paths = [first]
        for part in rest:
            if glob.has_magic(part):
                paths = [
                    os.path.join(folder, name)
                    for folder in paths
                    for name in fnmatch.filter(self._names(folder), part)
                    if part[0] == "." or name[0] != "."
                ]
            else:
                paths = [os.path.join(folder, part) for folder in paths]
        # Only what may be read: else it would learn which files there are elsewhere.
        there = [p for p in paths if self._may_read(p) and os.path.lexists(p)]
        return {"result": there}

    def _names(self, folder: str) -> list[str]:
        """Return the names in a folder, none if it may not be read."""
        if self._left <= 0 or not self._may_read(folder):
            return []
        try:
            names = os.listdir(folder)
        except OSError:
            return []
        self._left -= 1 + len(names)
        return names

    def _may_read(self, path: str) -> bool:
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            return False
        if any(real.is_relative_to(folder) for folder in self._allowed):
            return True
        self.outside = str(real)
        return False
