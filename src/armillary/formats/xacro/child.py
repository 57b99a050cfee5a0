"""Expand one xacro file; run as a script in a process of its own, by `expand.py`.

The expressions of a xacro file are Python, and the library's own checks of them can be
got around. So this process gives itself limits of time and memory, and an audit hook
that refuses everything but reading files in the folders that it was told.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

HARMLESS = frozenset(
    ("compile", "exec", "glob.glob", "glob.glob/2", "sys._getframe", "builtins.id")
)
READING = frozenset(("open", "os.listdir", "os.scandir"))
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Guard:
    """Refuse what an expression has no need of."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(folders)
        self.refused = ""
        sys.addaudithook(self._check)

    def allow(self, folder: str) -> None:
        """Allow a further folder to be read."""
        self._folders.append(folder)

    def _check(self, event: str, args: tuple[Any, ...]) -> None:
        if event in HARMLESS:
            return
        if event not in READING:
            raise PermissionError(f"an expression may not do this: {event}")
        if event == "open" and isinstance(args[2], int) and args[2] & WRITING:
            raise PermissionError("an expression may not write files")
        path = os.path.realpath(os.fsdecode(args[0] or "."))
        if not any(os.path.commonpath((path, f)) == f for f in self._folders):
            self.refused = path
            message = "this is outside of the folders that may be read"
            raise PermissionError(errno.EACCES, message, path)


def limit(seconds: int, memory: int) -> None:
    """Limit this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows: the caller's time limit is left
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # warnings
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def text_of(error: BaseException) -> str:
    """Return what an error says, once: the library's hold another."""
    cause: BaseException | None = getattr(error, "exc", None)
    own = str(error.args[0] or "") if cause is not None else str(error)
    inner = "" if cause is None else str(cause) or type(cause).__name__
    if inner in own or isinstance(cause, OSError):
        own, inner = (own, "") if not inner else (inner, "")
    suffix = getattr(error, "suffix", None) or ""
    return " ".join(f"{own} {inner} {suffix}".split()) or type(error).__name__


def main() -> None:
    """Answer one request on the standard input.

    A line comes in: the file, the folders that may be read, arguments, limits. Lines go
    out: `find`, the name of a package, which a line with its folder answers; then
    `urdf`, the text, or `error`, what is wrong, with the files it is in.
    """
    xacro: Any = importlib.import_module("xacro")
    substitutions: Any = importlib.import_module("xacro.substitution_args")
    for name in ("yaml", "xml.dom.expatbuilder", "xml.dom.pulldom", "traceback"):
        importlib.import_module(name)  # later the guard allows no import
    for encoding in ("ascii", "latin-1", "utf-16", "cp1252"):
        b"".decode(encoding)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    request = json.loads(sys.stdin.readline())
    limit(request["seconds"], request["memory"])

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    def find(name: str) -> str:
        answer(find=name)
        reply = json.loads(sys.stdin.readline())
        if "error" in reply:
            raise substitutions.SubstitutionException(reply["error"])
        guard.allow(reply["folder"])
        return reply["folder"]

    substitutions._eval_find = find
    substitutions._eval_dict["find"] = find
    guard = Guard(request["folders"])
    try:
        document = xacro.process_file(request["path"], mappings=request["arguments"])
        answer(urdf=document.toprettyxml(indent="  "), outside=guard.refused)
    except (Exception, RecursionError) as error:
        files: list[str] = xacro.filestack or []
        macros: list[Any] = xacro.macrostack or []
        answer(
            error=text_of(error),
            outside=guard.refused,
            files=[str(file) for file in files],
            macros=[macro.body.getAttribute("name") for macro in macros],
        )
    sys.stderr.flush()
    os._exit(0)  # nothing more is wanted, and the guard allows nothing


if __name__ == "__main__":
    main()
