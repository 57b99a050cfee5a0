"""Expand a xacro file in a process of its own, under limits."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import Diagnostic, Place, Report, fault
from armillary.formats.files import SIZE_CAP
from armillary.formats.paths import Roots

__all__ = ["expand"]

SECONDS: Final = 30
MEMORY: Final = 1 << 30
MOST_FINDS: Final = 10_000
CHILD: Final = Path(__file__).with_name("child.py")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


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
    home = os.path.dirname(os.path.realpath(path))
    request = {
        "path": os.path.realpath(path),
        "folders": [str(folder) for folder in roots.allowed(home)],
        "arguments": {name: str(value) for name, value in arguments.items()},
        "seconds": SECONDS,
        "memory": MEMORY,
    }
    with tempfile.TemporaryFile() as complaints:
        answer = _ask(path, request, roots, complaints)
        complaints.seek(0)
        text = _COLOURS.sub("", complaints.read(1 << 16).decode("utf-8", "replace"))
    if "urdf" in answer:
        if text.strip():
            report.warning(Place(path), "xacro-warning", " ".join(text.split()))
        if answer["outside"]:
            message = f"{quote(answer['outside'])} may not be read, and was left out"
            report.warning(
                Place(path), "reference-outside", message, hint=_hint(answer)
            )
        return answer["urdf"].encode()
    chain = [file for file in answer.get("files", ()) if file != request["path"]]
    where = [f"in {quote(os.path.relpath(file, home))}" for file in chain[-1:]]
    where += [f"in macro {quote(name)}" for name in answer.get("macros", ())[-1:]]
    raise fault(
        path,
        "xacro-error",
        ", ".join([answer["error"].strip().removesuffix("."), *where]),
        hint=_hint(answer),
    )


def _hint(answer: Mapping[str, Any]) -> str:
    if answer.get("outside"):
        folder = quote(os.path.dirname(answer["outside"]))
        return f"If it is trusted, allow its folder: folders=[{folder}]."
    return answer.get("hint", "")


def _ask(
    path: str, request: dict[str, Any], roots: Roots, complaints: IO[bytes]
) -> dict[str, Any]:
    """Return the last answer of the child, which is ended in any case."""
    # Isolated, and without the environment: $(env ...) shall not see it.
    command = [sys.executable, "-I", "-X", "utf8", str(CHILD)]
    kept = {k: os.environ[k] for k in ("SYSTEMROOT",) if k in os.environ}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env=kept,
        cwd=os.path.dirname(request["path"]),
    ) as child:
        timer = threading.Timer(SECONDS, child.kill)
        timer.start()
        try:
            return _talk(child, path, request, roots)
        except BrokenPipeError:
            return _LIMIT
        finally:
            timer.cancel()
            child.kill()


_LIMIT: Final[dict[str, Any]] = {
    "error": f"expanding the file takes more than {SECONDS} s or "
    f"{MEMORY >> 20} MiB, and was ended",
    "hint": "See whether a macro calls itself.",
}


def _talk(
    child: subprocess.Popen[bytes], path: str, request: dict[str, Any], roots: Roots
) -> dict[str, Any]:
    assert child.stdin is not None and child.stdout is not None
    message: dict[str, Any] = request
    for _ in range(MOST_FINDS):
        child.stdin.write(json.dumps(message).encode() + b"\n")
        child.stdin.flush()
        line = child.stdout.readline(2 * SIZE_CAP)
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            return _LIMIT
        if "find" not in answer:
            return answer
        found = roots.package(
            answer["find"], base=os.path.dirname(request["path"]), place=Place(path)
        )
        if isinstance(found, Diagnostic):
            message = {"error": f"{found.message}. {found.hint}".removesuffix(".")}
        else:
            message = {"folder": str(found)}
    return _LIMIT
