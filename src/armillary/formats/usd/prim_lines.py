"""The lines on which a layer of USD that is text has its prims and attributes."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["prim_lines"]

START: Final = b"#usda"
_TOKEN: Final = re.compile(
    r"""\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|@@@.*?@@@|@[^@\n]*@|\#[^\n]*|[{}()\n]"""
    r"""|\[[^][{}"'@\#]*+\]"""  # an array of numbers, as a whole
    r"""|\b(?:def|over|class)\b[ \t]+(?:[A-Za-z_]\w*[ \t]+)?"(?P<name>\w+)\""""
    r"""|^[ \t]*+(?:(?:add|append|custom|delete|prepend|uniform|varying)[ \t]+)*+"""
    r"""\w++(?:\[\])?[ \t]++(?P<property>[A-Za-z_][\w:]*+)[.\w]*+(?=[ \t]*=)""",
    re.DOTALL | re.MULTILINE,
)


def prim_lines(data: bytes) -> dict[str, int]:
    """Return the line of each prim and attribute of a layer, by its path.

    That of an attribute or a relationship is `/prim.name`.

    data: Of the file; one that is not text has none. Prims in variants are called as
        they are on the stage. Of a faulty file the lines may be wrong.
    """
    found: dict[str, int] = {}
    if not data.startswith(START):
        return found
    text = data.decode("utf-8", "replace")
    above, pending = [""], ""
    line, round_open = 1, 0
    for match in _TOKEN.finditer(text):
        token, name = match.group(), match["name"]
        if name is not None and round_open == 0:
            pending = f"{above[-1]}/{name}"
            found.setdefault(pending, line)
        elif match["property"] is not None:
            if round_open == 0 and above[-1]:
                found.setdefault(f"{above[-1]}.{match['property']}", line)
        elif token == "(":
            round_open += 1
        elif token == ")":
            round_open = max(0, round_open - 1)
        elif token == "{" and round_open == 0:
            # Of a variant, or a dictionary, what is inside belongs to the prim.
            above.append(pending or above[-1])
            pending = ""
        elif token == "}" and round_open == 0 and len(above) > 1:
            above.pop()
        line += token.count("\n")
    return found
