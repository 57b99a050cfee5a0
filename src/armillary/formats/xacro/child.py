"""Expand one xacro file; run as a script in a process of its own, by `expand.py`.

The expressions of a xacro file are Python, and the library's own checks of them can be
got around. So names that lead to the interpreter are refused, wherever they occur in an
expression; and this process gives itself limits of time and memory, and an audit hook
that refuses everything but reading files in the folders that it was given.
"""

from __future__ import annotations

import ast
import builtins
import errno
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

HARMLESS = frozenset(
    ("compile", "exec", "glob.glob", "glob.glob/2", "sys._getframe", "builtins.id")
)
READING = frozenset(("open", "os.listdir", "os.scandir"))
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

SAFE = frozenset(
    ("abs", "all", "any", "bool", "dict", "float", "int", "len", "list", "max", "min")
) | {"pow", "range", "repr", "round", "set", "sorted", "str", "sum", "tuple", "zip"}
"""Built-in functions that `$(eval ...)` may call."""

FRAMES = frozenset(
    ("gi_frame", "cr_frame", "ag_frame", "tb_frame", "tb_next", "f_back")
)
CODES = frozenset(("gi_code", "cr_code", "ag_code", "f_code", "f_globals", "f_locals"))
INNER = FRAMES | CODES | {"f_builtins", "f_trace", "gi_yieldfrom", "mro", "format_map"}
"""Attributes that lead from a value to the interpreter."""


def check_expression(text: str, refused: frozenset[str] = frozenset()) -> None:
    """Refuse names that lead from values to the interpreter, nested code included.

    Args:
        text: The expression.
        refused: Further names.

    Raises:
        PermissionError: There is one.
        SyntaxError: This is not an expression.
    """
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        name = ""
        if isinstance(node, ast.Attribute):
            name = node.attr
            is_refused = name.startswith("_") or name in INNER
        elif isinstance(node, ast.Name):
            name = node.id
            is_refused = name.startswith("__") or name in refused
        elif isinstance(node, ast.keyword | ast.arg):
            name = node.arg or ""
            is_refused = name.startswith("__")
        else:
            continue
        if is_refused:
            raise PermissionError(f"an expression may not use the name '{name}'")


UNSAFE = frozenset(dir(builtins)) - SAFE


class Guard:
    """Refuse what an expression has no need of.

    What decides lies in the hook itself, not where other code could change it.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        allowed = list(folders)
        outside: list[str] = []
        self.allow = allowed.append
        self._outside = outside
        sys.addaudithook(_hook(allowed, outside))

    @property
    def refused(self) -> str:
        """Return the last path that was refused, empty if there is none."""
        return self._outside[-1] if self._outside else ""


def _hook(allowed: list[str], outside: list[str]) -> Callable[..., None]:
    """Return a hook that refuses all but reading in allowed folders."""
    harmless, reading, writing = HARMLESS, READING, WRITING
    real, decode, common = os.path.realpath, os.fsdecode, os.path.commonpath

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event in harmless:
            return
        if event not in reading:
            raise PermissionError(f"an expression may not do this: {event}")
        if event == "open" and isinstance(args[2], int) and args[2] & writing:
            raise PermissionError("an expression may not write files")
        path = real(decode(args[0] or "."))
        if not any(common((path, folder)) == folder for folder in allowed):
            outside.append(path)
            message = "this is outside of the folders that may be read"
            raise PermissionError(errno.EACCES, message, path)

    return check


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
    """Return what an error says, once: those of the library contain another."""
    cause: BaseException | None = getattr(error, "exc", None)
    own = str(error.args[0] or "") if cause is not None else str(error)
    inner = "" if cause is None else str(cause) or type(cause).__name__
    if inner in own or isinstance(cause, OSError):
        own, inner = (own, "") if not inner else (inner, "")
    suffix = getattr(error, "suffix", None) or ""
    return " ".join(f"{own} {inner} {suffix}".split()) or type(error).__name__


def _restrict(xacro: Any, substitutions: Any) -> None:
    """Check expressions before the library evaluates them."""

    def checked(evaluate: Any, refused: frozenset[str]) -> Any:
        def run(text: str, *context: Any) -> Any:
            check_expression(text, refused)
            return evaluate(text, *context)

        return run

    for name in ("type", "vars"):  # by which texts reach what names may not
        xacro._global_symbols["python"].pop(name, None)
    xacro.safe_eval = checked(xacro.safe_eval, frozenset())
    substitutions._eval = checked(substitutions._eval, UNSAFE)


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

    _restrict(xacro, substitutions)
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
