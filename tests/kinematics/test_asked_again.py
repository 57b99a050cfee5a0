"""What is asked again and again: questions, poses of states, states with other q."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.cell.methods import asks_once
from armillary.errors import ArmillaryError, StateError
from armillary.kinematics import all_frames


def test_questions_are_asked_once_for_the_same_names():
    asked: list[Any] = []

    def question(workcell: Any, *args: Any, **options: Any) -> object:
        asked.append((args, options))
        return object()

    method = asks_once(question)
    cell: Any = SimpleNamespace(workcell=SimpleNamespace())
    names = ["a", "b"]
    answer = method(cell, "tool", joints=names)
    assert method(cell, "tool", joints=["a", "b"]) is answer
    assert method(cell, "tool", joints=("a", "b")) is answer
    assert len(asked) == 1
    names.append("c")
    assert method(cell, "tool", joints=names) is not answer
    others: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("tool",), {}),
        ((["tool"],), {"joints": ["a", "b"]}),
        ((), {"frames": "tool", "joints": ["a", "b"]}),
        (("tool", ["a", "b"]), {}),
    ]
    for args, options in others:
        found = method(cell, *args, **options)
        assert found is not answer
        assert method(cell, *args, **options) is found
    count = len(asked)
    # What is no name may change, or equal something else.
    for thing in (1, True, 1.0, None, np.zeros(3), [1], [["a"]], np.float64):
        for _ in range(2):
            method(cell, "tool", thing=thing)
    assert len(asked) == count + 16
    elsewhere: Any = SimpleNamespace(workcell=SimpleNamespace())
    assert method(elsewhere, "tool", joints=("a", "b")) is not answer


def test_errors_are_not_kept():
    def question(workcell: Any, name: str) -> object:
        raise TypeError(name)

    method = asks_once(question)
    cell: Any = SimpleNamespace(workcell=SimpleNamespace())
    for _ in range(2):
        with pytest.raises(TypeError, match="tool") as raised:
            method(cell, "tool")
        assert raised.value.__context__ is None


def test_a_pose_that_is_asked_again_has_a_kernel(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(all_frames, "REPEATED", 3)
    made: list[str] = []
    fk = all_frames.fk

    def counted(cell: Any, frame: str, **options: Any) -> Any:
        made.append(frame)
        return fk(cell, frame, **options)

    monkeypatch.setattr(all_frames, "fk", counted)
    cell = arm.example("irb2400")
    rng = np.random.default_rng(0)
    for k in range(6):
        state = cell.home.replace(q=rng.uniform(-1, 1, 6))
        pose = cell.pose("tool0", state)
        assert len(made) == (k >= 2)
        np.testing.assert_allclose(pose, cell.fk("tool0")(state.q), atol=1e-12)
        assert pose.flags.writeable
        # Another direction, and other attachments, are counted by themselves.
        if k < 2:
            cell.pose("tool0", state, relative_to="tool0")
    # States of others are bound first; what was gripped since then counts.
    same = arm.example("irb2400")
    np.testing.assert_array_equal(
        cell.pose("tool0", same.home.replace(q=state.q)), cell.fk("tool0")(state.q)
    )
    with pytest.raises(StateError, match="joint positions"):
        cell.pose("tool0", arm.example("delta").home)
    with pytest.raises(StateError, match="a State is needed"):
        cell.pose("tool0", None)
    for name in ("tool9", 5, ["tool0"]):
        with pytest.raises(ArmillaryError):
            cell.pose(name, cell.home)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_positions_that_are_not_finite_are_refused_whatever_their_sum(bad: float):
    home = arm.example("irb2400").home
    for others in ([0.0] * 5, [1.0, -bad, 0.0, -0.0, 1e308], [bad] * 5):
        q = np.array([bad, *others])
        with pytest.raises(StateError, match="q holds a number that is not finite"):
            home.replace(q=q)
        with pytest.raises(StateError, match="qd holds a number that is not finite"):
            home.replace(qd=q)


@pytest.mark.parametrize(
    "q",
    [
        [0.1] * 6,
        (1,) * 6,
        np.full(6, -0.0),
        np.array([0.0, 1.0, -0.0, 2.0, 0.0, -1.0]),
        np.full(6, 1.7e308),  # whose sum is not finite
        np.arange(12.0)[::2],
        np.full(6, 1, "f4"),
    ],
)
def test_states_at_other_positions_are_those_that_are_made_so(q: Any):
    cell = arm.example("irb2400")
    moved = cell.home.replace(time=2.0, qd=np.ones(6))
    one, other = moved.replace(q=q), moved.replace(q=q, time=2.0)
    assert one == other
    assert hash(one) == hash(other)
    assert (one.cell, one.tree) == (other.cell, other.tree)
    assert one.to_json() == other.to_json()
    assert not one.q.flags.writeable
    np.testing.assert_array_equal(one.q, np.asarray(q, dtype=np.float64))
    assert not np.signbit(one.q[one.q == 0.0]).any()


@pytest.mark.parametrize(
    ("q", "said"),
    [
        (np.array([0.0] * 5 + [np.nan]), "q holds a number that is not finite"),
        (np.array([np.inf] * 6), "q holds a number that is not finite"),
        (np.zeros((2, 6)), "q must be one vector"),
        (np.array(1.0), "q must be one vector"),
        (np.zeros(5), "q has 5 numbers; this state has 6 joints."),
        (np.zeros(6, complex), "q must be a vector of numbers"),
    ],
)
def test_wrong_positions_are_refused(q: Any, said: str):
    home = arm.example("irb2400").home
    with pytest.raises(StateError, match=re.escape(said)):
        home.replace(q=q)
