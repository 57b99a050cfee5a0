"""How much of the stack functions of LLVM's language take, for their callers."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

__all__ = ["stack_use"]

FRAME: Final = 256
"""Bytes for saved registers and what does not fit in registers, of one function."""

_FUNCTION: Final = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"@([\w.]+)\(")
_MEMORY: Final = re.compile(r"= alloca (?:\[(\d+) x i8\]|<(\d+) x \w+>)")
_CALLED: Final = re.compile(r"\bcall .*?@(?!llvm\.)([\w.]+)\(")

NUMBER: Final = 8
"""Bytes of a lane of a vector, at most."""


def stack_use(module: str) -> dict[str, int]:
    """Return about how much of the stack each function of a module takes [bytes].

    That is the memory that it reserves, with that of what it calls. Compilers add what
    they keep there themselves, and take away what fits in registers.
    """
    own: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    for text in _FUNCTION.findall(module):
        found = _NAME.search(text)
        assert found is not None, "functions have names"
        (name,) = found.groups()
        own[name] = FRAME + sum(
            int(size or 0) + NUMBER * int(lanes or 0)
            for size, lanes in _MEMORY.findall(text)
        )
        calls[name] = set(_CALLED.findall(text))

    @cache
    def whole(name: str) -> int:
        return own.get(name, 0) + max(map(whole, calls.get(name, ())), default=0)

    return {name: whole(name) for name in own}
