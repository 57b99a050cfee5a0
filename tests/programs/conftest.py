"""The cell that tests of programs share."""

from __future__ import annotations

import pytest

import armillary as arm
from belt_cell import belt_cell


@pytest.fixture(scope="session")
def cell() -> arm.Cell:
    """An irb2400 that takes boxes from a conveyor along y to a table."""
    return belt_cell()
