from __future__ import annotations

import pytest

import armillary as arm


@pytest.fixture(scope="module")
def rail() -> arm.Cell:
    return arm.example("ur10_on_rail")
