"""Cells, states and solutions show themselves in a line, and as tables."""

from __future__ import annotations

import copy
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest

import armillary as arm

CELL = arm.example("oval_track_cell")
STATE = CELL.home.grip("part", by="gripper/tcp", replace=True)


def cells_of(html: str) -> list[str]:
    """The texts in the cells of tables."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [each.text or "" for tag in ("th", "td") for each in root.iter(tag)]


def test_lines_are_short():
    assert str(CELL) == "<Cell 'oval_track_cell': 5 manipulators, 8 joints>"
    assert repr(CELL.manipulators[0]) == "<Manipulator 'track': 2 links, 1 joint>"
    base, carriage = CELL.manipulators[0].links
    assert repr(base) == "<Link 'rail'>"
    assert repr(carriage).startswith("<Link 'cart' on 'rail': OvalTrack ")
    line = repr(STATE)
    assert line.startswith("<State of 'oval_track_cell': q=[0, 1.5708, ")
    assert line.endswith("'part' on 'gripper/tcp'>")
    long = arm.State(q=[0.5] * 1000, qd=[1.0] * 1000)
    assert len(repr(long)) < 200
    assert "1000 in all" in repr(long)
    assert len(repr(CELL.fk("tool0"))) < 100
    poses = CELL.poses(STATE)
    assert repr(poses) == f"<poses of {len(poses)} frames: ({len(poses)}, 4, 4)>"
    assert repr(CELL.device("ur5e").ik().all(np.eye(4))) == "<Answers: 0 to 1 targets>"
    between = CELL.between("tool0", STATE)
    assert repr(between) == "<pose of 'tool0' relative to 'world'>"


def test_a_solution_says_how_its_targets_ended():
    q = np.array(CELL.home.q)
    X = CELL.fk("tool0")(q)
    far = X.copy()
    far[:3, 3] += 1e3
    found = CELL.ik("tool0")(np.stack([X, far]))
    assert repr(found).startswith("<Solution: 1 of 2 solved; 1 ")
    shown = cells_of(found._repr_html_())
    assert shown[:3] == ["reason", "targets", "meaning"]
    assert {"SOLVED", "1", "solved"} <= set(shown)


def test_tables_name_joints_and_what_carries_them():
    shown = cells_of(CELL._repr_html_())
    assert {"ur5e", "track/plate", "7", "cart"} <= set(shown)
    moved = cells_of(STATE._repr_html_())
    assert {"ur5e/elbow", "1.5708", "part", "gripper/tcp"} <= set(moved)
    sent = arm.State.from_json(STATE.to_json())
    assert {"0", "7", "gripper/tcp"} <= set(cells_of(sent._repr_html_()))


def test_tables_are_escaped_and_end():
    parts = [
        arm.Manipulator(name=f"<b>&{k}", links=[arm.Link(name="a")]) for k in range(99)
    ]
    html = arm.Cell(name="<script>", manipulators=parts)._repr_html_()
    assert "<script>" not in html
    shown = cells_of(html)
    assert "<b>&3" in shown
    assert shown[-1] == "... 39 more"


@pytest.mark.parametrize(
    ("name", "instead"),
    [("dynamics", "carried"), ("plot", "view"), ("q", "home")],
)
def test_what_a_cell_has_not_names_what_it_has(name: str, instead: str):
    with pytest.raises(AttributeError, match=rf"no '{name}': .*cell\.{instead}"):
        getattr(CELL, name)
    assert not hasattr(CELL, name)


def test_other_attributes_are_missing_as_ever():
    with pytest.raises(AttributeError, match="'Cell' object has no attribute 'fkk'"):
        CELL.fkk  # noqa: B018
    assert copy.deepcopy(CELL) == CELL
    assert pickle.loads(pickle.dumps(CELL)) == CELL
