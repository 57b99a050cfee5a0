"""The text of a script, made ready for this Python: no-break spaces, `print` of old."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Final

from armillary.errors import ScriptError
from armillary.limits import SCRIPT_PRINTS, SCRIPT_SIZE, Limit

__all__ = [
    "TRIED",
    "ScriptDiagnostic",
    "Source",
    "digest",
    "file_content",
    "prepared",
    "script_text",
]

NO_BREAK_SPACE: Final = "\N{NO-BREAK SPACE}"
BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
PRINT: Final = "print"
TAB: Final = 8
TRIED: Final = "__tried__"
"""What the body of each `try` in a function calls first, with the line."""


@dataclass(frozen=True)
class ScriptDiagnostic:
    """What was found in a script that runs all the same.

    Attributes:
        kind: A short name, such as `no-break-space`.
        line: Where in the script, from 1.
        message: What was found, and what it means.
    """

    kind: str
    line: int
    message: str


@dataclass(frozen=True)
class Source:
    """A script that can be run.

    Attributes:
        name: What messages call it: its file name.
        text: As it was given.
        tree: As it was parsed.
        code: Compiled.
        diagnostics: What had to be changed.
    """

    name: str
    text: str
    tree: ast.Module
    code: CodeType
    diagnostics: tuple[ScriptDiagnostic, ...]

    def line(self, number: int) -> str:
        """Return a line of the script without the blanks around it."""
        lines = _lines(self.text)
        if not 0 < number <= len(lines):
            return ""
        return lines[number - 1].replace(NO_BREAK_SPACE, " ").strip()


def file_content(path: Path, limit: Limit) -> bytes:
    """Return the bytes of a file, of which a limit bounds the number.

    Raises:
        ScriptError: It cannot be read, or has more.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit.most + 1)
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read: {error.strerror}.") from error
    if len(content) > limit.most:
        raise ScriptError(f"{path}: {limit.excess()}.")
    return content


def script_text(path: Path) -> str:
    """Return the text of a script's file.

    Raises:
        ScriptError: It cannot be read.
    """
    content = file_content(path, SCRIPT_SIZE)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # as older programs write it


def digest(text: str) -> str:
    """Return the SHA-256 of a script as hexadecimal text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def readable(text: str) -> list[str]:
    """Return the lines of a script with blanks for no-break spaces and tabs."""
    plain = text.removeprefix(BYTE_ORDER_MARK).replace(NO_BREAK_SPACE, " ")
    return [line.expandtabs(TAB) for line in plain.splitlines()]


def prepared(text: str, name: str) -> Source:
    """Return a script ready to run; line numbers remain as they are.

    Raises:
        ScriptError: Its syntax is wrong; the message has the line.
    """
    diagnostics: list[ScriptDiagnostic] = []
    lines = _lines(text.removeprefix(BYTE_ORDER_MARK))
    if NO_BREAK_SPACE in text:
        spaced = [k for k, line in enumerate(lines, 1) if NO_BREAK_SPACE in line]
        diagnostics.append(
            ScriptDiagnostic(
                "no-break-space",
                spaced[0],
                f"no-break spaces in {len(spaced)} lines are read as blanks",
            )
        )
        lines = [line.replace(NO_BREAK_SPACE, " ") for line in lines]
    tree = _parsed(lines, name, diagnostics)
    _mark_tries(tree)
    try:
        code = compile(tree, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _wrong(error, name) from error
    except RecursionError as error:
        raise ScriptError(f"{name}: its expressions are nested too deeply.") from error
    return Source(name, text, tree, code, tuple(diagnostics))


def _lines(text: str) -> list[str]:
    """Return the lines of a text as Python counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _parsed(lines: list[str], name: str, found: list[ScriptDiagnostic]) -> ast.Module:
    """Parse lines, which are repaired one by one as Python finds fault with them."""
    printed: list[int] = []
    for _ in range(SCRIPT_PRINTS.most):
        try:
            tree = ast.parse("\n".join(lines) + "\n", name)
        except TabError as error:
            if not any("\t" in line for line in lines):
                raise _wrong(error, name) from error
            place = error.lineno or 1
            message = "tabs are read as steps of 8 columns, as Python 2 reads them"
            found.append(ScriptDiagnostic("tabs", place, message))
            lines[:] = [line.expandtabs(TAB) for line in lines]
        except SyntaxError as error:
            if not _repair_print(lines, error):
                raise _wrong(error, name) from error
            printed.append(error.lineno or 1)
        except (RecursionError, MemoryError) as error:  # which, depends on Python
            fault = "its expressions are nested too deeply"
            raise ScriptError(f"{name}: cannot be parsed: {fault}.") from error
        except ValueError as error:
            raise ScriptError(f"{name}: cannot be parsed: {error}.") from error
        else:
            if printed:
                found.append(_of_python_2(printed))
            return tree
    raise ScriptError(f"{name}: {SCRIPT_PRINTS.excess()}.")


def _mark_tries(tree: ast.Module) -> None:
    """Let each `try` in a function call `TRIED`: what it catches cannot be traced."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Try, ast.TryStar)) and not _is_marked(node):
                call = ast.parse(f"{TRIED}({node.lineno})").body[0]
                for part in ast.walk(call):
                    ast.copy_location(part, node)
                node.body.insert(0, call)


def _is_marked(node: ast.Try | ast.TryStar) -> bool:
    match node.body[0]:
        case ast.Expr(ast.Call(ast.Name(id=name))):
            return name == TRIED
        case _:
            return False


def _of_python_2(lines: list[int]) -> ScriptDiagnostic:
    shown = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
    return ScriptDiagnostic(
        "print-statement",
        lines[0],
        f"print statements of Python 2 in lines {shown} are read as calls; here 1 / 2 "
        "is 0.5, not 0 as in Python 2",
    )


def _repair_print(lines: list[str], error: SyntaxError) -> bool:
    """Turn the print statement that an error is about into a call, if it is one."""
    if "print" not in (error.msg or "") or not error.lineno or not error.offset:
        return False
    # Python gives the statement's place in bytes of UTF-8; all up to its end becomes
    # the arguments of a call.
    first, last = error.lineno - 1, (error.end_lineno or error.lineno) - 1
    head = lines[first].encode()
    start = len(head[: error.offset - 1].decode(errors="ignore"))
    if not lines[first][start:].startswith(PRINT) or last >= len(lines):
        return False
    tail = lines[last].encode()
    end = len(tail[: (error.end_offset or len(tail) + 1) - 1].decode(errors="ignore"))
    before, after = lines[first][:start], lines[last][end:]
    if first == last:
        body = lines[first][start + len(PRINT) : end]
    else:
        body = "\n".join(
            [
                lines[first][start + len(PRINT) :],
                *lines[first + 1 : last],
                lines[last][:end],
            ]
        )
    if body.strip().startswith(">>"):
        return False
    if after.startswith(","):  # which meant: no line break
        after = after[1:]
    lines[first : last + 1] = f"{before}print({body.strip()}){after}".split("\n")
    return True


def _wrong(error: SyntaxError, name: str) -> ScriptError:
    text = (error.text or "").replace(NO_BREAK_SPACE, " ").strip()
    shown = f" in: {text}" if text else ""
    return ScriptError(f"{name}:{error.lineno or 1}: {error.msg}{shown}")
