"""The limits of files: declared once, documented, counted, and refused in one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from armillary.errors import FormatError
from armillary.formats.diagnostic import Budget, Place, Report, explained
from armillary.limits import FILE_SIZE, MESH_FACES, OBJ_LIBRARIES, limits

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
PLACE = Place("x.obj", 3)


def test_the_page_lists_all_limits():
    table = PAGE.read_text("utf-8").partition("| limit | at most | it bounds |\n")[2]
    rows = [f"| `{key}` | {each} | {each.why} |" for key, each in limits().items()]
    assert table.splitlines() == ["| --- | --- | --- |", *rows]


@pytest.mark.parametrize("name", limits())
def test_each_limit_can_be_said(name):
    limit = limits()[name]
    assert limit.most > 0
    assert limit.says.count("{}") == 1
    assert f"more than {limit.most}" in limit.excess()
    assert limit.excess(limit.most + 1).endswith(f"more than {limit.most}")
    if limit.code:
        assert explained(limit.code).fix


def test_a_budget_counts_what_adds_up():
    budget = Budget({OBJ_LIBRARIES: 2})
    budget.spend(OBJ_LIBRARIES, PLACE)
    budget.spend(OBJ_LIBRARIES, PLACE)
    with pytest.raises(FormatError) as caught:
        budget.spend(OBJ_LIBRARIES, PLACE)
    assert str(caught.value) == (
        "x.obj:3: error[mesh-too-large]: the mesh names more than 2 files of colours. "
        "Make it coarser, join its parts, or export triangles."
    )
    budget.renewed().spend(OBJ_LIBRARIES, PLACE, 2)


def test_a_budget_refuses_sizes_and_says_both_numbers():
    budget = Report(budget=Budget({FILE_SIZE: 8})).tolerating("it is read").budget
    budget.check(FILE_SIZE, 8, PLACE)
    budget.check(MESH_FACES, MESH_FACES.most, PLACE)
    with pytest.raises(FormatError, match="the file has 9 bytes, more than 8"):
        budget.check(FILE_SIZE, 9, PLACE)
