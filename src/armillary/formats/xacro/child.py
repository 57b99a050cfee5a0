"""Expand one xacro file; run by its path in a confined process, by `expand.py`.

The expressions of a xacro file are Python, so this process is confined before it reads
any: files, packages and lists of files come from the process that started it.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import runpy
import sys
from types import SimpleNamespace
from typing import Any


def text_of(error: BaseException) -> str:
    """Return what an error says, once: those of the library contain another."""
    cause: BaseException | None = getattr(error, "exc", None)
    message = str(error.args[0] or "") if cause is not None else str(error)
    inner = "" if cause is None else str(cause) or type(cause).__name__
    if inner in message or isinstance(cause, OSError):
        message, inner = (message, "") if not inner else (inner, "")
    suffix = getattr(error, "suffix", None) or ""
    return " ".join(f"{message} {inner} {suffix}".split()) or type(error).__name__


def main() -> None:
    """Answer one request on the standard input.

    A line comes in: the file, arguments, a limit of memory. Lines go out: `find`, the
    name of a package, `read`, the path of a file, or `match`, a pattern of paths, which
    a line with a `result` or an error answers; then `urdf`, the text, or `error`, what
    is wrong, with the files and macros it is in.
    """
    xacro: Any = importlib.import_module("xacro")
    substitutions: Any = importlib.import_module("xacro.substitution_args")
    for name in ("yaml", "xml.dom.expatbuilder", "xml.dom.pulldom", "traceback"):
        importlib.import_module(name)  # later no file is opened, and so no module
    for encoding in ("ascii", "latin-1", "utf-16", "cp1252"):
        b"".decode(encoding)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    request = json.loads(sys.stdin.readline())

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    def ask(kind: str, name: str) -> Any:
        answer(**{kind: str(name)})
        reply = json.loads(sys.stdin.readline())
        if "path" in reply:
            raise OSError(reply["errno"], reply["error"], reply["path"])
        if "error" in reply:
            raise substitutions.SubstitutionException(reply["error"])
        return reply["result"]

    def opened(path: str) -> io.TextIOWrapper:
        content = ask("read", path).encode("latin-1")  # a character for each byte
        return io.TextIOWrapper(io.BytesIO(content), "utf-8")

    def matching(pattern: str) -> list[str]:
        return sorted(ask("match", pattern))

    def found(package: str) -> str:
        return ask("find", package)

    xacro.open, xacro.glob = opened, SimpleNamespace(glob=matching)
    substitutions._eval_find = substitutions._eval_dict["find"] = found
    runpy.run_path(sys.argv[1])["confine"](request["memory"])
    try:
        document = xacro.process_file(request["path"], mappings=request["arguments"])
        answer(urdf=document.toprettyxml(indent="  "))
    except (Exception, RecursionError) as error:
        files: list[Any] = xacro.filestack or []
        macros: list[Any] = xacro.macrostack or []
        answer(
            error=text_of(error),
            files=[str(file) for file in files],
            macros=[macro.body.getAttribute("name") for macro in macros],
        )
    sys.stderr.flush()
    os._exit(0)  # what else Python does at its end is not allowed


if __name__ == "__main__":
    main()
