"""What each id of a finding means, and its mend; the texts stand in findings.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from armillary.errors import unknown

__all__ = ["Finding", "explained", "findings"]

FILE: Final = "findings.toml"
ANY: Final = "*"


class Finding(NamedTuple):
    """What is meant by findings of one id.

    Attributes:
        code: The id; one that ends in `*` stands for all that begin so.
        meaning: What was found, in a sentence or two.
        mend: What to do about it.
    """

    code: str
    meaning: str
    mend: str


@cache
def findings() -> dict[str, Finding]:
    """Return what is known of all ids, in the order of their kinds."""
    text = (files("armillary.formats") / FILE).read_text("utf-8")
    return {code: Finding(code, *told) for code, told in tomllib.loads(text).items()}


def explained(code: str) -> Finding:
    """Return what an id means.

    Raises:
        UnknownName: There is no such id.
    """
    known = findings()
    family = f"{code.partition('-')[0]}-{ANY}"
    for each in (code, family):
        if each in known:
            return known[each]
    raise unknown("finding", code, known)
