"""States of cells with closed loops: sent, compared and shown."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import armillary as arm
from armillary.errors import StateError
from four_bar import four_bar, linked_arms

CELL = arm.Cell(manipulators=[four_bar()])


@pytest.mark.parametrize("cell", [CELL, linked_arms()], ids=["one", "two"])
def test_states_come_back_equal(cell: arm.Cell):
    rng = np.random.default_rng(3)
    for q in rng.uniform(-3.0, 3.0, (20, 1)):
        for state in cell.branches(q).values():
            sent = arm.State.from_json(state.to_json())
            assert sent == state
            assert cell.bind(sent) == state
            assert cell.bind(pickle.loads(pickle.dumps(state))) == state
            assert cell.bind(sent).to_json() == state.to_json()


def test_cells_with_loops_are_pickled():
    for cell in (CELL, linked_arms()):
        again = pickle.loads(pickle.dumps(cell))
        assert again == cell
        assert np.array_equal(again.home.passive, cell.home.passive)


def test_a_state_from_a_file_whose_loops_are_open_is_refused():
    text = CELL.home.to_json().replace('"passive":[', '"passive":[1')
    with pytest.raises(StateError, match="The loops are not closed at these passive"):
        CELL.bind(arm.State.from_json(text))


def test_branches_differ_in_passive_joints():
    home, other = CELL.branches([0.7]).values()
    assert np.array_equal(home.q, other.q)
    found = home.difference(other)
    assert set(found) == set(CELL.passive_names)
    assert found["rocker"] == (home.passive[1], other.passive[1])
    free = arm.State(q=home.q, passive=home.passive)
    assert set(free.difference(other)) == {"passive 0", "passive 1"}
    assert set(free.difference(arm.State(q=home.q))) == {"passive"}


def test_states_show_passive_joints():
    state = CELL.home.replace(q=[0.7])
    q, (coupler, rocker) = state.q[0], state.passive
    assert repr(state) == (
        f"<State of 'cell': q=[{q:.5g}], passive=[{coupler:.5g}, {rocker:.5g}]>"
    )
    shown = state._repr_html_()
    assert "rocker (passive)" in shown
    assert f"{rocker:.6g}" in shown
    assert "<td>crank</td>" in shown
