from __future__ import annotations

import pytest

import armillary as arm


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("irb2400")
