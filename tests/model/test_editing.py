"""Editing a cell gives a new one that shares what did not change."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from armillary import Closure, Rod
from armillary.errors import ModelError, UnknownName
from armillary.model.joints import Prismatic, Revolute
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from four_bar import four_bar, linked_arms
from work import lines


def chain(name: str, size: int = 3) -> Manipulator:
    """Return a chain of revolute joints."""
    links = [Link(name=f"{name}0")]
    for k in range(1, size):
        links.append(Link(name=f"{name}{k}", parent=links[-1].name, joint=Revolute()))
    return Manipulator(name=name, links=tuple(links))


def test_add_mounts_and_leaves_the_old_cell_alone() -> None:
    empty = Workcell()
    one = empty.add(chain("a"))
    two = one.add(chain("b"), on="a/a2", pose=Pose.translation(1.0, 0.0, 0.0))
    assert [m.name for m in two.manipulators] == ["a", "b"]
    assert empty.manipulators == ()
    assert two.manipulators[0] is one.manipulators[0]
    assert two.owners[two.base_frames[1].link] == 0
    assert two.base_frames[1].pose.position == (1.0, 0.0, 0.0)


def test_only_manipulators_are_added() -> None:
    one = Workcell().add(chain("a"))
    other = Workcell(name="other").add(chain("b"))
    with pytest.raises(
        ModelError, match=r"'other'.* is not a Manip.*manipulators\[0\]"
    ):
        one.add(other)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"^'a' is not a Manipulator"):
        one.exchange("a")  # type: ignore[arg-type]


def test_remove_undoes_add() -> None:
    one = Workcell().add(chain("a"))
    assert one.add(chain("b"), on="a2").remove("b") == one
    with pytest.raises(ModelError, match="it carries 'b'; remove"):
        one.add(chain("b"), on="a2").remove("a")
    with pytest.raises(UnknownName, match="no manipulator named 'c'"):
        one.remove("c")


def test_replace_keeps_place_and_mounts() -> None:
    cell = Workcell().add(chain("a")).add(chain("b"), on="a2")
    longer = cell.exchange(chain("a", 5))
    assert [m.name for m in longer.manipulators] == ["a", "b"]
    assert longer.mounts == cell.mounts
    assert longer.joint_names[:4] == ("a/a1", "a/a2", "a/a3", "a/a4")
    with pytest.raises(UnknownName):  # what carries b is gone
        cell.exchange(chain("a", 2))


def test_fields_are_replaced_by_name() -> None:
    cell = Workcell().add(chain("a"))
    body = cell.manipulators[0]
    slow = body.links[1].replace(limits=Limits(lower=-1.0, upper=1.0))
    changed = cell.exchange(body.exchange(slow)).replace(name="slow")
    assert changed.name == "slow"
    assert changed.limits[1].tolist() == [1.0, float("inf")]
    assert body.replace(links=list(body.links)) == body
    axis = slow.joint.replace(axis=[0, 1, 0])
    assert axis == Revolute(axis=(0.0, 1.0, 0.0))


@pytest.mark.parametrize(
    "value", [Workcell(), chain("a"), Link(name="a"), Revolute()], ids=type
)
def test_a_field_that_does_not_exist_is_named(value: Any) -> None:
    kind = type(value).__name__
    with pytest.raises(UnknownName, match=rf"named 'lnks' in {kind}\. .*Known"):
        value.replace(lnks=[])


def test_exchange_needs_the_same_name() -> None:
    with pytest.raises(UnknownName, match="no link named 'a7'"):
        chain("a").exchange(Link(name="a7", parent="a0"))


def test_a_bare_name_of_a_mount_outlives_edits() -> None:
    cell = Workcell().add(chain("a")).add(chain("b"), on="a2")
    assert cell.mounts[1].on == "a/a2"
    twin = Manipulator(name="twin", links=chain("a").links)
    assert cell.add(twin).base_frames[1] == cell.base_frames[1]


def test_errors_name_the_mount_or_the_rule() -> None:
    cell = Workcell().add(chain("a")).add(chain("b"), on="a2")
    with pytest.raises(
        UnknownName, match="'b' cannot be mounted on 'a/a2': no frame named"
    ):
        cell.exchange(chain("a", 2))
    with pytest.raises(
        UnknownName, match="'c' cannot be mounted on 'a7': no frame named"
    ):
        cell.add(chain("c"), on="a7")
    ruled = cell.replace(rules=cell.rules.exclude("a1", "b1"))
    twin = Manipulator(name="twin", links=chain("a").links)
    with pytest.raises(ModelError, match="A rule names 'a1': Frame 'a1' is not unique"):
        ruled.add(twin)


def test_mount_moves_a_base_and_refuses_cycles() -> None:
    cell = Workcell().add(chain("a")).add(chain("b"), on="a2")
    free = cell.mount("b", pose=Pose.translation(0.0, 2.0, 0.0))
    assert free.base_frames[1].link == -1
    with pytest.raises(ModelError, match="cycle"):
        cell.mount("a", on="b/b1")


def test_every_edit_of_a_large_cell_is_as_much_work_as_the_first() -> None:
    cell = Workcell().add(chain("big", 200))
    part = chain("part", 1)

    def edit(count: int) -> None:
        nonlocal cell
        for _ in range(count):
            cell = cell.add(part, on="big/big150").remove("part")

    edit(1)
    few, many = lines(lambda: edit(10)), lines(lambda: edit(100))
    assert few < 10 * 20 * 200
    assert many < 10.1 * few
    assert [m.name for m in cell.manipulators] == ["big"]


def test_loops_follow_edits() -> None:
    cell = linked_arms()
    assert cell.loops[0].a == "drive/tip"
    # Frames of loops are qualified, so that they stay unique.
    more = cell.add(four_bar("more"))
    assert more.loops == cell.loops
    assert more.passive_names == (*cell.passive_names, "more/coupler", "more/rocker")
    assert more.remove("more") == cell
    # What is removed takes its loops along; the rest moves freely.
    alone = cell.remove("swing")
    assert alone.loops == ()
    assert alone.joint_names == ("crank", "coupler")


def test_a_rod_goes_with_the_joint_that_it_is_driven_by() -> None:
    rod = Rod("tip", "swing/end", by="out", length=0.2)
    slide = Link(name="out", parent="at", joint=Prismatic())
    driver = Manipulator(name="driver", links=[Link(name="at"), slide])
    cell = linked_arms(loops=()).add(driver).replace(loops=[rod])
    assert len(cell.joint_names) == 3
    assert len(cell.passive_names) == 1
    assert cell.remove("driver") == linked_arms(loops=())
    with pytest.raises(ModelError, match="joint 'out' is not unique; say 'driver/out'"):
        cell.add(msgspec.structs.replace(driver, name="other"))


def test_edits_that_break_a_loop_are_refused() -> None:
    cell = linked_arms()
    with pytest.raises(UnknownName, match=r"In the Closure of 'drive/tip' .*no frame"):
        cell.exchange(cell.manipulators[1].replace(links=[Link(name="ground")]))
    with pytest.raises(ModelError, match="The loops cannot close"):
        cell.mount("swing", pose=Pose.translation(3.0, 0.0, 0.0))
    near = cell.mount("swing", pose=Pose.translation(0.02, 0.0, 0.0))
    assert not np.array_equal(near.home.passive, cell.home.passive)
    with pytest.raises(UnknownName, match="no frame named 'x'"):
        cell.replace(loops=[Closure("x", "tip")])
    assert cell.replace(loops=[]).joint_names == (
        "drive/crank",
        "drive/coupler",
        "swing/rocker",
    )


def test_loops_scale_and_compare() -> None:
    cell = linked_arms().add(four_bar("more", loops=[Rod("tip", "end", length=0.2)]))
    for factor in (1e-3, 2.5, 1e3):
        scaled = cell.scaled(factor)
        assert scaled.manipulators[2].loops[0].length == 0.2 * factor
        state, large = cell.home.replace(q=[0.4, 0.3, 0.2]), scaled.home
        large = large.replace(q=[0.4, 0.3, 0.2])
        np.testing.assert_allclose(large.passive, state.passive, atol=1e-9)
        X = cell.pose("more/tip", state)[:3, 3]
        np.testing.assert_allclose(
            scaled.pose("more/tip", large)[:3, 3], X * factor, atol=1e-9 * factor
        )
    assert cell.scaled(1.0 + 1e-9).approx_equal(cell, 1e-6)
    assert not cell.scaled(1.1).approx_equal(cell, 1e-6)
    assert not cell.replace(loops=[]).approx_equal(cell, 1e-6)
