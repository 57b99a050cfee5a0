"""What is declared of other packages; `make test-versions` tries it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_requirement_has_a_lowest_version():
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [
        *PROJECT["dependencies"],
        *(each for e in extras for each in e),
    ]:
        is_own = requirement.startswith("armillary[")
        assert is_own or re.search(r"(>=|==)\d", requirement), requirement


class Positive(msgspec.Struct, frozen=True):
    value: float

    def __post_init__(self) -> None:
        if self.value <= 0.0:
            raise ValueError("not positive")


def test_structures_are_checked_when_they_are_replaced():
    """As they are since msgspec 0.21; all checks of models rest on it."""
    with pytest.raises(ValueError, match="not positive"):
        msgspec.structs.replace(Positive(1.0), value=-1.0)
